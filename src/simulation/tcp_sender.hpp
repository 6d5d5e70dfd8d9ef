// TcpSender: the sending end of a simulated TCP connection, at packet level: when which segment goes out.
//
// Loss recovery is what RACK and SACK come to on a path that keeps the order (RFC 6675, RFC 8985): a transmission is
// lost when a segment that was sent three or more transmissions later has been delivered; retransmissions go first and
// can be lost and found so as well. The retransmission timer is RFC 6298's with the kernel's least RTO of 200 ms. There
// is no tail loss probe and no undo of a spurious reduction.
//
// Pace and window are the congestion control's. Sans-I/O: acknowledgements and times come in, segments go out.
// Threads: one.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>

#include "sdr/units.hpp"
#include "simulation/tcp_congestion.hpp"
#include "simulation/tcp_ranges.hpp"
#include "simulation/tcp_segment.hpp"

namespace sdr::simulation {

struct TcpSenderCounts {
  std::uint64_t sent = 0;
  std::uint64_t retransmitted = 0;
  std::uint64_t recoveries = 0;
  std::uint64_t timeouts = 0;
};

class TcpSender {
 public:
  // Sends segments 0 to `segments` - 1.
  TcpSender(std::unique_ptr<TcpCongestion> congestion, std::uint64_t segments)
      : congestion_(std::move(congestion)), segments_(segments) {}

  void handle(const TcpAck& ack, TimePoint now);
  // The next segment that may go now.
  std::optional<TcpData> poll(TimePoint now);
  // When poll() has something to say by itself: the pace, or the timer.
  [[nodiscard]] TimePoint next_timeout() const;

  [[nodiscard]] bool done() const { return first_ == segments_; }
  [[nodiscard]] std::uint64_t in_flight() const { return in_flight_; }
  [[nodiscard]] Duration smoothed_rtt() const { return smoothed_; }
  [[nodiscard]] const TcpSenderCounts& counts() const { return counts_; }
  [[nodiscard]] const TcpCongestion& congestion() const { return *congestion_; }

 private:
  enum class State : std::uint8_t { InFlight, Lost, Delivered };
  struct Segment {
    TimePoint sent{};
    TimePoint first_sent{};       // of the flight that it was sent in, and
    TimePoint delivered_time{};   // when the last delivery before it was, and
    std::uint64_t delivered = 0;  // how much had been delivered then: what a rate sample begins with
    std::uint64_t order = 0;      // of its last transmission
    State state = State::InFlight;
    bool retransmitted = false;
    bool application_limited = false;
  };
  struct Transmission {
    std::uint64_t order = 0;
    std::uint64_t number = 0;
  };

  [[nodiscard]] Segment& at(std::uint64_t number) { return outstanding_[number - first_]; }
  void deliver(std::uint64_t number, TcpAckEvent& event);
  void find_losses(TcpAckEvent& event);
  void take_rtt(Duration rtt);
  void expire(TimePoint now);
  [[nodiscard]] std::optional<std::uint64_t> next_lost();
  void transmit(std::uint64_t number, TimePoint now);
  [[nodiscard]] Duration timeout() const;
  [[nodiscard]] bool something_to_send() const;

  std::unique_ptr<TcpCongestion> congestion_;
  std::uint64_t segments_;

  std::deque<Segment> outstanding_;  // first_ to next_ - 1
  TcpRanges selective_;              // what has been acknowledged beyond first_
  std::uint64_t first_ = 0;
  std::uint64_t next_ = 0;
  std::uint64_t in_flight_ = 0;
  std::uint64_t order_ = 0;
  std::uint64_t latest_delivered_order_ = 0;
  std::deque<Transmission> transmissions_;  // in their order, back to the oldest that may still be found lost
  std::deque<std::uint64_t> lost_;          // to be sent again; some may have arrived meanwhile

  bool recovering_ = false;
  std::uint64_t recovery_end_ = 0;
  std::uint64_t marks_ = 0;

  std::uint64_t delivered_ = 0;
  TimePoint delivered_time_{};
  TimePoint first_sent_{};
  std::uint64_t limited_until_ = 0;  // `delivered` up to which samples are the application's, not the path's

  Duration smoothed_{0};
  Duration variance_{0};
  Duration least_{0};
  int backoff_ = 0;
  TimePoint timer_ = kNever;
  TimePoint paced_until_{};
  TcpSenderCounts counts_;
};

}  // namespace sdr::simulation

// TcpCongestion: what a congestion control of the simulated TCP is told and what it answers: a window and a pace.
//
// The counterpart of the kernel's tcp_congestion_ops. All counts are of segments. Threads: one.
#pragma once

#include <cstdint>
#include <memory>

#include "sdr/units.hpp"

namespace sdr::simulation {

// After each acknowledgement.
struct TcpAckEvent {
  TimePoint now{};
  std::uint64_t delivered = 0;        // so far
  std::uint64_t newly_delivered = 0;  // by this acknowledgement
  std::uint64_t newly_lost = 0;       // found lost with it
  std::uint64_t in_flight_before = 0;
  std::uint64_t in_flight = 0;
  Duration rtt{0};        // of this acknowledgement; zero: none
  Duration least_rtt{0};  // ever
  bool in_recovery = false;
  // A rate sample, as draft-cheng-iccrg-delivery-rate-estimation and the kernel take it; interval zero: none.
  std::uint64_t sample_delivered = 0;
  Duration sample_interval{0};
  std::uint64_t sample_prior_delivered = 0;  // `delivered` when the sampled segment was sent
  bool application_limited = false;
};

class TcpCongestion {
 public:
  virtual ~TcpCongestion() = default;
  // Something was lost, or marked, for the first time in a window: recovery begins.
  virtual void begin_recovery(const TcpAckEvent& event) = 0;
  // What was outstanding when recovery began has been acknowledged.
  virtual void end_recovery(TimePoint now) = 0;
  // The retransmission timer ran out: `in_flight` segments are taken for lost.
  virtual void timeout(std::uint64_t in_flight, TimePoint now) = 0;
  // Every acknowledgement, after one of the calls above if there was one.
  virtual void acknowledged(const TcpAckEvent& event) = 0;

  [[nodiscard]] virtual std::uint64_t window() const = 0;
  // Segments per second; 0: not paced.
  [[nodiscard]] virtual double pace() const = 0;
};

// `hystart`: leave slow start when the delay rises (RFC 9406, without the conservative phase).
std::unique_ptr<TcpCongestion> make_tcp_cubic(bool hystart);
std::unique_ptr<TcpCongestion> make_tcp_bbr(std::uint64_t seed);

inline constexpr std::uint64_t kTcpInitialWindow = 10;  // RFC 6928

}  // namespace sdr::simulation

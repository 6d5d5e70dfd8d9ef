// PeerWatch: is the peer there, how far away, and do full-size packets pass?
//
// Pings until the peer has answered one of each size, then now and then while something is under way and nothing else
// is heard. Small ones measure the RTT; one padded to a full packet shows a path that swallows them (a PMTU black
// hole), which would otherwise look like 100 % loss of data with control getting through. Control datagrams may be
// smaller than packets, and a path may change: so data that never lands, while reports come, is evidence as well.
// Sans-I/O, one thread.
#pragma once

#include <cstdint>
#include <optional>

#include "reliability/control_message.hpp"
#include "reliability/timing.hpp"
#include "sdr/units.hpp"

namespace sdr::reliability {

inline constexpr Duration kFirstPing = std::chrono::milliseconds(10);
inline constexpr Duration kSlowestPing = std::chrono::seconds(1);
// So many small pings answered and no full-size one: the path does not carry full packets.
inline constexpr int kBlackHoleEvidence = 8;
// So many reports in a row, each behind data sent since the one before, and so many packets of it, none of them landed.
inline constexpr int kUnlandedRounds = 16;
inline constexpr std::uint64_t kUnlandedPackets = 16;

class PeerWatch {
 public:
  void heard(TimePoint now) { last_heard_ = now; }
  // Waiting for the peer begins (an operation was posted while nothing was under way).
  void begin_waiting(TimePoint now) { waiting_since_ = now; }

  void handle(const Pong& pong, TimePoint now, RttEstimator& rtt) {
    Stamp& newest = pong.full_size ? newest_full_ : newest_small_;
    const Stamp stamp = static_cast<Stamp>(now.time_since_epoch().count());
    if (pong.stamp <= newest || pong.stamp > stamp) return;  // a duplicate, or late
    newest = pong.stamp;
    (pong.full_size ? full_answers_ : small_answers_) += 1;
    rtt.sample(Duration(static_cast<std::int64_t>(stamp - pong.stamp)));
  }

  // How much data has been sent so far; how many packets had landed when the peer wrote a report, and the newest offers
  // it had seen.
  void note_sent(std::uint64_t bytes, TimePoint now) {
    if (bytes > round_bytes_ && round_since_ == 0) round_since_ = static_cast<Stamp>(now.time_since_epoch().count());
    sent_bytes_ = bytes;
  }
  void note_landed(std::uint64_t packets, Stamp echo) {
    if (packets > landed_) {
      landed_ = packets;
      unlanded_rounds_ = 0;
      bytes_at_landing_ = sent_bytes_;
    } else if (round_since_ == 0 || echo <= round_since_) {
      return;
    } else {
      ++unlanded_rounds_;
    }
    round_since_ = 0;
    round_bytes_ = sent_bytes_;
  }

  // The ping that is due. Until ready() both sizes in turn; later a small one when `waiting` and all is silent.
  std::optional<Ping> poll(bool waiting, TimePoint now) {
    if (ready() && !waiting) return std::nullopt;
    if (now < next_timeout(waiting)) return std::nullopt;
    if (ready()) {
      interval_ = kSlowestPing / 4;
    } else if (pings_ % 2 == 1) {  // they go in pairs: both sizes are known after one round trip
      interval_ = std::min(interval_ * 2, kSlowestPing);
    }
    next_ping_ = pings_ % 2 == 0 && !ready() ? now : now + interval_;
    const bool full = !ready() && pings_ % 2 == 1;
    ++pings_;
    return Ping{static_cast<Stamp>(now.time_since_epoch().count()), full};
  }
  [[nodiscard]] TimePoint next_timeout(bool waiting) const {
    if (!ready()) return next_ping_;
    return waiting ? std::max(next_ping_, last_heard_ + kSlowestPing / 4) : kNever;
  }
  [[nodiscard]] bool ready() const { return small_answers_ > 0 && full_answers_ > 0; }
  [[nodiscard]] bool black_hole(std::uint64_t mtu) const {
    return (full_answers_ == 0 && small_answers_ >= kBlackHoleEvidence) ||
           (unlanded_rounds_ >= kUnlandedRounds && sent_bytes_ - bytes_at_landing_ >= kUnlandedPackets * mtu);
  }
  // How long nothing has been heard while something was waited for.
  [[nodiscard]] Duration silence(TimePoint now) const { return now - std::max(last_heard_, waiting_since_); }
  // When the silence will have lasted for `limit`.
  [[nodiscard]] TimePoint deadline(Duration limit) const { return std::max(last_heard_, waiting_since_) + limit; }

 private:
  TimePoint last_heard_{};
  TimePoint waiting_since_{};
  TimePoint next_ping_ = TimePoint::min();
  Duration interval_ = kFirstPing;
  int pings_ = 0;
  int small_answers_ = 0;
  int full_answers_ = 0;
  Stamp newest_small_ = 0;
  Stamp newest_full_ = 0;
  std::uint64_t landed_ = 0;
  std::uint64_t sent_bytes_ = 0;
  std::uint64_t bytes_at_landing_ = 0;
  std::uint64_t round_bytes_ = 0;  // sent when the last round ended
  Stamp round_since_ = 0;          // when more had been sent; 0: not yet
  int unlanded_rounds_ = 0;
};

}  // namespace sdr::reliability

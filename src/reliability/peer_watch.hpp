// PeerWatch: is the peer there, how far away, and do full-size packets pass?
//
// Pings until the peer has answered one of each size, then now and then while something is under way and nothing else
// is heard. Small ones measure the RTT; one padded to a full packet shows a path that swallows them (a PMTU black hole),
// which would otherwise look like 100 % loss of data with control getting through.
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

class PeerWatch {
 public:
  void heard(TimePoint now) { last_heard_ = now; }
  // Waiting for the peer begins (an operation was posted while nothing was under way).
  void begin_waiting(TimePoint now) { waiting_since_ = now; }

  void handle(const Pong& pong, TimePoint now, RttEstimator& rtt) {
    (pong.full_size ? full_answers_ : small_answers_) += 1;
    const Stamp stamp = static_cast<Stamp>(now.time_since_epoch().count());
    if (stamp > pong.stamp) rtt.sample(Duration(static_cast<std::int64_t>(stamp - pong.stamp)));
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
  [[nodiscard]] bool answered() const { return small_answers_ > 0; }
  [[nodiscard]] bool black_hole() const {
    return full_answers_ == 0 && small_answers_ > 0 && small_answers_ >= kBlackHoleEvidence;
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
};

}  // namespace sdr::reliability

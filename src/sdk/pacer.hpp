// Pacer: says how many bytes may be injected now, at a given rate (the paper assumes a leased line: section 2.2).
//
// Model: a leaky bucket kept as the time at which the wire will be free again. Sending n bytes moves it on by n / rate.
// A sender that was held up (scheduler, full queue) may catch up some of it at once: what a switch's buffer holds,
// within bounds of time. What it lost beyond that is gone, so a stall never becomes a burst that overruns the path's
// queue. At the path's own rate what is caught up stands in that queue from then on, and the path has something to do
// during the next stall.
//
// Threads: one. Time comes in as an argument.
#pragma once

#include <algorithm>
#include <cstdint>

#include "sdr/units.hpp"

namespace sdr::sdk {

inline constexpr Bytes kCatchUp = 1_MiB;
inline constexpr Duration kLeastCatchUp = std::chrono::milliseconds(2);
inline constexpr Duration kMostCatchUp = std::chrono::milliseconds(9);
// Packets are released in batches of at most this time, so that one system call carries several of them.
inline constexpr Duration kBatchTime = std::chrono::microseconds(100);

class Pacer {
 public:
  // `most_catch_up`: at least kLeastCatchUp.
  explicit Pacer(Bandwidth rate, Duration most_catch_up = kMostCatchUp) : most_catch_up_(most_catch_up) {
    set_rate(rate);
  }

  void set_rate(Bandwidth rate) {
    rate_ = rate;
    catch_up_ = std::clamp(rate.time_for(kCatchUp), kLeastCatchUp, most_catch_up_);
  }
  [[nodiscard]] Bandwidth rate() const { return rate_; }
  // How much of a stall is caught up at most.
  [[nodiscard]] Duration catch_up() const { return catch_up_; }
  [[nodiscard]] bool limited() const { return rate_.limited(); }

  // Bytes that may go now: zero until next_time(). The last packet may overdraw.
  [[nodiscard]] std::uint64_t allowance(TimePoint now) {
    if (!limited()) return UINT64_MAX;
    if (free_at_ < now - catch_up_) free_at_ = now - catch_up_;
    if (now < free_at_) return 0;
    return std::max<std::uint64_t>(1, rate_.bytes_in(now - free_at_ + kBatchTime).count);
  }
  void spend(std::uint64_t bytes) {
    if (!limited()) return;
    // Kept in double nanoseconds below one: at 400 Gbit/s a packet is 82 ns and the rounding would add up.
    const double exact = static_cast<double>(bytes) * 8e9 / rate_.bits_per_second + fraction_;
    const auto whole = static_cast<std::int64_t>(exact);
    fraction_ = exact - static_cast<double>(whole);
    free_at_ += Duration(whole);
  }
  // When allowance() is next above zero.
  [[nodiscard]] TimePoint next_time() const { return limited() ? free_at_ : TimePoint::min(); }
  // Nothing waited to be sent from `since` to `now`: that time is not credit.
  void idle(TimePoint since, TimePoint now) {
    if (free_at_ < now) free_at_ = std::min(now, std::max(free_at_, now - catch_up_) + (now - since));
  }

 private:
  Duration most_catch_up_;
  Bandwidth rate_;
  Duration catch_up_{0};
  TimePoint free_at_{};
  double fraction_ = 0;
};

}  // namespace sdr::sdk

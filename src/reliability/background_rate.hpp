// BackgroundRate: uses what nobody else wants, in the manner of LEDBAT++.
//
// It holds a window that keeps a small queue: up to a tenth of the RTT, within kLeastTarget and kMostTarget. With less
// than a quarter of that the window grows, by a tenth a round trip; with more it becomes less than what got through
// would need without a queue: whoever builds one, as a TCP does that looks for its rate, drives it down to
// kLeastPackets a round trip. Every now and then it keeps still for two round
// trips, so that the delay of the empty path is seen again (LEDBAT++, "periodic slowdowns").
//
// The queue is the less of what the one-way delay and the RTT say: clocks drift, and the way back has queues, too.
// Sans-I/O, fixed memory. Source: draft-irtf-iccrg-ledbat-plus-plus; RFC 6817.
#pragma once

#include "reliability/rate_controller.hpp"

namespace sdr::reliability {

class BackgroundRate final : public RateController {
 public:
  struct Options {
    Bandwidth most{};  // zero: no limit
  };
  static constexpr Duration kLeastTarget = std::chrono::milliseconds(4);
  static constexpr Duration kMostTarget = std::chrono::milliseconds(15);
  static constexpr double kLeastPackets = 2;

  explicit BackgroundRate(const Options& options) : options_(options) {}

  void begin(Duration rtt, std::uint32_t packet_bytes, TimePoint now) override;
  void reported(const RateSample& sample) override;
  [[nodiscard]] Bandwidth pace() const override;
  [[nodiscard]] Bandwidth bandwidth() const override { return {rate_}; }
  [[nodiscard]] std::uint64_t window() const override;
  [[nodiscard]] bool congested() const override { return congested_rounds_ > 0; }
  void describe(RateStatus& status) const override;

 private:
  // The least of a time, over kBaseWindow to twice that.
  struct Least {
    Duration now = Duration::max();
    Duration before = Duration::max();
    TimePoint since{};
    Duration add(Duration value, TimePoint at);
  };
  enum class Phase : std::uint8_t { StartUp, Steady, Still };

  void end_round(TimePoint now);
  void keep_still(TimePoint now);
  [[nodiscard]] Duration target() const;
  [[nodiscard]] double least() const { return kLeastPackets * packet_bytes_; }

  Options options_;
  double packet_bytes_ = 1500;
  Phase phase_ = Phase::StartUp;
  double window_ = 0;  // bytes
  double saved_ = 0;   // while it keeps still
  double rate_ = 0;    // bit/s that landed in the last round
  Least delay_;
  Least rtt_;
  Duration rtt_min_{0};
  Duration rtt_latest_{0};
  Duration queue_{0};
  Duration round_queue_ = Duration::max();  // least of the round
  double packets_ = 0;                      // of the round
  double lost_ = 0;
  std::uint64_t marks_ = 0;
  double round_rate_ = 0;
  bool limited_ = false;
  int still_rounds_ = 0;
  int congested_rounds_ = 0;
  TimePoint still_at_ = TimePoint::max();  // when to keep still again
};

}  // namespace sdr::reliability

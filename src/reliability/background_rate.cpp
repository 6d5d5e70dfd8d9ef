#include "reliability/background_rate.hpp"

#include <algorithm>

namespace sdr::reliability {
namespace {

constexpr double kFirstPackets = 4;
constexpr double kGrowth = 1.1;  // a round trip, in steady state
constexpr double kShrinking = 0.5;
constexpr double kSlowGrowth = 1.02;
constexpr double kTargetPackets = 8;  // the target is at least the time of so many
constexpr double kPaceGain = 1.1;
constexpr double kStartGain = 2;
constexpr double kLossShare = 0.06;  // of a round's packets: more than what comes at random
constexpr double kLeastJudged = 20;  // packets
constexpr Duration kBaseWindow = std::chrono::seconds(30);
constexpr Duration kSteadyLeast = std::chrono::seconds(5);  // between two times of keeping still
constexpr int kStillRounds = 2;
constexpr int kSteadyShare = 40;  // of the time that it keeps still

double ns(Duration d) {
  return static_cast<double>(d.count());
}

}  // namespace

Duration BackgroundRate::Least::add(Duration value, TimePoint at) {
  if (at - since > kBaseWindow) {
    before = now;
    now = value;
    since = at;
  }
  now = std::min(now, value);
  return std::min(now, before);
}

void BackgroundRate::begin(Duration rtt, std::uint32_t packet_bytes, TimePoint now) {
  packet_bytes_ = packet_bytes;
  window_ = kFirstPackets * packet_bytes_;
  rtt_latest_ = rtt_min_ = std::max(rtt, Duration(1));
  rtt_.since = delay_.since = now;
  rtt_.add(rtt, now);
}

Duration BackgroundRate::target() const {
  const Duration packets = rate_ > 0
                               ? Bandwidth{rate_}.time_for({static_cast<std::uint64_t>(kTargetPackets * packet_bytes_)})
                               : Duration::zero();
  return std::max(std::clamp(rtt_min_ / 10, kLeastTarget, kMostTarget), packets);
}

Bandwidth BackgroundRate::pace() const {
  const double gain = phase_ == Phase::StartUp ? kStartGain : kPaceGain;
  double rate = gain * window_ * 8e9 / std::max(ns(rtt_latest_), 1.0);
  if (options_.most.limited()) rate = std::min(rate, options_.most.bits_per_second);
  return {rate};
}

std::uint64_t BackgroundRate::window() const {
  return static_cast<std::uint64_t>(window_ + 2 * packet_bytes_);
}

void BackgroundRate::reported(const RateSample& s) {
  if (s.rtt > Duration::zero()) {
    rtt_latest_ = s.rtt;
    rtt_min_ = rtt_.add(s.rtt, s.now);
    queue_ = s.rtt - rtt_min_;
  }
  if (s.delay != Duration::zero()) queue_ = std::min(queue_, s.delay - delay_.add(s.delay, s.now));
  round_queue_ = std::min(round_queue_, queue_);
  packets_ += static_cast<double>(s.packets_landed + s.packets_lost);
  lost_ += s.dark ? 0 : static_cast<double>(s.packets_lost);
  marks_ += s.marks;
  limited_ = limited_ || s.app_limited;
  round_rate_ = std::max(round_rate_, s.rate.bits_per_second);
  const bool too_long = phase_ == Phase::StartUp && queue_ > target() * 3 / 4;
  if (too_long || s.round_start) end_round(s.now);
}

void BackgroundRate::end_round(TimePoint now) {
  if (congested_rounds_ > 0) --congested_rounds_;
  if (round_rate_ > 0) rate_ = round_rate_;
  const bool loses = packets_ >= kLeastJudged && lost_ > kLossShare * packets_ + 2;
  const bool congested = loses || marks_ > 0;
  if (congested) congested_rounds_ = 2;
  const Duration queue = round_queue_ == Duration::max() ? Duration::zero() : round_queue_;
  switch (phase_) {
    case Phase::StartUp:
      if (congested || queue_ > target() * 3 / 4) {
        // What was sent a round trip ago is what the path carries.
        window_ = std::max(least(), window_ / 2);
        phase_ = Phase::Steady;
        still_at_ = now + kSteadyLeast;
      } else if (!limited_) {
        window_ *= 2;
      }
      break;
    case Phase::Steady:
      if (congested) {
        window_ *= kShrinking;
      } else if (queue > target()) {
        // What got through needs no more with a short queue: ours leaves it, and where one stays it is of others.
        window_ = std::min(window_, rate_ * ns(rtt_min_ + target() / 4) / 8e9);
      } else if (queue < target() / 4 && !limited_) {
        window_ = window_ * (queue < target() / 16 ? kGrowth : kSlowGrowth) + packet_bytes_ / 4;
      }
      // The delay of the empty path is known as long as it is seen now and then.
      if (queue < target() / 8) still_at_ = now + kSteadyLeast;
      if (now >= still_at_) keep_still(now);
      break;
    case Phase::Still:
      if (--still_rounds_ > 0) break;
      window_ = saved_;
      phase_ = Phase::Steady;
      break;
  }
  window_ = std::max(window_, least());
  round_queue_ = Duration::max();
  packets_ = lost_ = round_rate_ = 0;
  marks_ = 0;
  limited_ = false;
}

void BackgroundRate::keep_still(TimePoint now) {
  phase_ = Phase::Still;
  still_rounds_ = kStillRounds;
  saved_ = window_;
  window_ = least();
  still_at_ = now + std::max<Duration>(kSteadyLeast, rtt_latest_ * kStillRounds * kSteadyShare);
}

void BackgroundRate::describe(RateStatus& status) const {
  status.state = phase_ == Phase::StartUp ? "start-up"
                 : phase_ == Phase::Still ? "still"
                 : queue_ > target()      ? "yield"
                                          : "steady";
  status.rtt_min = rtt_min_;
  status.queue_delay = queue_;
}

}  // namespace sdr::reliability

#include "sdr/link_estimator.hpp"

#include <algorithm>
#include <cmath>

namespace sdr {
namespace {

constexpr double kLongMemory = 16.0 * 1024 * 1024;
constexpr std::array<double, 3> kShortMemories = {1024, 8 * 1024, 64 * 1024};
constexpr double kRestored = 1e8;
constexpr double kDoubt = 4;          // standard deviations in loss_upper
constexpr double kSurprise = 4;       // and between the memories, for a short one to be believed
constexpr double kLeastEvidence = 4;  // lost packets before it can be
constexpr double kRunMemory = 4096;
constexpr double kRateDecay = 0.98;  // of the highest delivery rate, a sample

}  // namespace

void LinkEstimator::restore(double loss, double burst) {
  const std::lock_guard lock(mutex_);
  long_ = {kRestored, std::clamp(loss, 0.0, 1.0) * kRestored};
  short_ = {};
  runs_ = kRunMemory;
  run_losses_ = kRunMemory * std::max(burst, 1.0);
}

double LinkEstimator::burst() const {
  return (run_losses_ + 1) / (runs_ + 1);
}

// Losses in runs of mean b vary as if there were fewer of them: by a factor of 2b - 1 for geometric runs.
double LinkEstimator::deviation(double lost) const {
  return std::sqrt(lost * (2 * burst() - 1));
}

void LinkEstimator::saw_packets(std::uint64_t sent, std::int64_t lost, bool exact) {
  const std::lock_guard lock(mutex_);
  long_.add(static_cast<double>(sent), static_cast<double>(lost), std::max(kLongMemory, long_.packets));
  if (!exact) return;
  for (std::size_t i = 0; i < short_.size(); ++i)
    short_[i].add(static_cast<double>(sent), static_cast<double>(lost), kShortMemories[i]);
  // What is new stands out most in the shortest memory that has seen enough of it; the sample itself is one.
  if (stands_out({static_cast<double>(sent), static_cast<double>(lost)})) {
    long_ = {static_cast<double>(sent), static_cast<double>(lost)};
    short_.fill(long_);
    return;
  }
  const auto newest = std::find_if(short_.begin(), short_.end(), [this](const Memory& m) { return stands_out(m); });
  if (newest == short_.end()) return;
  long_ = *newest;
  std::fill(newest, short_.end(), long_);
}

bool LinkEstimator::stands_out(const Memory& memory) const {
  const double expected = memory.packets * long_.lost / long_.packets;
  return memory.lost >= kLeastEvidence && memory.lost - kSurprise * deviation(memory.lost) > expected;
}

void LinkEstimator::Memory::add(double more_packets, double more_lost, double most) {
  packets += more_packets;
  lost = std::max(0.0, lost + more_lost);
  if (packets <= most) return;
  lost *= most / packets;
  packets = most;
}

void LinkEstimator::saw_runs(std::uint64_t lost, std::uint64_t runs) {
  if (runs == 0) return;
  const std::lock_guard lock(mutex_);
  run_losses_ += static_cast<double>(lost);
  runs_ += static_cast<double>(runs);
  if (runs_ > kRunMemory) {
    run_losses_ *= kRunMemory / runs_;
    runs_ = kRunMemory;
  }
}

void LinkEstimator::saw_rtt(Duration min, Duration smoothed, Duration variance) {
  const std::lock_guard lock(mutex_);
  link_.rtt_min = min;
  link_.rtt_smoothed = smoothed;
  link_.rtt_variance = variance;
}

void LinkEstimator::saw_delivery(Bandwidth rate) {
  const std::lock_guard lock(mutex_);
  link_.delivery_rate.bits_per_second =
      std::max(rate.bits_per_second, link_.delivery_rate.bits_per_second * kRateDecay);
}

LinkEstimate LinkEstimator::estimate() const {
  const std::lock_guard lock(mutex_);
  LinkEstimate out = link_;
  out.packets = long_.packets;
  out.loss = long_.lost / long_.packets;
  out.loss_upper = std::min(1.0, (long_.lost + kDoubt * deviation(long_.lost)) / long_.packets);
  out.burst = burst();
  return out;
}

}  // namespace sdr

// DelayHistogram: how often which delay was seen, to within 0.8 %: 64 buckets to each power of two.
//
// Constant memory, a few nanoseconds an entry. Threads: one.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

#include "sdr/units.hpp"

namespace sdr::experiment {

class DelayHistogram {
 public:
  void add(Duration delay) {
    const auto ns = static_cast<std::uint64_t>(std::max(delay, Duration::zero()).count());
    ++buckets_[bucket_of(ns)];
    ++count_;
    sum_ += static_cast<double>(ns);
  }

  [[nodiscard]] std::uint64_t count() const { return count_; }
  [[nodiscard]] Duration mean() const {
    return Duration(count_ == 0 ? 0 : static_cast<std::int64_t>(sum_ / static_cast<double>(count_)));
  }
  // The least delay that at least `share` of the entries do not exceed.
  [[nodiscard]] Duration percentile(double share) const {
    const double wanted = share * static_cast<double>(count_);
    double seen = 0;
    for (std::size_t i = 0; i < buckets_.size(); ++i) {
      seen += static_cast<double>(buckets_[i]);
      if (buckets_[i] != 0 && seen >= wanted) return middle_of(i);
    }
    return Duration::zero();
  }

 private:
  static constexpr int kBits = 6;
  static constexpr std::uint64_t kFine = std::uint64_t{1} << kBits;

  static std::size_t bucket_of(std::uint64_t ns) {
    if (ns < 2 * kFine) return ns;
    const int shift = static_cast<int>(std::bit_width(ns)) - kBits - 1;
    return static_cast<std::size_t>(static_cast<std::uint64_t>(shift) * kFine + (ns >> shift));
  }
  static Duration middle_of(std::size_t bucket) {
    if (bucket < 2 * kFine) return Duration(static_cast<std::int64_t>(bucket));
    const std::uint64_t shift = bucket / kFine - 1;
    const std::uint64_t low = (bucket - shift * kFine) << shift;
    return Duration(static_cast<std::int64_t>(low + (std::uint64_t{1} << shift) / 2));
  }

  std::array<std::uint64_t, (64 - kBits + 1) * kFine> buckets_{};
  std::uint64_t count_ = 0;
  double sum_ = 0;
};

}  // namespace sdr::experiment

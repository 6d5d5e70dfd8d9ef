#include "sdr/completion_times.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace sdr::cli {
namespace {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

}  // namespace

CompletionTimes::CompletionTimes(std::vector<Duration> times) : sorted_(std::move(times)), mean_ms_(kUnknown) {
  std::sort(sorted_.begin(), sorted_.end());
  const Duration sum = std::accumulate(sorted_.begin(), sorted_.end(), Duration(0));
  if (!sorted_.empty()) mean_ms_ = milliseconds(sum) / static_cast<double>(sorted_.size());
}

double CompletionTimes::percentile_ms(double share) const {
  const auto n = static_cast<double>(sorted_.size());
  if (n == 0) return kUnknown;
  const auto rank = static_cast<std::size_t>(std::clamp(std::ceil(share * n), 1.0, n));
  return milliseconds(sorted_[rank - 1]);
}

Json CompletionTimes::to_json() const {
  return {{"mean", number_or_null(mean_ms_)},
          {"p50", number_or_null(percentile_ms(0.5))},
          {"p99", number_or_null(percentile_ms(0.99))},
          {"p999", number_or_null(percentile_ms(0.999))},
          {"max", number_or_null(percentile_ms(1))}};
}

Json CompletionTimes::slowdown(double ideal_ms) const {
  return {{"mean", number_or_null(mean_ms_ / ideal_ms)},
          {"p50", number_or_null(percentile_ms(0.5) / ideal_ms)},
          {"p99", number_or_null(percentile_ms(0.99) / ideal_ms)},
          {"p999", number_or_null(percentile_ms(0.999) / ideal_ms)}};
}

std::string CompletionTimes::text() const {
  return fmt::format("mean {}, p50 {}, p99 {}, p99.9 {}, max {}", in_ms(mean_ms_), in_ms(percentile_ms(0.5)),
                     in_ms(percentile_ms(0.99)), in_ms(percentile_ms(0.999)), in_ms(percentile_ms(1)));
}

std::string in_ms(double ms) {
  return std::isfinite(ms) ? to_string(Duration(static_cast<std::int64_t>(ms * 1e6))) : "unknown";
}

}  // namespace sdr::cli

// CompletionTimes: how long Writes took, as the figures that every report shows. Percentiles are by nearest rank.
//
// A plain value; any thread.
#pragma once

#include <string>
#include <vector>

#include "sdr/report.hpp"
#include "sdr/units.hpp"

namespace sdr::cli {

class CompletionTimes {
 public:
  explicit CompletionTimes(std::vector<Duration> times);

  // NaN without any.
  [[nodiscard]] double mean_ms() const { return mean_ms_; }
  [[nodiscard]] double percentile_ms(double share) const;

  // {"mean": ..., "p50": ..., "p99": ..., "p999": ..., "max": ...}
  [[nodiscard]] Json to_json() const;
  // {"mean": ..., "p50": ..., "p99": ..., "p999": ...} over `ideal_ms`; nulls when that is not known.
  [[nodiscard]] Json slowdown(double ideal_ms) const;
  // "mean 25 ms, p50 ..."
  [[nodiscard]] std::string text() const;

 private:
  std::vector<Duration> sorted_;
  double mean_ms_;
};

// "25.0 ms"
[[nodiscard]] std::string in_ms(double ms);

}  // namespace sdr::cli

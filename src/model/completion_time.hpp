// CompletionTime: how long a reliable Write takes, as a distribution; percentiles need no sampling.
//
// It is a mixture of selective repeats, each behind a delay that is certain (paper sections 4.2.1, 4.2.2):
//
//   selective repeat   T_SR(M)
//   erasure coding     F of the submessages fail, F binomial:
//                      F = 0: (M + ceil(M/R)) T_inj + RTT
//                      F > 0: (M + ceil(M/R)) T_inj + RTT + beta RTT + T_SR(F k)
//
//   adaptive           layer j of the tail's parity is the one that completes it (adaptive_tail.hpp):
//                      (M / (1 - p) + j L) T_inj + RTT, and behind all parity as many passes of covers as it takes
//                      none suffices: all of it, and a round trip more
//
// The receiver starts FTO = (M + ceil(M/R)) T_inj + beta RTT with the first chunk, half an RTT after the sender began;
// its NACK is half an RTT on the way back: one RTT more. T_SR has the RTT of the last acknowledgement in it.
//
// Exact under the assumptions of SelectiveRepeat, when submessages fail independently. Immutable; any thread.
#pragma once

#include <memory>
#include <vector>

#include "model/scheme.hpp"
#include "model/selective_repeat.hpp"
#include "model/transfer.hpp"
#include "sdr/result.hpp"
#include "sdr/units.hpp"

namespace sdr::model {

// The figures that tables show.
struct Summary {
  Duration mean{0};
  Duration p50{0};
  Duration p99{0};
  Duration p999{0};
};

class CompletionTime {
 public:
  static Result<CompletionTime> of(const Transfer& transfer, const SchemeSpec& scheme);

  // P(complete by `time`).
  [[nodiscard]] double cdf(Duration time) const;
  [[nodiscard]] Duration mean() const;
  // The earliest time by which the given share of Writes is complete. Refused unless 0 < share < 1.
  [[nodiscard]] Result<Duration> percentile(double share) const;
  [[nodiscard]] Summary summary() const;
  // P(at least one submessage fails); 0 of selective repeat.
  [[nodiscard]] double fallback() const { return fallback_; }

 private:
  struct Part {
    double weight;
    double delay;
    SelectiveRepeat repeat;
  };

  explicit CompletionTime(double rtt) : rtt_(rtt) {}
  void add_fallbacks(const Transfer& transfer, const SchemeSpec& scheme);
  void add_layers(const Transfer& transfer, const SchemeSpec& scheme);
  [[nodiscard]] double survival(double seconds) const;
  [[nodiscard]] double quantile(double share) const;

  double rtt_;
  double fallback_ = 0;
  std::vector<Part> parts_;
};

// The paper's expression for coded schemes (section 4.2.2), with the expected failures in place of their distribution:
//
//   (M + ceil(M/R)) T_inj + P_fallback (RTT + beta RTT) + E[T_SR(E[failures] k)]
//
// E[T_SR(x)] between whole numbers of chunks is interpolated. It grows ever more slowly with x, so that by Jensen's
// inequality this is no lower than CompletionTime's mean; see docs/model.md. For selective repeat: E[T_SR(M)].
Result<Duration> paper_mean(const Transfer& transfer, const SchemeSpec& scheme);

}  // namespace sdr::model

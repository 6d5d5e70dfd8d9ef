// SimReportCard: what the runs of `sdr sim` amount to, as JSON and as a table for a person.
//
// ideal = payload bits / rate + RTT and floor = M T / (1 - p) + RTT count payload alone, as sdr perf and sdr plan do.
// The theory (docs/model.md) gets what is on the simulated wire: chunks with the headers of their packets. It knows
// losses, single or in runs; of a link with outages or a recorded trace it has nothing to say.
//
// Everything but `speed` is a function of the trial alone, so that the same command prints the same JSON.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "experiment/trials.hpp"
#include "model/completion_time.hpp"
#include "sdr/completion_times.hpp"
#include "sdr/options.hpp"
#include "sdr/report.hpp"

namespace sdr::cli {

// How fast the simulation itself was.
struct SimSpeed {
  Duration wall{0};
  Duration cpu{0};  // of all threads
};

// {"mean": ..., "p50": ..., "p99": ..., "p999": ...}, in milliseconds.
[[nodiscard]] Json summary_json(const model::Summary& summary);

class SimReportCard {
 public:
  SimReportCard(const SchemeChoice& scheme, const experiment::WriteTrial& trial,
                const std::vector<experiment::TrialResult>& results);

  // With `speed` also how fast it went, which differs from time to time.
  [[nodiscard]] Json to_json(const std::optional<SimSpeed>& speed) const;
  void print(const SimSpeed& speed) const;
  [[nodiscard]] bool good() const { return failed_ == 0; }
  // What became of the first Write that failed, in one line.
  [[nodiscard]] std::string complaint() const;

 private:
  [[nodiscard]] double ideal_ms() const;
  [[nodiscard]] double goodput_gbps() const;

  SchemeChoice scheme_;
  const experiment::WriteTrial& trial_;
  std::uint64_t runs_;
  CompletionTimes times_;
  experiment::TrialResult sums_;
  std::uint64_t failed_ = 0;
  std::string first_failure_;
  std::optional<Duration> floor_;
  std::optional<model::Summary> theory_;
};

}  // namespace sdr::cli

// `sdr sim` with several flows over one path: from the texts of its options to the report and the picture.
//
// Threads: one.
#pragma once

#include <string>
#include <vector>

#include "experiment/shared_trial.hpp"
#include "sdr/result.hpp"

namespace sdr::cli {

struct FlowsOptions {
  std::vector<std::string> flows;    // as parse_flow() reads them; none: `sdr sim` of Writes
  std::vector<std::string> changes;  // TIME:KEYS of the path
  std::string queue;                 // a discipline as `sdr emulate` has it; empty: drop-tail
  std::string duration = "30s";
  std::string interval;
  std::string plot;  // a file
  bool series = false;
};

// `link` is the path's.
Result<experiment::SharedTrial> shared_trial(const FlowsOptions& options, const std::string& link);

// Runs it, reports and draws; the exit code.
int run_flows(const FlowsOptions& options, const experiment::SharedTrial& trial, bool json, bool speed);

}  // namespace sdr::cli

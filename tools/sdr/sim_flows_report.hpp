// What `sdr sim` says about several flows over one path: a line a flow, and what they made of the path together.
//
// Threads: one.
#pragma once

#include <optional>

#include "experiment/shared_trial.hpp"
#include "sdr/report.hpp"
#include "sdr/sim_report.hpp"

namespace sdr::cli {

// `series`: also what happened over time.
Json flows_json(const experiment::SharedTrial& trial, const experiment::SharedResult& result, bool series,
                const std::optional<SimSpeed>& speed);
void print_flows(const experiment::SharedResult& result, const SimSpeed& speed);

}  // namespace sdr::cli

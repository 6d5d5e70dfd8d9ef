// What `sdr plan` says: a table for a person, JSON for a script. docs/cli.md has the fields.
//
// Pure but for printing; one thread.
#pragma once

#include <string>
#include <vector>

#include "model/planner.hpp"
#include "sdr/report.hpp"
#include "sdr/units.hpp"

namespace sdr::cli {

// What was asked; the plan answers it.
struct PlanQuestion {
  model::PathSpec path;
  Bytes message;
  std::vector<std::string> notes;  // about the question: what a profile does not say for sure
};

Json plan_to_json(const PlanQuestion& question, const model::Plan& plan);
void print_plan(const PlanQuestion& question, const model::Plan& plan);

}  // namespace sdr::cli

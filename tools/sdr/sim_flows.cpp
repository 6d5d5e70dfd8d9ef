#include "sdr/sim_flows.hpp"

#include <fmt/core.h>

#include <fstream>
#include <optional>
#include <utility>

#include "runtime/clock.hpp"
#include "sdr/driver.hpp"
#include "sdr/flow_text.hpp"
#include "sdr/report.hpp"
#include "sdr/sim_flows_plot.hpp"
#include "sdr/sim_flows_report.hpp"

namespace sdr::cli {
namespace {

constexpr std::string_view kName = "sim";

Error cannot_write(const std::string& file) {
  return {ErrorCode::System, fmt::format("cannot write {}", file)};
}

}  // namespace

Result<experiment::SharedTrial> shared_trial(const FlowsOptions& options, const std::string& link) {
  experiment::SharedTrial trial;
  Result<simulation::LinkSpec> read = simulation::LinkSpec::parse(link);
  if (!read) return read.error();
  trial.path.link = std::move(read).value();
  trial.seed = trial.path.link.seed;
  const auto queue = simulation::QueueSpec::parse(options.queue.empty() ? "drop-tail" : options.queue, trial.path.link);
  if (!queue) return queue.error();
  trial.path.queue = *queue;
  for (const std::string& change : options.changes) {
    if (Result<void> added = trial.path.add_change(change); !added) return added.error();
  }
  for (const std::string& text : options.flows) {
    Result<experiment::FlowSpec> flow = parse_flow(text);
    if (!flow) return flow.error();
    trial.flows.push_back(std::move(flow).value());
  }
  trial.duration = *parse_duration(options.duration);
  if (!options.interval.empty()) trial.interval = *parse_duration(options.interval);
  if (Result<void> fine = check(trial); !fine) return fine.error();
  return trial;
}

int run_flows(const FlowsOptions& options, const experiment::SharedTrial& trial, bool json, bool speed) {
  // Before the long work: a name that cannot be written is known now.
  std::ofstream plot;
  if (!options.plot.empty()) {
    plot.open(options.plot, std::ios::binary | std::ios::trunc);
    if (!plot) return complain(kName, cannot_write(options.plot));
  }
  const TimePoint begin = Driver::now();
  const Duration cpu_begin = runtime::cpu_time();
  const Result<experiment::SharedResult> result = experiment::run(trial);
  if (!result) return complain(kName, result.error());
  const SimSpeed took{.wall = Driver::now() - begin, .cpu = runtime::cpu_time() - cpu_begin};
  if (plot.is_open()) {
    draw_flows(*result, plot);
    if (!plot.flush()) return complain(kName, cannot_write(options.plot));
  }
  if (json) {
    print_json(flows_json(trial, *result, options.series, speed ? std::optional(took) : std::nullopt));
  } else {
    print_flows(*result, took);
  }
  for (const experiment::FlowResult& flow : result->flows) {
    if (flow.error) return complain(kName, {flow.error->code, fmt::format("{}: {}", flow.name, flow.error->message)});
  }
  return kDone;
}

}  // namespace sdr::cli

#include "sdr/sweep_cell.hpp"

#include <fmt/core.h>

#include "experiment/trials.hpp"
#include "model/samples.hpp"
#include "sdr/completion_times.hpp"
#include "sdr/sim_report.hpp"
#include "sdr/sim_trial.hpp"

namespace sdr::cli {
namespace {

// What beginning and ending a run costs, in packets.
constexpr double kRunCost = 500;

// What identifies a cell in every kind of sweep.
Json parameters(const SweepCell& cell, const experiment::WriteTrial& trial) {
  const QueuePairOptions& qp = trial.connection.queue_pair;
  Json json = {{"cell", cell.number}};
  cell.scheme.add_to(json);
  json["size_bytes"] = cell.size.count;
  json["rtt_ms"] = milliseconds(cell.rtt);
  json["rate_gbps"] = cell.rate.bits_per_second / 1e9;
  json["loss"] = cell.loss;
  json["burst"] = cell.burst;
  json["mtu"] = qp.mtu.count;
  json["chunk_bytes"] = qp.mtu.count * qp.packets_per_chunk;
  return json;
}

Result<Json> simulated(const SweepSpec& spec, const SweepCell& cell, unsigned threads) {
  const experiment::WriteTrial trial = spec.trial(cell);
  const auto results = experiment::run_all(trial, {.runs = spec.runs, .threads = threads});
  if (!results) return results.error();
  Json json = parameters(cell, trial);
  json.update(SimReportCard(cell.scheme, trial, *results).to_json(std::nullopt));
  return json;
}

Result<Json> in_theory(const SweepSpec& spec, const SweepCell& cell, unsigned threads) {
  const experiment::WriteTrial trial = spec.trial(cell);
  const Result<model::Transfer> payload = transfer_of(trial, 0);
  if (!payload) return payload.error();
  const Result<model::Transfer> wire = transfer_of(trial, trial.packet_overhead);
  if (!wire) return wire.error();
  const Result<model::CompletionTime> time = time_in_theory(trial);
  if (!time) return time.error();
  Json json = parameters(cell, trial);
  const double ideal_ms = milliseconds(cell.rate.time_for(cell.size) + cell.rtt);
  const model::Summary summary = time->summary();
  json["ideal_ms"] = ideal_ms;
  json["floor_ms"] = milliseconds(payload->floor());
  json["theory_ms"] = summary_json(summary);
  json["theory_slowdown"] = {{"mean", milliseconds(summary.mean) / ideal_ms},
                             {"p50", milliseconds(summary.p50) / ideal_ms},
                             {"p99", milliseconds(summary.p99) / ideal_ms},
                             {"p999", milliseconds(summary.p999) / ideal_ms}};
  json["theory_fallback"] = time->fallback();
  if (spec.kind == SweepKind::Theory) return json;
  json["runs"] = spec.runs;
  json["seed"] = trial.seed;
  const auto drawn =
      model::samples(*wire, scheme_in_theory(trial),
                     {.count = spec.runs, .seed = trial.seed, .threads = threads, .sender = model::Sender::Serialised});
  if (!drawn) return drawn.error();
  const CompletionTimes times(drawn->times);
  json["completion_ms"] = times.to_json();
  json["slowdown"] = times.slowdown(ideal_ms);
  return json;
}

}  // namespace

double expected_cost(const SweepSpec& spec, const SweepCell& cell) {
  if (spec.kind == SweepKind::Theory) return 1;
  const double packets = static_cast<double>(cell.size.count) / static_cast<double>(cell.mtu.count);
  const double parity =
      cell.scheme.coded() ? static_cast<double>(cell.scheme.parity_chunks) / cell.scheme.data_chunks : 0;
  // The Monte Carlo draws losses, the protocol sends packets.
  const double a_run = spec.kind == SweepKind::Sampling ? packets * cell.loss + 1 : packets * (1 + parity) + kRunCost;
  return static_cast<double>(spec.runs) * a_run;
}

Result<Json> compute(const SweepSpec& spec, std::uint64_t number, unsigned threads) {
  const SweepCell cell = spec.cell(number);
  return spec.kind == SweepKind::Simulation ? simulated(spec, cell, threads) : in_theory(spec, cell, threads);
}

Json failed_entry(const SweepSpec& spec, std::uint64_t number, const std::string& why) {
  const SweepCell cell = spec.cell(number);
  Json json = parameters(cell, spec.trial(cell));
  json["error"] = printable(why);
  return json;
}

std::string name_of(const SweepCell& cell) {
  return fmt::format("cell {} ({}, {}, RTT {}, {}, loss {})", cell.number, cell.scheme.text(), to_string(cell.size),
                     to_string(cell.rtt), to_string(cell.rate), cell.loss);
}

}  // namespace sdr::cli

#include "sdr/sim_report.hpp"

#include <fmt/core.h>

#include <limits>

#include "sdr/sim_trial.hpp"

namespace sdr::cli {
namespace {

using experiment::TrialResult;
using experiment::WriteTrial;

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

std::vector<Duration> times_of(const std::vector<TrialResult>& results) {
  std::vector<Duration> times;
  for (const TrialResult& result : results) {
    if (!result.error) times.push_back(result.completion);
  }
  return times;
}

std::optional<model::Summary> theory_of(const WriteTrial& trial) {
  const Result<model::CompletionTime> time = time_in_theory(trial);
  return time ? std::optional(time->summary()) : std::nullopt;
}

double per_second(std::uint64_t count, Duration time) {
  return static_cast<double>(count) / std::max(milliseconds(time) / 1e3, 1e-9);
}

}  // namespace

Json summary_json(const model::Summary& summary) {
  return {{"mean", milliseconds(summary.mean)},
          {"p50", milliseconds(summary.p50)},
          {"p99", milliseconds(summary.p99)},
          {"p999", milliseconds(summary.p999)}};
}

SimReportCard::SimReportCard(const SchemeChoice& scheme, const WriteTrial& trial,
                             const std::vector<TrialResult>& results)
    : scheme_(scheme), trial_(trial), runs_(results.size()), times_(times_of(results)), theory_(theory_of(trial)) {
  if (const auto transfer = transfer_of(trial, 0)) floor_ = transfer->floor();
  for (const TrialResult& result : results) {
    sums_ += result;
    if (!result.error) continue;
    if (failed_++ == 0) first_failure_ = result.error->message;
  }
}

double SimReportCard::ideal_ms() const {
  const Bandwidth rate = experiment::pace_of(trial_);
  return rate.limited() ? milliseconds(rate.time_for(trial_.size) + trial_.link.rtt) : kUnknown;
}

double SimReportCard::goodput_gbps() const {
  return 8.0 * static_cast<double>(trial_.size.count) / (times_.mean_ms() * 1e6);
}

std::string SimReportCard::complaint() const {
  return fmt::format("{} of {} Writes failed; the first: {}", failed_, runs_, first_failure_);
}

Json SimReportCard::to_json(const std::optional<SimSpeed>& speed) const {
  const QueuePairOptions& qp = trial_.connection.queue_pair;
  const Bandwidth rate = experiment::pace_of(trial_);
  Json json;
  scheme_.add_to(json);
  json["size_bytes"] = trial_.size.count;
  json["runs"] = runs_;
  json["seed"] = trial_.seed;
  json["known_loss"] = trial_.known_loss;
  json["warm_writes"] = trial_.warm_writes;
  json["completion_ms"] = times_.to_json();
  json["ideal_ms"] = number_or_null(ideal_ms());
  json["floor_ms"] = floor_ ? Json(milliseconds(*floor_)) : Json(nullptr);
  json["theory_ms"] = theory_ ? summary_json(*theory_) : Json(nullptr);
  json["slowdown"] = times_.slowdown(ideal_ms());
  json["goodput_gbps"] = number_or_null(goodput_gbps());
  json["writes_complete"] = runs_ - failed_;
  json["writes_failed"] = failed_;
  json["packets_sent"] = sums_.packets_sent;
  json["packets_lost"] = sums_.packets_lost;
  json["queue_drops"] = sums_.queue_drops;
  json["duplicate_packets"] = sums_.duplicate_packets;
  json["late_packets"] = sums_.late_packets;
  json["chunks_sent"] = sums_.chunks_sent;
  json["chunks_retransmitted"] = sums_.chunks_retransmitted;
  json["parity_chunks_sent"] = sums_.parity_chunks_sent;
  json["chunks_recovered"] = sums_.chunks_recovered;
  json["fallbacks"] = sums_.fallbacks;
  json["controls_sent"] = sums_.controls_sent;
  json["controls_answered"] = sums_.controls_answered;
  json["mtu"] = qp.mtu.count;
  json["packet_overhead_bytes"] = trial_.packet_overhead;
  json["chunk_bytes"] = qp.mtu.count * qp.packets_per_chunk;
  json["rate_gbps"] = rate.limited() ? Json(rate.bits_per_second / 1e9) : Json(nullptr);
  json["link"] = simulation::to_string(trial_.link);
  if (speed) {
    json["speed"] = {{"wall_seconds", milliseconds(speed->wall) / 1e3},
                     {"cpu_seconds", milliseconds(speed->cpu) / 1e3},
                     {"packets_per_cpu_second", per_second(sums_.packets_sent, speed->cpu)}};
  }
  return json;
}

void SimReportCard::print(const SimSpeed& speed) const {
  const QueuePairOptions& qp = trial_.connection.queue_pair;
  Table table;
  table.row("scheme", scheme_.text());
  table.row("Writes", fmt::format("{} of {}, each by itself", runs_, to_string(trial_.size)));
  table.row("link", simulation::to_string(trial_.link));
  table.row("chunks", fmt::format("packets of {} + {} B, chunks of {} B", qp.mtu.count, trial_.packet_overhead,
                                  qp.mtu.count * qp.packets_per_chunk));
  table.row("completion", times_.text());
  if (theory_) {
    table.row("theory", fmt::format("mean {}, p50 {}, p99 {}, p99.9 {}", to_string(theory_->mean),
                                    to_string(theory_->p50), to_string(theory_->p99), to_string(theory_->p999)));
  }
  if (const double ideal = ideal_ms(); ideal > 0) {
    table.row("slowdown", fmt::format("mean {:.3f}, p99 {:.3f}, p99.9 {:.3f} (against {}: payload at the rate, plus "
                                      "the RTT)",
                                      times_.mean_ms() / ideal, times_.percentile_ms(0.99) / ideal,
                                      times_.percentile_ms(0.999) / ideal, in_ms(ideal)));
  }
  if (floor_) table.row("floor", fmt::format("{}: no scheme that repeats is faster in the mean", to_string(*floor_)));
  table.row("packets",
            fmt::format("{} sent, {} lost on the way there ({} by the queue), {} late, {} twice", sums_.packets_sent,
                        sums_.packets_lost, sums_.queue_drops, sums_.late_packets, sums_.duplicate_packets));
  table.row("repairs", fmt::format("{} chunks sent again, {} recovered from parity, {} fallbacks",
                                   sums_.chunks_retransmitted, sums_.chunks_recovered, sums_.fallbacks));
  if (failed_ != 0) table.row("failed", fmt::format("{} of {} Writes", failed_, runs_));
  table.row("speed", fmt::format("{:.2f} Mpacket/s on a core, {} in all",
                                 per_second(sums_.packets_sent, speed.cpu) / 1e6, to_string(speed.wall)));
  table.print();
}

}  // namespace sdr::cli

// protocol_check(): cells of figures by the real protocol over a simulated link, in virtual time.
//
// The link is the one of the theory: payload alone takes its rate. Losses hit control datagrams also, as they would.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "experiment/trials.hpp"
#include "sdr/figure_cell.hpp"

namespace sdr::cli {
namespace {

// Packets that one cell may cost: about a second of a core; where the slowest of 1000 is wanted, ten.
constexpr double kMostPackets = 3e6;
constexpr double kMostPacketsForTail = 5e7;
// What beginning and ending a run costs, in packets; parity needs memory and tables.
constexpr double kRunCost = 500;
constexpr double kCodedRunCost = 8000;
constexpr std::size_t kFewestForMean = 40;
constexpr std::size_t kMostForMean = 2000;
constexpr std::size_t kForTail = 1000;

Scheme protocol_of(model::SchemeKind kind) {
  switch (kind) {
    case model::SchemeKind::SrRto:
      return Scheme::SrRto;
    case model::SchemeKind::SrNack:
      return Scheme::SrNack;
    case model::SchemeKind::EcXor:
      return Scheme::EcXor;
    case model::SchemeKind::EcRs:
      return Scheme::EcRs;
    case model::SchemeKind::Adaptive:
      break;
  }
  return Scheme::Adaptive;
}

experiment::WriteTrial trial_of(const Cell& cell, std::uint64_t seed) {
  experiment::WriteTrial trial;
  trial.link.rtt = cell.path.rtt;
  trial.link.rate = cell.path.rate;
  trial.link.loss = cell.path.loss;
  trial.link.burst = cell.path.burst;
  trial.size = cell.size;
  trial.seed = seed;
  trial.packet_overhead = 0;
  trial.known_loss = cell.scheme.kind == model::SchemeKind::Adaptive;
  trial.loss_factor = cell.belief;
  trial.connection.scheme = protocol_of(cell.scheme.kind);
  trial.connection.data_chunks = static_cast<int>(cell.scheme.data_chunks);
  trial.connection.parity_chunks = static_cast<int>(cell.scheme.parity_chunks);
  trial.connection.rto_factor = cell.scheme.rto_rtts;
  trial.connection.queue_pair.mtu = cell.path.packet;
  trial.connection.queue_pair.packets_per_chunk =
      static_cast<std::uint32_t>(cell.path.chunk.count / cell.path.packet.count);
  return trial;
}

Result<Estimate> summarise(const std::vector<experiment::TrialResult>& results, double chunks) {
  std::vector<double> times;
  Estimate estimate;
  double parity = 0;
  estimate.runs = static_cast<double>(results.size());
  for (const experiment::TrialResult& result : results) {
    if (result.error) return *result.error;
    times.push_back(model::to_seconds(result.completion));
    estimate.mean += times.back() / estimate.runs;
    estimate.fallback += (result.fallbacks > 0 ? 1 : 0) / estimate.runs;
    parity += static_cast<double>(result.parity_chunks_sent);
  }
  estimate.parity = parity / (estimate.runs * chunks);
  double squares = 0;
  for (const double time : times) squares += std::pow(time - estimate.mean, 2);
  estimate.mean_error = std::sqrt(squares) / estimate.runs;
  if (times.size() >= kForTail) {
    std::sort(times.begin(), times.end());
    estimate.p999 = times[static_cast<std::size_t>(std::ceil(0.999 * estimate.runs * (1 - 1e-12))) - 1];
  }
  return estimate;
}

}  // namespace

Check protocol_check(std::size_t runs, std::uint64_t seed) {
  return [runs, seed](const Cell& cell, bool tail) -> Result<std::optional<Estimate>> {
    const double parity = cell.scheme.coded() ? static_cast<double>(cell.scheme.parity_chunks) /
                                                    static_cast<double>(cell.scheme.data_chunks)
                                              : 0;
    const double packets = static_cast<double>(cell.size.count) / static_cast<double>(cell.path.packet.count);
    const double affordable = (tail ? kMostPacketsForTail : kMostPackets) /
                              (packets * (1 + parity) + (cell.scheme.coded() ? kCodedRunCost : kRunCost));
    experiment::TrialPlan plan;
    plan.runs = std::min({runs, static_cast<std::size_t>(affordable), tail ? kForTail : kMostForMean});
    if (plan.runs < (tail ? kForTail : std::min(runs, kFewestForMean))) return std::optional<Estimate>();
    const Result<std::vector<experiment::TrialResult>> results =
        experiment::run_all(trial_of(cell, seed_of(cell, seed)), plan);
    if (!results) return results.error();
    const double chunks = std::ceil(static_cast<double>(cell.size.count) / static_cast<double>(cell.path.chunk.count));
    Result<Estimate> estimate = summarise(*results, chunks);
    if (!estimate) {
      return Error{estimate.error().code, fmt::format("a simulated Write of {} by {} failed: {}", to_string(cell.size),
                                                      to_string(cell.scheme.kind), estimate.error().message)};
    }
    return std::optional(*estimate);
  };
}

}  // namespace sdr::cli

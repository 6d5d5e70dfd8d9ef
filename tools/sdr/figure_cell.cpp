#include "sdr/figure_cell.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "model/completion_time.hpp"
#include "model/erasure_code.hpp"
#include "model/samples.hpp"

namespace sdr::cli {
namespace {

// How many losses one cell may cost: what bounds the time of a Monte Carlo.
constexpr double kMostLosses = 5e6;
// Fewer samples than these say nothing about a mean, or about the slowest of 1000.
constexpr double kFewestForMean = 100;
constexpr double kFewestForTail = 1000;
// Fewer fallbacks than these say nothing about how often they happen.
constexpr double kFewestFallbacks = 10;

model::Transfer transfer_of(const Cell& cell) {
  return model::Transfer::create(cell.path, cell.size).value();
}

double time_in_theory(Statistic statistic, const Cell& cell) {
  const model::CompletionTime time = model::CompletionTime::of(transfer_of(cell), cell.scheme).value();
  return model::to_seconds(statistic == Statistic::P999 ? time.percentile(0.999).value() : time.mean());
}

Estimate summarise(const model::Samples& drawn) {
  Estimate estimate;
  estimate.runs = static_cast<double>(drawn.times.size());
  double sum = 0;
  double squares = 0;
  for (const Duration time : drawn.times) sum += model::to_seconds(time);
  estimate.mean = sum / estimate.runs;
  for (const Duration time : drawn.times) squares += std::pow(model::to_seconds(time) - estimate.mean, 2);
  estimate.mean_error = std::sqrt(squares / estimate.runs / estimate.runs);
  if (estimate.runs >= kFewestForTail) estimate.p999 = model::to_seconds(drawn.summary().p999);
  return estimate;
}

// A Write that falls back takes two RTTs more than one that does not, at least.
double share_of_fallbacks(const model::Samples& drawn, const model::Transfer& transfer,
                          const model::SchemeSpec& scheme) {
  const model::CodedMessage message(transfer.chunks(), scheme);
  const double injected = static_cast<double>(message.chunks + message.parity_chunks()) * transfer.injection();
  const Duration bound = model::to_duration(injected + 2 * transfer.rtt());
  const auto failed =
      std::count_if(drawn.times.begin(), drawn.times.end(), [&](Duration time) { return time > bound; });
  return static_cast<double>(failed) / static_cast<double>(drawn.times.size());
}

double square(double value) {
  return value * value;
}

}  // namespace

double seconds_of(Yardstick yardstick, const Cell& cell) {
  const model::Transfer transfer = transfer_of(cell);
  return model::to_seconds(yardstick == Yardstick::Floor ? transfer.floor() : transfer.lossless());
}

double theory(const Question& question) {
  const Cell& cell = question.cell;
  if (cell.belief != 1 || question.statistic == Statistic::Parity) return kUnknown;
  if (question.statistic == Statistic::Fallback) {
    return model::CompletionTime::of(transfer_of(cell), cell.scheme)->fallback();
  }
  const double time = time_in_theory(question.statistic, cell);
  if (question.over) return time / time_in_theory(question.statistic, *question.over);
  const double value = time / seconds_of(question.yardstick, cell);
  const bool repeats = cell.scheme.kind == model::SchemeKind::SrRto || cell.scheme.kind == model::SchemeKind::SrNack;
  return repeats && question.yardstick == Yardstick::Floor ? std::max(value, 1.0) : value;
}

Answer answer(const Question& question, const Estimate& cell, const std::optional<Estimate>& over) {
  Answer given;
  given.runs = over ? std::min(cell.runs, over->runs) : cell.runs;
  if (question.statistic == Statistic::Fallback) {
    const double seen = cell.fallback * cell.runs;
    if (seen < kFewestFallbacks) return given;
    given.value = cell.fallback;
    given.error = std::sqrt((1 - cell.fallback) / seen);
  } else if (question.statistic == Statistic::Parity) {
    given.value = cell.parity;
  } else if (question.statistic == Statistic::P999) {
    given.value = cell.p999 / (over ? over->p999 : seconds_of(question.yardstick, question.cell));
  } else {
    given.value = cell.mean / (over ? over->mean : seconds_of(question.yardstick, question.cell));
    given.error = std::sqrt(square(cell.mean_error / cell.mean) + (over ? square(over->mean_error / over->mean) : 0));
  }
  return given;
}

Check monte_carlo_check(std::size_t samples, std::uint64_t seed) {
  return [samples, seed](const Cell& cell, bool tail) -> Result<std::optional<Estimate>> {
    if (cell.belief != 1) return std::optional<Estimate>();
    const model::Transfer transfer = transfer_of(cell);
    const double losses = static_cast<double>(transfer.chunks()) * transfer.loss().p();
    const double count = std::min(static_cast<double>(samples), kMostLosses / std::max(losses, 1e-9));
    if (count < (tail ? kFewestForTail : kFewestForMean)) return std::optional<Estimate>();
    const model::SampleOptions options{static_cast<std::size_t>(count), seed_of(cell, seed), 1,
                                       model::Sender::Serialised};
    const Result<model::Samples> drawn = model::samples(transfer, cell.scheme, options);
    if (!drawn) return drawn.error();
    Estimate estimate = summarise(*drawn);
    if (cell.scheme.coded()) estimate.fallback = share_of_fallbacks(*drawn, transfer, cell.scheme);
    return std::optional(estimate);
  };
}

std::string key(const Cell& cell) {
  const model::SchemeSpec& s = cell.scheme;
  const model::PathSpec& p = cell.path;
  const std::string belief = cell.belief == 1 ? "" : fmt::format(" {}", cell.belief);
  return fmt::format("{} {} {} {} {} {} {} {} {} {} {} {} {}{}", to_string(s.kind), s.data_chunks, s.parity_chunks,
                     s.rto_rtts, s.fallback_beta, s.interleaved, p.chunk.count, p.packet.count, p.rate.bits_per_second,
                     p.rtt.count(), p.loss, p.burst, cell.size.count, belief);
}

// FNV-1a: the same on every machine.
std::uint64_t seed_of(const Cell& cell, std::uint64_t seed) {
  std::uint64_t hash = 14695981039346656037ULL ^ seed;
  for (const char c : key(cell)) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  return hash;
}

}  // namespace sdr::cli

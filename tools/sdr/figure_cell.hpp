// Cell: one number of a figure before it is a number: a scheme, a path and a message, and what is asked of them.
//
// The theory answers every cell. A Check answers some, by other means: by drawing losses (monte_carlo_check), or by
// running the protocol (protocol_check). Whoever has a third way passes a function.
//
// Plain values and pure functions; any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>

#include "model/scheme.hpp"
#include "model/transfer.hpp"
#include "sdr/result.hpp"
#include "sdr/units.hpp"

namespace sdr::cli {

inline constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

struct Cell {
  model::SchemeSpec scheme;
  model::PathSpec path;
  Bytes size;
  double belief = 1;  // the loss that an adaptive sender believes in, in true ones; theory and Monte Carlo know 1 alone
};

enum class Statistic : std::uint8_t {
  Mean,      // of the completion time
  P999,      // its 99.9th percentile
  Fallback,  // share of Writes whose parity does not suffice
  Parity,    // parity chunks sent for a chunk of data
};

// What was seen of a cell in so many runs; seconds.
struct Estimate {
  double runs = 0;
  double mean = 0;
  double mean_error = 0;  // standard error
  double p999 = kUnknown;
  double fallback = 0;
  double parity = kUnknown;
};

// Nothing where the cell is too large for the means at hand. `tail`: p999 is wanted.
using Check = std::function<Result<std::optional<Estimate>>(const Cell& cell, bool tail)>;

// Draws losses, and puts retransmissions on the wire where the theory has them beside it (model::Sender::Serialised).
Check monte_carlo_check(std::size_t samples, std::uint64_t seed);
// Runs the real protocol over a simulated link, at most `runs` times.
Check protocol_check(std::size_t runs, std::uint64_t seed);

enum class Yardstick : std::uint8_t {
  Lossless,  // M T_inj + RTT
  Floor,     // M T_inj / (1 - p) + RTT
};
double seconds_of(Yardstick yardstick, const Cell& cell);

// A mean and a percentile are given in the yardstick, or in those of `over` where there is one (a speed-up).
struct Question {
  Statistic statistic = Statistic::Mean;
  Cell cell;
  std::optional<Cell> over;
  Yardstick yardstick = Yardstick::Lossless;
  bool of_percentile_runs = false;  // a mean of the runs that the 99.9th percentile of the same cell takes
};

// A check's answer; `error` is the standard error as a share of the value, where it is known.
struct Answer {
  double value = kUnknown;
  double error = kUnknown;
  double runs = 0;
};

// Unknown where the theory has no answer. In floors, selective repeat takes 1 at least: its theory injects what is sent
// again at no cost, and so falls below the floor where messages are long beside the timeout (docs/model.md).
double theory(const Question& question);
// Unknown where an estimate does not suffice for the statistic.
Answer answer(const Question& question, const Estimate& cell, const std::optional<Estimate>& over);

// Cells with equal keys are the same.
std::string key(const Cell& cell);
// Differs from cell to cell, so that the noise of neighbours in a figure is not the same noise.
std::uint64_t seed_of(const Cell& cell, std::uint64_t seed);

}  // namespace sdr::cli

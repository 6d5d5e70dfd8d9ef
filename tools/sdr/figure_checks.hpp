// Puts the answers of checks beside the theory of figures, and says how far apart they are.
//
// Cells that several figures ask for are checked once. The result is the same for any number of threads, as long as a
// check's is; checks are called from all of them.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "sdr/figure.hpp"
#include "sdr/result.hpp"

namespace sdr::cli {

// Figures that have something to conclude from their checks do so.
Result<void> check_figures(std::vector<Figure>& figures, const Check& monte_carlo, const Check& protocol,
                           unsigned threads);

// A check's value over that of the theory, less 1.
double deviation(const Answer& answer, const Point& point);

// How a figure's checks came out; deviations are sizes, without sign.
struct Agreement {
  std::size_t points = 0;
  std::size_t within_5_percent = 0;
  double median = 0;
  double worst = 0;
  std::string worst_at;  // "SR RTO at 1e-2"
};
Agreement agreement_of(const Figure& figure, Answer Point::*check);

// How many of the statements agree, of those of the paper or ours.
struct Verdicts {
  std::size_t statements = 0;
  std::size_t agree = 0;
};
Verdicts verdicts_of(const std::vector<Figure>& figures, bool ours);

// "8 MiB", or "8 MiB, 1e-3" on a map, "8 MiB, loss 1e-3" in a panel.
std::string place_of(const Figure& figure, const Series& series, const Point& point);

}  // namespace sdr::cli

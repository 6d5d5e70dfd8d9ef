// The paper's figures, by their numbers, and those of our own scheme, by their names, and how each is made.
//
// Pure: the same options give the same figure. Any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sdr/figure.hpp"
#include "sdr/result.hpp"

namespace sdr::cli {

// For what has no closed form (13a, 13b).
struct FigureOptions {
  std::size_t samples = 5000;
  std::uint64_t seed = 1;
  unsigned threads = 1;
};

struct CatalogueEntry {
  std::string_view id;
  Figure (*make)(const FigureOptions& options);
};

// All there are, in the paper's order, ours behind them.
const std::vector<CatalogueEntry>& figure_catalogue();

// Those that `ids` name, in that order; none: all. "10" is 10a to 10d. InvalidArgument lists what there is.
Result<std::vector<CatalogueEntry>> choose_figures(const std::vector<std::string>& ids);

Figure figure_3a(const FigureOptions& options);   // slowdown over size
Figure figure_3b(const FigureOptions& options);   // slowdown over distance
Figure figure_3c(const FigureOptions& options);   // slowdown over loss
Figure figure_9(const FigureOptions& options);    // speed-up over size and loss
Figure figure_10a(const FigureOptions& options);  // all schemes: slowdown over size
Figure figure_10b(const FigureOptions& options);  // over loss, mean
Figure figure_10c(const FigureOptions& options);  // over loss, 99.9th percentile
Figure figure_10d(const FigureOptions& options);  // over loss, data and parity splits
Figure figure_11(const FigureOptions& options);   // fallback over loss
Figure figure_12(const FigureOptions& options);   // speed-up over distance and rate
Figure figure_13a(const FigureOptions& options);  // Allreduce: speed-up over datacenters
Figure figure_13b(const FigureOptions& options);  // Allreduce: speed-up over size

Figure figure_adaptive(const FigureOptions& options);           // slowdown over size and loss
Figure figure_adaptive_bursts(const FigureOptions& options);    // over size and the length of bursts
Figure figure_adaptive_estimate(const FigureOptions& options);  // over how wrong the sender is about the loss

}  // namespace sdr::cli

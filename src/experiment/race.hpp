// Race: what several pieces of work take, measured by turns, so that whatever else the machine does meanwhile falls on
// all of them alike. Ratios of one race mean something where absolute figures do not.
//
// Threads: the caller's; it should have its core to itself.
#pragma once

#include <functional>
#include <vector>

#include "sdr/units.hpp"

namespace sdr::experiment {

// Medians, in seconds of one pass, of `runs` rounds in each of which every contestant makes passes for about `each`,
// one at least. One pass of each goes ahead and does not count.
std::vector<double> race(const std::vector<std::function<void()>>& contestants, unsigned runs, Duration each);

}  // namespace sdr::experiment

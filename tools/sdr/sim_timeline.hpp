// The picture of one simulated Write: what crossed the link, and when.
//
// Above, the two ends as lines with time to the right: packets go down from the sender to the receiver, reports go up;
// what is lost ends in a cross on the way. Below, the same packets by their place in the Write: first transmissions
// make a slope as steep as the rate, and its shadow where they arrive; a repair stands to the right of the loss that it
// is for, on the same height. First transmissions and parity are thinned to a line a pixel column; losses, repairs and
// reports are all there.
#pragma once

#include <iosfwd>

#include "experiment/timeline.hpp"
#include "experiment/write_trial.hpp"
#include "sdr/options.hpp"

namespace sdr::cli {

// Does run 0 of the trial once more, and draws it.
Result<void> draw_timeline(const SchemeChoice& scheme, const experiment::WriteTrial& trial, std::ostream& out);

}  // namespace sdr::cli

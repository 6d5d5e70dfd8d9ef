// The picture of several flows over one path: the rate of each, the queue, and the RTT of each, over one axis of time.
//
// Rates are of bytes on the wire as they came out, the capacity is a grey line; the RTT is the mean of the packets of
// an interval. Shaded: the path is dark.
//
// Threads: one.
#pragma once

#include <iosfwd>

#include "experiment/shared_result.hpp"

namespace sdr::cli {

void draw_flows(const experiment::SharedResult& result, std::ostream& out);

}  // namespace sdr::cli

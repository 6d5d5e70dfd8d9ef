// Recorded losses: a file that says which packets arrived, and its place in the text of a link.
//
// A line is "ARRIVED LOST": so many packets arrived, and so many behind them were lost. Empty lines and what follows a
// '#' count for nothing. In the text of a link the same numbers stand in a row, "trace=1000:2:350:1", so that it means
// the same on a host that does not have the file.
#pragma once

#include <string>
#include <string_view>

#include "sdr/result.hpp"

namespace sdr::cli {

// "rtt=25ms,trace=FILE" with the file's numbers in the place of its name; other text as it is. InvalidArgument names
// the file, and the line when that is at fault.
Result<std::string> inline_trace(std::string_view link);

}  // namespace sdr::cli

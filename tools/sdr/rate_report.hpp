// What the rate control of a connection says of itself, for reports.
#pragma once

#include <string>

#include "sdr/path_rate.hpp"
#include "sdr/report.hpp"

namespace sdr::cli {

// "rate_control" of a report.
Json rate_json(const RateStatus& status);
// "model, cruise at 941 Mbit/s, least RTT 50.1 ms, queue 0.3 ms; lost at random 12, to congestion 173"
std::string rate_line(const RateStatus& status);

}  // namespace sdr::cli

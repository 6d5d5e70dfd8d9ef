// The time of this machine. runtime/ is the only floor that reads a clock; everyone else is told the time, which is
// what lets the same protocol code run in virtual time.
#pragma once

#include "sdr/units.hpp"

namespace sdr::runtime {

// CLOCK_MONOTONIC: never runs backwards, counts from an arbitrary start. Any thread.
[[nodiscard]] TimePoint now();
// What this process has had of the processors so far, all its threads together.
[[nodiscard]] Duration cpu_time();

}  // namespace sdr::runtime

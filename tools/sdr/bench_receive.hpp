// sdr bench worker and turnaround: what the receiving side does per packet and per message, as reports, and the same
// for people.
//
// One thread.
#pragma once

#include <cstdint>

#include "sdr/report.hpp"
#include "sdr/result.hpp"
#include "sdr/units.hpp"

namespace sdr::cli {

// The fields are told in docs/cli.md.
[[nodiscard]] Json bench_worker(unsigned runs, Duration each);
void print_bench_worker(const Json& report);

Result<Json> bench_turnaround(unsigned runs, std::uint64_t messages);
void print_bench_turnaround(const Json& report);

}  // namespace sdr::cli

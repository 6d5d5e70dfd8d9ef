// BenchMachine: what a measurement ran on, and the cores that it may have. Without it a figure is worth nothing.
//
// One thread, before any other is started: they inherit the cores.
#pragma once

#include <string>
#include <vector>

#include "sdr/report.hpp"
#include "sdr/result.hpp"

namespace sdr::cli {

// Cores that this process may run on.
[[nodiscard]] std::vector<unsigned> allowed_cores();
// Keeps this thread, and what it starts, to these; InvalidArgument names one that it may not have.
Result<void> keep_to_cores(const std::vector<unsigned>& cores);
// "cpu", "kernel", "date" (UTC) and "cores" of a report.
[[nodiscard]] Json machine_facts();

}  // namespace sdr::cli

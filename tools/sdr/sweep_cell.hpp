// One cell of a sweep: what it costs, roughly, and what comes out.
//
// Pure functions of the spec and the cell; any thread.
#pragma once

#include <cstdint>
#include <string>

#include "sdr/report.hpp"
#include "sdr/result.hpp"
#include "sdr/sweep_spec.hpp"

namespace sdr::cli {

// In packets or samples; only good to say which of two cells takes longer.
[[nodiscard]] double expected_cost(const SweepSpec& spec, const SweepCell& cell);

// The cell's entry in the output. The same for any number of threads. A Write that fails is counted; an error is a cell
// that cannot be computed.
Result<Json> compute(const SweepSpec& spec, std::uint64_t number, unsigned threads);

// The entry of a cell that could not be computed.
[[nodiscard]] Json failed_entry(const SweepSpec& spec, std::uint64_t number, const std::string& why);

// "cell 3 (ec-rs:32:8, 128 MiB, ...)"
[[nodiscard]] std::string name_of(const SweepCell& cell);

}  // namespace sdr::cli

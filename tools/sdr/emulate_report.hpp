// What `sdr emulate` says of a run: the path that was asked for, what each direction carried and dropped and why, and
// whether this machine kept up with it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "sdr/path_forwarder.hpp"
#include "sdr/report.hpp"
#include "sdr/units.hpp"
#include "simulation/path_spec.hpp"

namespace sdr::cli {

struct EmulateResult {
  simulation::PathSpec spec;
  Duration elapsed{0};
  Duration cpu_time{0};                    // of the forwarder
  std::array<std::optional<int>, 2> code;  // of the commands, by end; nothing: ended by us, or none
  std::array<ForwardCounts, 2> way;        // by the end that sends
  std::array<std::uint64_t, 2> unread{};   // dropped by the kernel because they were not read in time
};

// Up to this share of packets may be late before the machine counts as too slow.
inline constexpr double kTolerableLateness = 0.01;

// One sentence when the machine was too slow for the path; empty otherwise.
[[nodiscard]] std::string too_slow(const EmulateResult& result);
[[nodiscard]] Json to_json(const EmulateResult& result);
// For a person, on stderr: stdout is the commands'.
void print_summary(const EmulateResult& result);

}  // namespace sdr::cli

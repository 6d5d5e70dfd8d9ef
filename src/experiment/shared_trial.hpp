// SharedTrial: several flows over one path in virtual time: bulk transfers by the real protocol beside one another and
// beside simulated TCP, from one side of the path to the other.
//
// All data goes through one queue and one rate, all acknowledgements through those of the way back, each flow at a
// distance of its own: its RTT is the path's plus what lies beyond. Payload is counted, not moved.
//
// Time: every flow is driven when something is due for it, but not more often than once a step: 16 packets of the rate,
// at most a 500th of the least RTT.
//
// A run depends on the trial alone. Threads: any number of runs beside one another.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "experiment/shared_result.hpp"
#include "sdr/connection.hpp"
#include "sdr/result.hpp"
#include "sdr/units.hpp"
#include "simulation/path_spec.hpp"

namespace sdr::experiment {

enum class FlowKind : std::uint8_t { Sdr, TcpCubic, TcpBbr };

struct FlowSpec {
  FlowKind kind = FlowKind::Sdr;
  std::string name;  // empty: by kind and number
  Duration rtt{0};   // of the flow without queues, from the path's on; zero: the path's
  Duration start{0};
  std::optional<Duration> stop;  // it falls silent then
  Bytes size{};                  // zero: until the end
  bool hystart = true;           // of tcp-cubic
  bool ecn = false;              // of tcp-cubic, which reduces for a mark as for a loss
  // Of sdr. The mtu is what the path carries unless it names one.
  ConnectionOptions connection;
  Bytes write = 64_MiB;  // bulk goes as Writes of this size
  // How late its ends wake up in the mean, as programs do among others: exponentially distributed, and ten times as
  // late once in a hundred times.
  Duration wake{0};
};

struct SharedTrial {
  static constexpr std::size_t kMostFlows = 256;
  static constexpr Duration kLongest = std::chrono::hours(24);
  static constexpr std::int64_t kMostIntervals = 1'000'000;

  simulation::PathSpec path;
  std::vector<FlowSpec> flows;
  Duration duration = std::chrono::seconds(30);
  std::uint64_t seed = 1;  // in the place of the link's
  Duration interval{0};    // of the series; zero: a 300th of the duration
  Duration step{0};        // zero: as above
};

// InvalidArgument names the thing, the value and the range.
Result<void> check(const SharedTrial& trial);

Result<SharedResult> run(const SharedTrial& trial);

// "sdr", "tcp-cubic", "tcp-bbr". The error lists them.
Result<FlowKind> parse_flow_kind(std::string_view name);
std::string_view name_of(FlowKind kind);

}  // namespace sdr::experiment

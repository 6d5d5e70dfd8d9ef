// PathRate: how fast a path is used, found and kept by one controller for all connections that go over it.
//
// Who shares one (ConnectionOptions::path_rate) shares its rate: those that have something to send get equal parts.
// Three controllers: fixed (a leased line: the given rate), model (finds the rate of the bottleneck and shares it with
// others) and background (uses what nobody else wants). docs/rate-control.md says what each does.
//
// Threads: any; connections that share one may be driven by different threads. Every call takes a lock for less than a
// microsecond, none is on the path of a packet.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "sdr/result.hpp"
#include "sdr/units.hpp"

namespace sdr {

namespace reliability {
class RateGroup;
}

enum class RateMode : std::uint8_t {
  Automatic,   // Fixed when a rate is given or both ends are on one machine, otherwise Model
  Fixed,       // the given rate; without one as fast as the transport takes it
  Model,       // start-up, drain, bandwidth probing, RTT probing, in the manner of BBRv3
  Background,  // in the manner of LEDBAT++: yields to anyone, uses an idle link
};
// "automatic", "fixed", "model", "background". The error lists them.
Result<RateMode> parse_rate_mode(std::string_view name);
std::string_view to_string(RateMode mode);

// What a controller believes and allows.
struct RateStatus {
  RateMode controller = RateMode::Fixed;
  std::string_view state = "fixed";  // of the controller: "start-up", "drain", "cruise", "probe-up", ...
  Bandwidth pace{};                  // bytes on the wire may leave so fast; zero: not limited
  Bandwidth bandwidth{};             // of the bottleneck, this end's part of it; zero: not known
  std::uint64_t window = 0;          // bytes on the wire that may be in flight; 0: not limited
  std::uint64_t in_flight = 0;       // sent and neither landed nor lost by the latest word
  Duration rtt_min{0};               // of late: an old one is given up when the path has become longer
  Duration queue_delay{0};           // smoothed, above the least of late
  std::uint64_t packets_lost_random = 0;
  std::uint64_t packets_lost_congestion = 0;  // to our own overshoot, or to a queue that others filled
  std::uint64_t congestion_marks = 0;
};

class PathRate {
 public:
  struct Options {
    RateMode mode = RateMode::Model;  // Automatic is Model
    Bandwidth most{};                 // never faster than this, Fixed: the rate; zero: no such limit
    std::uint64_t seed = 1;           // of the times between two probes
  };
  explicit PathRate(const Options& options);
  ~PathRate();
  PathRate(const PathRate&) = delete;
  PathRate& operator=(const PathRate&) = delete;

  // Of all connections that share it.
  [[nodiscard]] RateStatus status() const;
  // For connections.
  [[nodiscard]] const std::shared_ptr<reliability::RateGroup>& group() const { return group_; }

 private:
  std::shared_ptr<reliability::RateGroup> group_;
};

}  // namespace sdr

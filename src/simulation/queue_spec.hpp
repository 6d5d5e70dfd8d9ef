// QueueSpec: what stands in front of the rate of a path, as a person writes it:
//
//   drop-tail,limit=1bdp      codel,target=5ms,interval=100ms,ecn,limit=4MiB      policer,burst=64KiB
//
// The limit (and the burst, which is the depth of the policer's bucket) is a size, a time at the link's rate, or a
// multiple of the bandwidth-delay product. Without one, a drop-tail queue and a bucket hold what the link's `queue`
// says (10 ms by default), and a CoDel queue twice its interval, if that is more: its business is to keep a long queue
// short.
//
// A plain value without threads or invariants beyond its ranges, which parse() checks.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "sdr/result.hpp"
#include "sdr/units.hpp"
#include "simulation/link_spec.hpp"

namespace sdr::simulation {

enum class Discipline : std::uint8_t {
  DropTail,  // a packet that finds the queue full is dropped
  Codel,     // and packets that have waited too long, RFC 8289
  Policer,   // no queue: a token bucket, and what finds it empty is dropped
};

struct QueueSpec {
  Discipline discipline = Discipline::DropTail;
  Bytes limit{};                                      // of the queue, or of the bucket
  Duration target{std::chrono::milliseconds(5)};      // of CoDel
  Duration interval{std::chrono::milliseconds(100)};  // of CoDel
  bool ecn = false;                                   // CoDel marks what is ECN-capable instead of dropping it

  // For a path whose rate, RTT and default queue are those of `link`. InvalidArgument names the key, the value and the
  // range. Without a rate there is no queue, and only the limits of the text count.
  static Result<QueueSpec> parse(std::string_view text, const LinkSpec& link);

  friend bool operator==(const QueueSpec&, const QueueSpec&) = default;
};

// The text form, the limit in bytes.
std::string to_string(const QueueSpec& spec);

}  // namespace sdr::simulation

// RateController: how fast a path may be used and how much may be in flight, from what the peer says has landed.
//
// A controller hears of every report as a RateSample and answers with a pace and a window, both in bytes on the wire;
// parity, repairs and control datagrams count against them like fresh data. It holds a few numbers, reads no clock,
// draws random numbers from its seed alone, and allocates nothing an event.
//
// Rounds: one ends when the peer answers what was sent after the end of the one before.
// Threads: one at a time. Source: docs/rate-control.md.
#pragma once

#include <cstdint>
#include <string_view>

#include "sdr/path_rate.hpp"
#include "sdr/units.hpp"

namespace sdr::reliability {

struct RateSample {
  TimePoint now{};
  std::uint64_t delivered = 0;  // bytes that landed since the sample before
  std::uint64_t lost = 0;       // bytes that are known to be lost since then
  std::uint64_t sent = 0;       // bytes that had been sent between the questions of the two samples
  std::uint64_t packets_lost = 0;
  std::uint64_t packets_landed = 0;
  std::uint64_t marks = 0;          // of them with ECN's mark
  Bandwidth rate{};                 // at which bytes landed in the last round trip; zero: not known
  Bandwidth send_rate{};            // at which the same were sent
  Bandwidth landing{};              // since the sample before alone, and
  Bandwidth sending{};              // how those had been sent
  Duration rtt{0};                  // zero: no sample
  Duration delay{0};                // one way, from one clock to the other: only differences mean anything
  Duration newest_delay{0};         // of this sample alone; rtt and delay are the middle ones of three
  std::uint64_t in_flight = 0;      // now
  std::uint64_t was_in_flight = 0;  // when what is answered was sent, itself included
  bool round_start = false;
  bool app_limited = false;  // there was nothing to send for a part of the time
  bool dark = false;         // nothing was heard for so long that nothing was sent either
};

class RateController {
 public:
  virtual ~RateController() = default;

  // Before all else: the least RTT that is known, and how large packets are.
  virtual void begin(Duration rtt, std::uint32_t packet_bytes, TimePoint now) = 0;
  virtual void reported(const RateSample& sample) = 0;
  // Called now and then between samples, at the latest when next_timeout() says.
  virtual void tick(TimePoint /*now*/) {}
  [[nodiscard]] virtual TimePoint next_timeout() const { return kNever; }
  // Sending begins again after so long a time without anything in flight.
  virtual void resumed(Duration /*idle*/, TimePoint /*now*/) {}

  // Not limited: a pace of zero, a window of UINT64_MAX.
  [[nodiscard]] virtual Bandwidth pace() const = 0;
  [[nodiscard]] virtual std::uint64_t window() const = 0;
  // Of the path, as far as it is ours; zero: not known.
  [[nodiscard]] virtual Bandwidth bandwidth() const = 0;
  // Losses of late were ours, by the queue being full or a policer: they say nothing about those that come at random.
  [[nodiscard]] virtual bool congested() const { return false; }
  // Fills what the controller knows of it.
  virtual void describe(RateStatus& status) const = 0;
};

}  // namespace sdr::reliability

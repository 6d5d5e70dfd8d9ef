// Codel: Controlled Delay active queue management, RFC 8289 (Nichols, Jacobson, McGregor, Iyengar).
//
// Asked about each packet that has just come off the queue. When packets have waited at least `target` for a whole
// `interval`, it signals on one packet, and again after interval / sqrt(count) as long as that lasts. The answer Signal
// means: drop this packet and take the next one at the same time; or, where the packet says that its ends understand
// ECN (RFC 3168), mark it and send it on.
//
// It is the pseudocode of RFC 8289, section 5, with its loop over packets turned inside out, so that it holds no queue.
// Threads: one at a time, with times that do not go back.
#pragma once

#include <cstdint>

#include "sdr/units.hpp"

namespace sdr::simulation {

class Codel {
 public:
  enum class Verdict : std::uint8_t { Send, Signal };

  // `mtu`: a backlog of no more than one packet of that size is no standing queue.
  Codel(Duration target, Duration interval, std::uint32_t mtu) : target_(target), interval_(interval), mtu_(mtu) {}

  // A packet that has waited for `sojourn` and leaves `backlog` bytes behind it.
  Verdict dequeued(Duration sojourn, std::uint64_t backlog, TimePoint now);

 private:
  [[nodiscard]] bool ok_to_signal(Duration sojourn, std::uint64_t backlog, TimePoint now);
  [[nodiscard]] TimePoint control_law(TimePoint from) const;

  Duration target_;
  Duration interval_;
  std::uint32_t mtu_;

  TimePoint first_above_{};  // when packets will have been above target for an interval; zero: they are below
  TimePoint next_{};         // when to signal again
  std::uint32_t count_ = 0;  // signals since entering the dropping state
  std::uint32_t last_count_ = 0;
  bool dropping_ = false;
  bool signalled_ = false;  // the last packet was; `next_` is still that signal's time
};

}  // namespace sdr::simulation

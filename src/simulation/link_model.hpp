// LinkModel: one direction of a link; says for each packet when and how often it arrives, if at all.
//
// It holds no packets and reads no clock. Packet n (counted from 0 by the calls) of b bytes, handed over at time t:
//
//   wait       w = max(0, B - t)             B: when the link has sent all that it accepted before
//   queue      dropped when w > queue        (drop-tail: the bytes ahead at the rate; only with a rate)
//   departure  B' = t + w + 8 b / rate       kept to fractions of a nanosecond, reported rounded up
//   delay      D = rtt / 2 + J(B')           J: the wander of the delay, below
//   loss       lost packets have used the rate: they are lost behind the bottleneck
//   arrival    B' + D                        [+ f W when reordered, f uniform in 0.1 to 1, W = spec.reorder_window()]
//   duplicate  a second arrival f' W after the first
//
// Losses follow Gilbert (1960) and Elliott (1963) with the loss in the bad state 1 and in the good state 0. For a mean
// loss p and a mean run of L losses, a bad state ends with r = 1 / L and begins with q = p r / (1 - p). Independent
// losses are the case r = 1 - p, q = p, whose runs have the length 1 / (1 - p); no shorter runs are modelled, so any L
// below that, 1 above all, means independent. The chain starts in its stationary state and takes one step a packet. A
// burst is a stretch of time in which a busy link loses, not a number of packets that waits to be lost: where the link
// has a rate and has been idle, the chain has gone on by a step for each packet of spec.mtu bytes that would have
// fitted. A sparse stream of acknowledgements is lost one by one then, not by the hundred.
//
// With spec.loss_size s, p is that of a packet of s bytes; one of b bytes is lost with 1 - (1 - p)^(b / s), as if each
// byte were at risk by itself. The chain then takes each step with the chances of that packet's size.
//
// An outage loses what departs in it; it is counted from the time of packet 0. A trace says of each packet by its
// number whether it is lost, and begins again at its end. Both add to the random losses, and do not disturb their
// draws.
//
// J is linear between points max(jitter, 1 ms) apart, each uniform in 0 to jitter: it never falls faster than time
// passes, so that jitter by itself keeps the order.
//
// Every draw is a function of (seed, direction, stream, purpose, n), and for J of the time: see counter_random.hpp. So
// the losses of a seed are the same whatever the timing; in bursts, as long as the link is busy.
//
// Threads: one at a time, in the order of the packets, with times that do not go back.
#pragma once

#include <array>
#include <cstdint>

#include "simulation/counter_random.hpp"
#include "simulation/link_spec.hpp"

namespace sdr::simulation {

enum class Direction : std::uint8_t { Forward, Backward };

enum class Drop : std::uint8_t { None, Loss, Queue };

struct Fate {
  Drop drop = Drop::None;
  std::uint8_t copies = 0;           // arrivals: 0 when dropped, 2 when duplicated
  bool late = false;                 // reordered: the first arrival is not part of the in-order stream
  TimePoint departure;               // meaningless when dropped from the queue
  std::array<TimePoint, 2> arrival;  // the first copies of them
};

struct LinkCounts {
  std::uint64_t packets = 0;  // handed over
  std::uint64_t lost = 0;
  std::uint64_t dropped_by_queue = 0;
  std::uint64_t reordered = 0;
  std::uint64_t duplicated = 0;
};

class LinkModel {
 public:
  // `stream` tells links apart that share a spec.
  LinkModel(const LinkSpec& spec, Direction direction, std::uint32_t stream = 0);

  Fate carry(std::uint32_t wire_bytes, TimePoint now);

  [[nodiscard]] const LinkCounts& counts() const { return counts_; }
  // The longest that a packet can be under way: queue, propagation, jitter and reordering together.
  [[nodiscard]] Duration longest_delay() const;
  [[nodiscard]] const LinkSpec& spec() const { return spec_; }

 private:
  bool lost(std::uint64_t n, std::uint32_t wire_bytes, TimePoint now);
  // Packets that an idle link would have carried since the last one.
  [[nodiscard]] double idle_packets(TimePoint now) const;
  void set_loss(double loss);
  bool lost_in_trace();
  [[nodiscard]] bool in_outage(TimePoint departure) const;
  bool serialise(std::uint32_t wire_bytes, TimePoint now, TimePoint& departure);
  [[nodiscard]] Duration wander(TimePoint at);
  [[nodiscard]] Duration behind(std::uint64_t draw) const;

  LinkSpec spec_;
  Duration delay_;
  Duration window_;
  double ns_per_byte_;
  Duration jitter_step_;

  Chance loss_begins_;
  Chance loss_goes_on_;
  Chance reordered_;
  Chance duplicated_;
  CounterRandom loss_random_;
  CounterRandom reorder_random_;
  CounterRandom reorder_delay_random_;
  CounterRandom duplicate_random_;
  CounterRandom duplicate_delay_random_;
  CounterRandom jitter_random_;

  double loss_;                   // of packets of the size that the chances are those of
  bool bursts_;                   // the chain has a memory
  bool losing_;                   // the state of the chain after the last packet
  std::uint32_t loss_bytes_ = 0;  // the size of packets that the chances of a loss are those of; with loss_size only
  TimePoint begun_{};             // the time of packet 0
  std::size_t trace_run_ = 0;
  std::uint64_t trace_packet_ = 0;  // in that run
  TimePoint busy_until_{};          // B, in whole nanoseconds and
  double busy_fraction_ = 0;        // what is left
  TimePoint last_in_order_{};
  LinkCounts counts_;
};

}  // namespace sdr::simulation

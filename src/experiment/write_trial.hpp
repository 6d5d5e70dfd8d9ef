// WriteTrial: one reliable Write of the real stack over a simulated link, in virtual time, from its posting until its
// sender knows that it is complete.
//
// What is measured is the Write alone: the ends have met, their RTT is measured and the receive is announced over the
// same link without its losses; then the link becomes what it is to be, begun anew (packet 0, outages from now on), and
// the Write is posted. Payload is counted, not moved, and parity not computed: the protocol sees the same packets at
// the same times (see ReservedMemory, EndpointFacts::carries_payload).
//
// Time: both ends are driven in steps; a completion may be seen up to two steps late. The step is 256 packets of the
// rate, at most a thousandth of the RTT.
//
// What the connection has learned from the Writes before it is part of a trial, if it has any (warm_writes).
//
// Run n of a trial draws from a seed of its own, a function of (seed, n): a result depends on the trial and n, not on
// the thread or the order. Threads: any number of runs beside one another.
#pragma once

#include <cstdint>
#include <optional>

#include "experiment/timeline.hpp"
#include "sdr/connection.hpp"
#include "sdr/result.hpp"
#include "sdr/units.hpp"
#include "simulation/link_spec.hpp"

namespace sdr::experiment {

struct WriteTrial {
  static constexpr Bytes kLargest = 1_GiB * 1024;

  simulation::LinkSpec link;
  ConnectionOptions connection;  // its pace is that of the link unless it names a lower one
  Bytes size = 128_MiB;
  std::uint64_t seed = 1;         // in the place of the link's
  Duration step{0};               // zero: as above
  bool known_loss = false;        // the ends start with the link's true loss and burst (LinkEstimator::restore), and
  double loss_factor = 1;         // with the loss this many times the true one, at most 1: a wrong belief
  std::uint32_t warm_writes = 0;  // Writes of the same size before the measured one, with losses of their own
  static constexpr std::uint32_t kMostWarmWrites = 1000;
  std::uint16_t packet_overhead = 44;
};

// Counts are of the time between posting and completion.
struct TrialResult {
  Duration completion{0};
  std::uint64_t packets_sent = 0;
  std::uint64_t packets_lost = 0;  // on the way to the receiver, control datagrams included
  std::uint64_t queue_drops = 0;   // of those, by the link's queue
  std::uint64_t packets_received = 0;
  std::uint64_t duplicate_packets = 0;
  std::uint64_t late_packets = 0;
  std::uint64_t chunks_sent = 0;
  std::uint64_t chunks_retransmitted = 0;
  std::uint64_t parity_chunks_sent = 0;
  std::uint64_t chunks_recovered = 0;
  std::uint64_t fallbacks = 0;
  std::uint64_t controls_sent = 0;      // by the sender
  std::uint64_t controls_answered = 0;  // by the receiver
  std::optional<Error> error;           // the Write failed; `completion` says when

  // Adds up times and counts; errors stay where they are.
  TrialResult& operator+=(const TrialResult& other);
  friend bool operator==(const TrialResult& a, const TrialResult& b);
};

// InvalidArgument names the option, the value and the range.
Result<void> check(const WriteTrial& trial);

// Run number `number`. `timeline`, if there is one, gets to see every packet.
Result<TrialResult> run(const WriteTrial& trial, std::uint64_t number, Timeline* timeline = nullptr);

// The rate at which it sends: that of the link, or of the connection when that is lower.
Bandwidth pace_of(const WriteTrial& trial);
// The step that a trial is driven in.
Duration step_of(const WriteTrial& trial);

}  // namespace sdr::experiment

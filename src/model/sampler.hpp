// Sampler: one completion time at random. The Monte Carlo beside CompletionTime, which it shares no formula with: it
// draws losses.
//
// How a sample of 2^29 chunks is had without 2^29 draws, and exactly:
//   selective repeat, independent losses   from the last chunk backwards to the next one that was lost more often than
//                                          all behind it; only such a chunk can be the last one. A few draws.
//   selective repeat, losses in runs       the runs of the first transmissions, then within them the runs of the
//   second,
//                                          and so on: as many draws as there are runs of losses
//   erasure coding                         losses one by one, counted by submessage (independent: while kCountedLosses
//                                          are expected; beyond, the number of failed submessages is drawn at once)
//   adaptive                               the runs of losses in the tail and its parity, in the order of the wire
//   Sender::Serialised                     runs of losses against a queue of expired chunks (serialised_sender.hpp)
//
// Immutable; any thread, each with its own Draws. Source: paper sections 4.2, 5.2.
#pragma once

#include <cstdint>

#include "model/adaptive_tail.hpp"
#include "model/draws.hpp"
#include "model/erasure_code.hpp"
#include "model/scheme.hpp"
#include "model/transfer.hpp"

namespace sdr::model {

// What a retransmission costs the chunks behind it.
enum class Sender : std::uint8_t {
  Paper,       // nothing: it is injected beside them
  Serialised,  // its time on the wire, as on any real link
};

class Sampler {
 public:
  static Result<Sampler> create(const Transfer& transfer, const SchemeSpec& scheme, Sender sender = Sender::Paper);

  // Seconds until the sender has the acknowledgement.
  double operator()(Draws& draws) const;

  // Chunks of submessages that cannot be decoded, in one message; 0 of selective repeat.
  std::uint64_t undecodable(Draws& draws) const;

  static constexpr double kCountedLosses = 4096;

 private:
  Sampler(const Transfer& transfer, const SchemeSpec& scheme, Sender sender);

  double repeated(std::uint64_t chunks, Draws& draws) const;
  double repeated_independent(std::uint64_t chunks, Draws& draws) const;
  double repeated_in_runs(std::uint64_t chunks, Draws& draws) const;
  std::uint64_t undecodable_independent(Draws& draws) const;
  std::uint64_t undecodable_in_runs(Draws& draws) const;
  double adaptive(Draws& draws) const;
  // Parity chunks of each submessage that are needed until all decode; more than there are when they do not suffice.
  std::uint32_t layers_needed(Draws& draws) const;

  Transfer transfer_;
  SchemeSpec scheme_;
  Sender sender_;
  CodedMessage message_;
  SubmessageFailure failure_;  // only used where losses are too many to be counted
  double log_loss_;
  AdaptiveTail tail_;
};

}  // namespace sdr::model

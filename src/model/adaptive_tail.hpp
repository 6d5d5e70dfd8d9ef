// AdaptiveTail: what the adaptive scheme does with a message on a path whose loss it knows (docs/reliability.md).
//
// The chunks of the last round trip of injection (and three sixteenths of one more: what it takes to tell a gap from
// reordering, and to report it) are the tail: L interleaved submessages with parity until all decode but for a chance
// of `target`. In front of it, the head: lost chunks are named and sent again behind others, which costs their time.
// The repairs that go out during the last round trip are covered: by copies behind the parity, or where they are many
// by parity of their own before it.
//
// Parity goes out in layers, the first parity chunk of every submessage, then the second; the receiver is done with the
// layer with which every submessage decodes:
//
//   P(done by layer j) = (1 - P(more than j of k + j are lost))^L          (submessages fail independently)
//
// A plain value. Source: beyond the paper; the plan is the sender's own (coding/parity_plan.hpp).
#pragma once

#include <cstdint>
#include <vector>

#include "coding/parity_plan.hpp"
#include "model/scheme.hpp"
#include "model/transfer.hpp"

namespace sdr::model {

// Round trips that an end waits beyond the last arrival before it takes what is missing for lost.
inline constexpr double kSettleRtts = 1.0 / 16;

struct AdaptiveTail {
  AdaptiveTail(const Transfer& transfer, const SchemeSpec& scheme);

  std::uint64_t head = 0;  // chunks
  std::uint64_t tail = 0;
  coding::ParityPlan plan;     // of the tail
  std::uint64_t longest = 0;   // data chunks of a submessage
  double exposed_repairs = 0;  // expected, of the head's losses: those sent within the last round trip
  coding::CoverPlan cover;     // of them

  [[nodiscard]] std::uint64_t parity_chunks() const { return std::uint64_t{plan.submessages} * plan.parity_each; }
  [[nodiscard]] std::uint64_t cover_parity() const {
    return std::uint64_t{cover.code.submessages} * cover.code.parity_each;
  }
  // P(every submessage decodes with its first j parity chunks) for j from 0 to parity_each.
  [[nodiscard]] std::vector<double> done_by_layer(const ChunkLoss& loss) const;
};

}  // namespace sdr::model

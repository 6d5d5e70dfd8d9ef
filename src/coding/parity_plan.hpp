// ParityPlan: how many submessages a run of chunks is cut into, and how much parity each gets, so that all of them
// decode but with a given probability.
//
// Losses are a Gilbert-Elliott chain of mean `loss` and mean run `burst` (1 / (1 - loss) is independent loss). Chunks
// of one submessage are as many chunks apart on the wire as there are submessages, so what a submessage sees is the
// same chain in longer strides. Long submessages need the least parity for the same certainty: 128 data chunks at a
// loss of 1e-2 need 9 for 1e-5, 1000 would need 27; so the plan takes the longest that GF(2^8) allows
// (docs/decisions/0005).
//
// Pure; a plan of 262144 chunks costs tens of microseconds, one of 32 well under one.
// Source: Gilbert, "Capacity of a burst-noise channel" (1960); Elliott (1963); the union bound over submessages.
#pragma once

#include <cstdint>
#include <vector>

#include "coding/shards.hpp"

namespace sdr::coding {

// Loss of chunks in the order in which they are sent.
struct LossProcess {
  double loss = 0;   // share, 0 to 1
  double burst = 1;  // mean length of a run of losses, at least 1

  friend bool operator==(const LossProcess&, const LossProcess&) = default;
};

// The distribution of the number of losses among chunks that are `stride` apart.
class LossDistribution {
 public:
  LossDistribution(const LossProcess& process, double stride);
  // One chunk more.
  void step();
  // P(more than `count` of the chunks so far are lost).
  [[nodiscard]] double more_than(std::uint32_t count) const;

 private:
  double begin_;  // P(lost after one that arrived), P(arrives after one that was lost)
  double end_;
  std::uint32_t steps_ = 0;
  std::vector<double> arrived_;  // by losses so far, the last chunk having arrived, or having been lost
  std::vector<double> lost_;
};

struct ParityPlan {
  std::uint32_t submessages = 0;  // 0: nothing to code
  std::uint32_t parity_each = 0;
  double failure = 0;  // bound on P(not all decode)

  friend bool operator==(const ParityPlan&, const ParityPlan&) = default;
};

// The least parity with which `chunks` chunks (data) all decode but for `target`; at most `most` parity chunks in all.
// Where that does not suffice, as much of it as there is.
// Submessages have at most `longest` data chunks.
ParityPlan plan_parity(std::uint32_t chunks, const LossProcess& process, double target, std::uint32_t most,
                       std::uint32_t longest = kMaxShards - 1);

// How repairs are made safe against their own loss: each by so many further copies, or by parity over all of them.
struct CoverPlan {
  std::uint32_t copies = 0;
  ParityPlan code;  // no submessages: copies are the choice

  friend bool operator==(const CoverPlan&, const CoverPlan&) = default;
};

// For so many repairs, to be all restored but for `target`. Copies that make no more than `free` chunks in all cost
// nothing that anybody could measure, and need no word to the receiver; else whatever is less. `most` and `longest` as
// above.
CoverPlan plan_cover(std::uint32_t repairs, const LossProcess& process, double target, std::uint64_t free,
                     std::uint32_t most, std::uint32_t longest = kMaxShards - 1);

}  // namespace sdr::coding

// What the adaptive scheme allows itself against losses: bounds that its sender and the theory of it share.
//
// Pure.
#pragma once

#include <algorithm>
#include <cstdint>

#include "coding/shards.hpp"

namespace sdr::coding {

// Round trips between the sending of a chunk and the request for its repair, with the default reordering tolerance.
inline constexpr double kNoticeRtts = 1 + 3.0 / 16;
// Parity chunks that even the smallest Write may have: one of one chunk is to have its few copies.
inline constexpr double kLeastParity = 8;
// Parity that takes no more than this share of an RTT costs nothing that anybody could measure.
inline constexpr int kFreeShare = 256;
// Neither parity nor copies are made for more loss: it is a path that is dark, or carries no packets of this size.
inline constexpr double kMostLoss = 0.5;
inline constexpr std::uint32_t kMostCopies = 15;
// So few copies of repairs are not worth a code.
inline constexpr std::uint64_t kFewCovers = 64;

// The most parity chunks for so many data chunks: as many again; for few of them what one submessage can have.
inline std::uint64_t parity_room(std::uint64_t data_chunks) {
  return std::max(data_chunks, kMaxShards - std::min<std::uint64_t>(data_chunks, kMaxShards));
}

// Further copies of each of so many repairs, until all copies of any one are lost with a chance of at most `target`.
inline std::uint32_t copies_to_cover(double repairs, double loss, double target) {
  std::uint32_t copies = 0;
  for (double all_lost = std::max(1.0, repairs) * loss; all_lost > target && copies < kMostCopies; all_lost *= loss)
    ++copies;
  return copies;
}

}  // namespace sdr::coding

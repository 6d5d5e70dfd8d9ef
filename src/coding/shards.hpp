// The words that both codes share: sets of shards, their length, and how long shards are walked.
#pragma once

#include <algorithm>
#include <array>
#include <bitset>
#include <cstddef>

namespace sdr::coding {

inline constexpr unsigned kMaxShards = 255;  // data and parity together: the distinct points GF(2^8) has to offer

// Which shards are there. A bitset: no heap, counted and combined word by word, and a bit of it is a bit of the chunk
// bitmap it comes from.
using ShardSet = std::bitset<256>;

inline ShardSet first_shards(unsigned count) {
  return count == 0 ? ShardSet{} : ~ShardSet{} >> (256 - count);
}

struct ShardLength {
  std::size_t full = 0;
  std::size_t last = 0;  // of the block's last data shard; at most `full`

  ShardLength() = default;
  explicit ShardLength(std::size_t all) : full(all), last(all) {}
  ShardLength(std::size_t full_bytes, std::size_t last_bytes) : full(full_bytes), last(last_bytes) {}
};

// Where more parity rows are wanted than a kernel does at once, shards are worked on in strips of this many bytes: a
// strip of all shards of a block stays in the second-level cache while it is read for one group of rows after the
// other.
inline constexpr std::size_t kStrip = 4096;

// What the last data shard reads as beyond its end, and where what would be written there goes.
alignas(64) inline constexpr std::array<std::byte, kStrip> kZeros{};
inline std::byte* discarded_strip() {
  alignas(64) static thread_local std::array<std::byte, kStrip> strip;
  return strip.data();
}

// Calls work(offset, bytes, beyond_last) for one strip of at most `most` bytes after the other. None straddles the end
// of the last data shard: in strips with beyond_last that shard has nothing, and they are of at most kStrip bytes.
template <typename Work>
void for_each_strip(ShardLength length, std::size_t most, Work&& work) {
  for (std::size_t offset = 0; offset < length.full;) {
    const bool beyond_last = offset >= length.last;
    const std::size_t end =
        beyond_last ? std::min(offset + std::min(most, kStrip), length.full) : std::min(offset + most, length.last);
    work(offset, end - offset, beyond_last);
    offset = end;
  }
}

}  // namespace sdr::coding

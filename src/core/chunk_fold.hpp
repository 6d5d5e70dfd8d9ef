// Folding packet bits into chunk bits, inside one 64-bit word.
//
// A chunk is 2^log packets, so up to 64 packets it never straddles a word of the packet bitmap, and a larger one
// covers whole words. These are the only places where that geometry is spelled out.
//
// Freestanding: included by the device program.
#pragma once

#include <bit>
#include <cstdint>

namespace sdr::core {

inline constexpr std::uint32_t kWordBits = 64;
inline constexpr std::uint32_t kLogWordBits = 6;

// Bits [from, to) of a word; to may be 64.
constexpr std::uint64_t bit_range(std::uint32_t from, std::uint32_t to) {
  const std::uint64_t below_to = to >= kWordBits ? ~std::uint64_t{0} : (std::uint64_t{1} << to) - 1;
  const std::uint64_t below_from = from >= kWordBits ? ~std::uint64_t{0} : (std::uint64_t{1} << from) - 1;
  return below_to & ~below_from;
}

// A one at the lowest packet of each chunk of 2^log packets (log <= 6).
constexpr std::uint64_t chunk_starts(std::uint32_t log) {
  std::uint64_t mask = 0;
  for (std::uint32_t bit = 0; bit < kWordBits; bit += 1U << log) mask |= std::uint64_t{1} << bit;
  return mask;
}

// By multiplication: bit i << log goes to bit 64 - chunks + i, and no two bits meet, from 8 packets a chunk on.
constexpr std::uint64_t gather_factor(std::uint32_t log) {
  std::uint64_t factor = 0;
  const std::uint32_t chunks = kWordBits >> log;
  if (log >= 3)
    for (std::uint32_t i = 0; i < chunks; ++i) factor |= std::uint64_t{1} << (kWordBits - chunks + i - (i << log));
  return factor;
}

// Made once: a device pays for a loop for every packet.
struct ChunkMasks {
  std::uint64_t starts;  // the lowest packet of each chunk
  std::uint64_t ends;    // the highest
  std::uint64_t gather;
};
constexpr ChunkMasks chunk_masks(std::uint32_t log) {
  return {chunk_starts(log), chunk_starts(log) << ((1U << log) - 1), gather_factor(log)};
}
inline constexpr ChunkMasks kChunkMasks[kLogWordBits + 1] = {
    chunk_masks(0), chunk_masks(1), chunk_masks(2), chunk_masks(3), chunk_masks(4), chunk_masks(5), chunk_masks(6)};

// The highest packet's bit of every chunk (2^log packets, log <= 6) whose packets are all set in `word`: a one added to
// the chunk's lower packets carries into the place of the highest exactly when they are all set, and no further.
constexpr std::uint64_t full_chunks(std::uint64_t word, std::uint32_t log) {
  const ChunkMasks& masks = kChunkMasks[log];
  return ((word & ~masks.ends) + masks.starts) & word & masks.ends;
}

// full_chunks() with its bits side by side, from bit 0 on: bit i for the i-th chunk of the word.
constexpr std::uint64_t gather_chunks(std::uint64_t ends, std::uint32_t log) {
  if (log == 0) return ends;
  const std::uint64_t starts = ends >> ((1U << log) - 1);
  if (log >= 3) return starts * kChunkMasks[log].gather >> (kWordBits - (kWordBits >> log));
  // Pairs, then pairs of pairs ... By steps: a multiplication would have sums carry into one another.
  std::uint64_t x = starts;
  if (log == 1) {
    x = (x | x >> 1) & 0x3333'3333'3333'3333;
    x = (x | x >> 2) & 0x0F0F'0F0F'0F0F'0F0F;
    x = (x | x >> 4) & 0x00FF'00FF'00FF'00FF;
    x = (x | x >> 8) & 0x0000'FFFF'0000'FFFF;
    return (x | x >> 16) & 0xFFFF'FFFF;
  }
  x = (x | x >> 3) & 0x0303'0303'0303'0303;
  x = (x | x >> 6) & 0x000F'000F'000F'000F;
  x = (x | x >> 12) & 0x0000'00FF'0000'00FF;
  return (x | x >> 24) & 0xFFFF;
}

// Bits that are set, where few are: a step each, without a table or an instruction that not every device has.
constexpr std::uint32_t count_few(std::uint64_t word) {
  std::uint32_t count = 0;
  for (; word != 0; word &= word - 1) ++count;
  return count;
}

}  // namespace sdr::core

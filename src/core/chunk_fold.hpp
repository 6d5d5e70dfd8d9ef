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

// Made once: a device pays for a loop for every packet.
inline constexpr std::uint64_t kChunkStarts[kLogWordBits + 1] = {chunk_starts(0), chunk_starts(1), chunk_starts(2),
                                                                 chunk_starts(3), chunk_starts(4), chunk_starts(5),
                                                                 chunk_starts(6)};

// The lowest packet's bit of every chunk (2^log packets, log <= 6) whose packets are all set in `word`.
constexpr std::uint64_t full_chunks(std::uint64_t word, std::uint32_t log) {
  for (std::uint32_t step = 0; step < log; ++step) word &= word >> (1U << step);
  return log == 0 ? word : word & kChunkStarts[log];
}

// full_chunks() with its bits side by side, from bit 0 on: bit i for the i-th chunk of the word.
constexpr std::uint64_t gather_chunks(std::uint64_t starts, std::uint32_t log) {
  if (log == 0) return starts;
  std::uint64_t gathered = 0;
  for (; starts != 0; starts &= starts - 1)
    gathered |= std::uint64_t{1} << (static_cast<std::uint32_t>(std::countr_zero(starts)) >> log);
  return gathered;
}

}  // namespace sdr::core

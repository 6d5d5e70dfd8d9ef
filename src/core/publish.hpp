// From packet bits to chunk bits: what has to happen when a word of a packet bitmap has changed, and at the end of a
// message. Stateless; called by workers and by whoever learns the length of a message on another way, on any thread
// while the slot is open. The orders are argued in receive_worker.hpp.
//
// Freestanding: included by the device program.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>

#include "core/chunk_fold.hpp"
#include "core/message_table.hpp"

namespace sdr::core {

inline void set_chunk(const MessageTable& table, SlotIndex index, std::uint32_t chunk) {
  table.chunk_bits(index)[chunk / kWordBits].fetch_or(std::uint64_t{1} << (chunk % kWordBits),
                                                      std::memory_order_release);
}

// The words of the packet bitmap below `words` may be other than zero from now on.
inline void note_touched(Slot& slot, std::uint32_t words) {
  std::uint32_t seen = slot.words_touched.load(std::memory_order_relaxed);
  while (seen < words && !slot.words_touched.compare_exchange_weak(seen, words, std::memory_order_relaxed)) {
  }
}

// For chunks of several words, of which `word` is full now. Out of line: the rest of publish() needs no stack.
[[gnu::noinline]] inline void publish_across_words(const MessageTable& table, SlotIndex index, std::uint32_t word) {
  const std::uint32_t log = table.geometry().log_packets_per_chunk;
  const std::uint32_t words_per_chunk = 1U << (log - kLogWordBits);
  const std::uint32_t first = word & ~(words_per_chunk - 1);
  const std::span<BitmapWord> words = table.packet_bits(index);
  for (std::uint32_t w = first; w < first + words_per_chunk; ++w)
    if (words[w].load(std::memory_order_seq_cst) != ~std::uint64_t{0}) return;
  set_chunk(table, index, first >> (log - kLogWordBits));
}

// Publishes the chunks that became complete when `word` of the packet bitmap went from `before` to `after`.
inline void publish(const MessageTable& table, SlotIndex index, std::uint32_t word, std::uint64_t before,
                    std::uint64_t after) {
  const std::uint32_t log = table.geometry().log_packets_per_chunk;
  if (log <= kLogWordBits) {
    const std::uint64_t full = full_chunks(after, log);
    if (full == 0) return;
    const std::uint64_t fresh = full & ~full_chunks(before, log);
    if (fresh == 0) return;
    // A power of two up to 64 chunks lie in the word, and so in one word of the chunk bitmap, from this bit on.
    const std::uint32_t first = word << (kLogWordBits - log);
    table.chunk_bits(index)[first / kWordBits].fetch_or(gather_chunks(fresh, log) << (first % kWordBits),
                                                        std::memory_order_release);
    return;
  }
  if (after == ~std::uint64_t{0} && before != after) publish_across_words(table, index, word);
}

// The message in this slot has at most `packets` packets: completes a short last chunk. Idempotent.
inline void apply_end(const MessageTable& table, SlotIndex index, std::uint32_t packets) {
  const TableGeometry& geometry = table.geometry();
  const std::uint32_t log = geometry.log_packets_per_chunk;
  const std::uint32_t per_chunk = 1U << log;
  const std::uint32_t end = (packets + per_chunk - 1) & ~(per_chunk - 1);
  if (end == packets || end > geometry.packets_per_slot) return;
  note_touched(table.slot(index), (end + kWordBits - 1) / kWordBits);
  const std::span<BitmapWord> words = table.packet_bits(index);
  for (std::uint32_t bit = packets; bit < end;) {
    const std::uint32_t w = bit / kWordBits;
    const std::uint64_t mask = bit_range(bit % kWordBits, end - w * kWordBits);
    const std::uint64_t before = words[w].fetch_or(mask, std::memory_order_seq_cst);
    publish(table, index, w, before, before | mask);
    bit = (w + 1) * kWordBits;
  }
}

}  // namespace sdr::core

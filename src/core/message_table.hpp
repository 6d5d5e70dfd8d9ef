// MessageTable: the receiver's slots, each with its generation, packet bitmap and chunk bitmap (paper section 3.2).
//
// Model: a row is one posted receive. The backend bitmap has a bit a packet and is written by the workers only; the
// frontend bitmap has a bit a chunk, is published by them and polled by the user.
//
//   packet completion -> generation check -> packet bit (acq_rel) -> last packet of its chunk? -> chunk bit (release)
//
// Ownership and threads: the table owns no memory, it is laid over storage that the sdk (or a device) provides.
// post() and close() are called by the one thread that owns the receive queue; workers read slots at any time.
// Before a closed slot is posted again every worker must have passed a point where it holds no slot (quiescence.hpp).
//
// Invariants: (1) a packet bit, once set in a use of the slot, stays set in that use; (2) a chunk bit is set only after
// all of the chunk's packet bits, and so after their payloads are visible to whoever acquires it; (3) only words below
// words_touched, and those of the last posted chunk, are non-zero; (4) bits past the end of the message are set from
// the start ("phantom" packets), so a short last chunk completes like any other.
//
// Freestanding: included by the device program.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/chunk_fold.hpp"
#include "core/immediate.hpp"
#include "core/indices.hpp"

namespace sdr::core {

using BitmapWord = std::atomic<std::uint64_t>;

// The state word of a slot: generation in the low byte, kSlotOpen above it while a receive is posted.
inline constexpr std::uint32_t kSlotOpen = 0x100;

struct Slot {
  std::atomic<std::uint32_t> state{0};
  std::uint32_t packets = 0;                     // capacity of the posted buffer, rounded up
  std::atomic<std::uint32_t> words_touched{0};   // of the packet bitmap, by packets or by the end of the message
  std::atomic<std::uint32_t> fragments_seen{0};  // one bit a user immediate fragment
  std::atomic<std::uint32_t> user_immediate{0};  // assembled so far
  std::atomic<bool> arrived{false};              // a packet of this use has arrived
};

struct TableGeometry {
  ImmediateLayout layout;
  std::uint32_t slots = 0;
  std::uint32_t packets_per_slot = 0;  // the largest message, in packets: whole chunks
  std::uint8_t log_packets_per_chunk = 0;

  [[nodiscard]] constexpr std::uint32_t packet_words() const { return (packets_per_slot + kWordBits - 1) / kWordBits; }
  [[nodiscard]] constexpr std::uint32_t chunks_per_slot() const {
    return (packets_per_slot + (1U << log_packets_per_chunk) - 1) >> log_packets_per_chunk;
  }
  [[nodiscard]] constexpr std::uint32_t chunk_words() const { return (chunks_per_slot() + kWordBits - 1) / kWordBits; }
};

class MessageTable {
 public:
  // `packet_bits` and `chunk_bits` hold slots * packet_words() and slots * chunk_words() words, all zero. A user who
  // cannot see the slots, since they lie on a device, gives a word a slot for the user immediate as well: what has been
  // assembled in its low half, fragments_seen in its high half.
  MessageTable(const TableGeometry& geometry, std::span<Slot> slots, std::span<BitmapWord> packet_bits,
               std::span<BitmapWord> chunk_bits, std::span<BitmapWord> user_immediates = {})
      : geometry_(geometry),
        packet_words_(geometry.packet_words()),
        chunk_words_(geometry.chunk_words()),
        slots_(slots),
        packet_bits_(packet_bits),
        chunk_bits_(chunk_bits),
        user_immediates_(user_immediates) {}

  [[nodiscard]] const TableGeometry& geometry() const { return geometry_; }
  [[nodiscard]] Slot& slot(SlotIndex index) const { return slots_[index.value]; }
  [[nodiscard]] std::span<BitmapWord> packet_bits(SlotIndex index) const {
    return packet_bits_.subspan(std::size_t{index.value} * packet_words_, packet_words_);
  }
  [[nodiscard]] std::span<BitmapWord> chunk_bits(SlotIndex index) const {
    return chunk_bits_.subspan(std::size_t{index.value} * chunk_words_, chunk_words_);
  }

  // A fragment of the user immediate: its bits in place, and its bit of fragments_seen.
  void note_fragment(SlotIndex index, std::uint32_t bits, std::uint32_t seen) const {
    Slot& s = slot(index);
    s.user_immediate.fetch_or(bits, std::memory_order_relaxed);
    s.fragments_seen.fetch_or(seen, std::memory_order_release);
    if (!user_immediates_.empty())
      user_immediates_[index.value].fetch_or(std::uint64_t{seen} << 32 | bits, std::memory_order_release);
  }

  // Opens a clean slot for a receive of `packets` packets under `generation`.
  void post(SlotIndex index, Generation generation, std::uint32_t packets) const {
    Slot& s = slot(index);
    s.packets = packets;
    set_phantoms(index, packets);
    s.state.store(kSlotOpen | generation.value, std::memory_order_release);
  }

  // Shuts the slot for every packet that has not yet passed the generation check. The caller then waits for
  // quiescence and calls clean().
  void close(SlotIndex index) const { slot(index).state.store(0, std::memory_order_seq_cst); }

  // Clears what was touched: words, not message size, decide the cost.
  void clean(SlotIndex index) const {
    Slot& s = slot(index);
    const std::span<BitmapWord> packets = packet_bits(index);
    const std::span<BitmapWord> chunks = chunk_bits(index);
    const std::uint32_t touched = s.words_touched.load(std::memory_order_relaxed);
    for (std::uint32_t w = 0; w < touched; ++w) packets[w].store(0, std::memory_order_relaxed);
    clear_phantom_words(index, s.packets);
    const std::uint64_t touched_chunks = (std::uint64_t{touched} * kWordBits) >> geometry_.log_packets_per_chunk;
    const std::uint64_t chunk_words_touched = touched == 0 ? 0 : touched_chunks / kWordBits + 1;
    for (std::uint64_t w = 0; w < chunk_words_touched && w < chunks.size(); ++w)
      chunks[w].store(0, std::memory_order_relaxed);
    s.words_touched.store(0, std::memory_order_relaxed);
    s.arrived.store(false, std::memory_order_relaxed);
    s.fragments_seen.store(0, std::memory_order_relaxed);
    s.user_immediate.store(0, std::memory_order_relaxed);
    if (!user_immediates_.empty()) user_immediates_[index.value].store(0, std::memory_order_relaxed);
  }

 private:
  // Sets the phantom bits behind a message of `packets` packets within its last chunk; the slot is still closed.
  void set_phantoms(SlotIndex index, std::uint32_t packets) const {
    const std::uint32_t per_chunk = 1U << geometry_.log_packets_per_chunk;
    const std::uint32_t end = (packets + per_chunk - 1) & ~(per_chunk - 1);
    const std::span<BitmapWord> words = packet_bits(index);
    for (std::uint32_t bit = packets; bit < end;) {
      const std::uint32_t w = bit / kWordBits;
      if (w >= words.size()) break;
      const std::uint32_t to = end - w * kWordBits;
      words[w].fetch_or(bit_range(bit % kWordBits, to), std::memory_order_relaxed);
      bit = (w + 1) * kWordBits;
    }
  }

  // Phantom bits of a chunk larger than a word can lie in words that no packet touched.
  void clear_phantom_words(SlotIndex index, std::uint32_t packets) const {
    const std::uint32_t per_chunk = 1U << geometry_.log_packets_per_chunk;
    const std::uint32_t end = (packets + per_chunk - 1) & ~(per_chunk - 1);
    const std::span<BitmapWord> words = packet_bits(index);
    for (std::uint32_t w = packets / kWordBits; w * kWordBits < end && w < words.size(); ++w)
      words[w].store(0, std::memory_order_relaxed);
  }

  TableGeometry geometry_;
  std::uint32_t packet_words_;  // of a slot
  std::uint32_t chunk_words_;
  std::span<Slot> slots_;
  std::span<BitmapWord> packet_bits_;
  std::span<BitmapWord> chunk_bits_;
  std::span<BitmapWord> user_immediates_;
};

}  // namespace sdr::core

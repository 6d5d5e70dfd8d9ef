// EntryGather: completion entries as they lie -> words of packet bits, on the way into a core::ReceiveBatch.
//
// Model: nearly all packets are full ones of a slot that is open, and bring a bit that nobody has yet. For those it is
// enough to know which word of which use of which slot they belong to, and that is told by the bytes of the entry as
// they lie, masked, without turning any number round: their "name". Words that are open (128 of them, found by a hash
// of the name) gather bits; what must not be marked blindly (past the buffer, a fragment of the user immediate that is
// missing, all bits of a slot that is not posted for this generation) is set from the start, so one test finds that,
// and duplicates as well. Such packets, and short ones, go to ReceiveBatch::take(), which does everything.
//
// In order, packets of one word follow one another and its bits stay in a register; out of order, a packet costs a look
// at the table more. A word is written, by one atomic OR, when another needs its place and at the end of the batch.
//
// Threads: the worker's own; nothing is kept from batch to batch.
//
// Freestanding: included by the device program.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "core/chunk_fold.hpp"
#include "core/completion.hpp"
#include "core/immediate.hpp"
#include "offload/completion_ring.hpp"

namespace sdr::offload {

class EntryGather {
 public:
  EntryGather(const core::ImmediateLayout& layout, std::uint32_t mtu)
      : layout_(layout),
        mtu_be_(layout.packet_offset_bits < core::kLogWordBits ? ~std::uint32_t{0} : swap_bytes(mtu)),
        name_mask_(std::uint64_t{swap_bytes(~((core::kWordBits << layout.user_bits) - 1))} << 32 | 0xFF00'0000) {
    for (Word& word : words_) word.name = kNobody;
    // Neighbouring words of one slot, and slots by turns, must not meet in one place: it is the low bits of both.
    for (std::uint32_t bit = 0; bit < kLogWords; ++bit) {
      const std::uint32_t of_word = layout.user_bits + core::kLogWordBits;
      const std::uint32_t of_slot = layout.user_bits + layout.packet_offset_bits - kPlaceWordBits;
      const std::uint32_t from = lies_at((bit < kPlaceWordBits ? of_word : of_slot) + bit);
      const std::uint32_t to = 64 - kLogWords + bit;
      if (from >= 64 || from > to) continue;
      hash_mask_ |= name_mask_ & std::uint64_t{1} << from;
      hash_factor_ |= std::uint64_t{1} << (to - from);
    }
  }

  // Entries of one ring; returns how many of them were errors. Everything else is in `batch` after finish(). Out of
  // line, as what is rare in it is, so that the loop keeps its registers.
  template <typename Batch>
  [[gnu::noinline]] std::uint32_t take(const ReadyEntries entries, Batch& batch) {
    const CompletionEntry* const end = entries.end;
    const std::uint64_t name_mask = name_mask_;
    const std::uint32_t full = mtu_be_;
    const std::uint32_t ownership = entries.ownership;
    const std::uint32_t shift = 8U + layout_.user_bits;
    std::uint32_t errors = 0;
    aside_ = 0;
    Word* const words = words_.data();
    Word* word = words + kWords;  // nobody's
    std::uint64_t name = kNobody;
    std::uint64_t bits = 0;
    for (const CompletionEntry* at = entries.begin; at != end; ++at) {
      // Acquired already: with a later entry, or this one (RingConsumer::ready).
      if (at->ownership.load(std::memory_order_relaxed) != ownership) [[unlikely]] {
        ++errors;
        continue;
      }
      const std::uint64_t both = use_and_place(*at);
      if ((both & name_mask) != name) {
        word->bits = bits;
        name = both & name_mask;
        word = words + place_of(name);
        if (word->name != name) [[unlikely]] {
          if (word->name == kNobody)
            opened_[open_++] = static_cast<std::uint8_t>(word - words);
          else
            write(*word, batch);
          open(*word, name, both, batch);
        }
        bits = word->bits;
      }
      if (at->byte_count_be == full) [[likely]] {
        const std::uint64_t bit = std::uint64_t{1} << place_in_word(both, shift);
        if ((bits & bit) == 0) [[likely]] {
          bits |= bit;
          continue;
        }
      }
      word->bits = bits;
      take_aside(*word, *at, both, batch);
      bits = word->bits;
    }
    word->bits = bits;
    batch.count_marked(static_cast<std::uint32_t>(entries.end - entries.begin) - errors - aside_);
    return errors;
  }

  // Writes what is open. Must come before the batch is over.
  template <typename Batch>
  void finish(Batch& batch) {
    for (; open_ != 0; --open_) {
      Word& last = words_[opened_[open_ - 1]];
      write(last, batch);
      last.name = kNobody;
    }
  }

 private:
  static constexpr std::uint32_t kLogWords = 7;
  static constexpr std::uint32_t kPlaceWordBits = 3;
  static constexpr std::uint32_t kWords = 1U << kLogWords;
  static constexpr std::uint64_t kNobody = ~std::uint64_t{0};

  struct Word {
    std::uint64_t name;
    std::uint64_t bits;     // marked, or not to be
    std::uint64_t blocked;  // of those, the ones that are not marked
    core::SlotIndex slot;
    std::uint32_t index;  // of the word, in the slot's packet bits
  };

  // Where a bit of the immediate lies in use_and_place().
  static constexpr std::uint32_t lies_at(std::uint32_t bit) { return 32 + 8 * (3 - bit / 8) + bit % 8; }

  // The user index and the immediate as they lie, side by side.
  static std::uint64_t use_and_place(const CompletionEntry& entry) {
    static_assert(std::endian::native == std::endian::little);
    static_assert(offsetof(CompletionEntry, immediate_be) == offsetof(CompletionEntry, user_index) + 4);
    std::uint64_t both = 0;
    // Aligned: a device that must not load across words would otherwise take byte by byte.
    __builtin_memcpy(&both, __builtin_assume_aligned(&entry.user_index, 8), 8);
    return both;
  }
  static core::Completion completion(const CompletionEntry& entry, std::uint64_t both) {
    return {.immediate = swap_bytes(static_cast<std::uint32_t>(both >> 32)),
            .length = static_cast<std::uint16_t>(swap_bytes(entry.byte_count_be)),
            .generation = static_cast<std::uint8_t>(both >> 24)};
  }
  // The packet's place in its word: the six bits above the user bits. They lie in the last two bytes of the immediate,
  // the upper one first; two copies side by side hold them in the right order, once. `shift` is 8 + user bits.
  static std::uint32_t place_in_word(std::uint64_t both, std::uint32_t shift) {
    const std::uint64_t two = both >> 48;
    return static_cast<std::uint32_t>((two << 16 | two) >> shift) % core::kWordBits;
  }
  [[nodiscard]] std::uint32_t place_of(std::uint64_t name) const {
    return static_cast<std::uint32_t>((name & hash_mask_) * hash_factor_ >> (64 - kLogWords));
  }

  template <typename Batch>
  [[gnu::noinline]] void open(Word& word, std::uint64_t name, std::uint64_t both, Batch& batch) {
    const core::Immediate immediate = layout_.decode(swap_bytes(static_cast<std::uint32_t>(both >> 32)));
    word.name = name;
    word.slot = immediate.slot;
    word.index = immediate.offset.value >> core::kLogWordBits;
    word.blocked = batch.not_to_mark(word.slot, word.index, static_cast<std::uint8_t>(both >> 24));
    word.bits = word.blocked;
  }

  template <typename Batch>
  [[gnu::noinline]] static void write(const Word& word, Batch& batch) {
    if (word.bits == word.blocked) return;
    batch.mark_word(word.slot, word.index, word.bits & ~word.blocked);
  }

  // A packet that needs a look. Once the fragment that it brings is there, from it or another one, nothing more is to
  // be looked at in it, nor in the rest of its word.
  template <typename Batch>
  [[gnu::noinline]] void take_aside(Word& word, const CompletionEntry& entry, std::uint64_t both, Batch& batch) {
    const core::Completion packet = completion(entry, both);
    const core::Immediate immediate = layout_.decode(packet.immediate);
    const std::uint64_t bit = std::uint64_t{1} << (immediate.offset.value % core::kWordBits);
    const bool full = entry.byte_count_be == mtu_be_;
    if (full && (word.bits & ~word.blocked & bit) != 0) return batch.count_duplicate();
    if (full && (word.blocked & bit) != 0) {
      batch.take_fragment(immediate, packet.generation);
      const std::uint64_t marked = word.bits & ~word.blocked;
      word.blocked = batch.not_to_mark(word.slot, word.index, packet.generation) & ~marked;
      word.bits = marked | word.blocked;
      if ((word.blocked & bit) == 0) {
        word.bits |= bit;
        return;
      }
    }
    batch.take(packet);
    ++aside_;
  }

  core::ImmediateLayout layout_;
  std::uint32_t mtu_be_;     // no packet's, where slots of less than a word have every packet looked at
  std::uint64_t name_mask_;  // the generation, and of the immediate what is above the packet's place in its word
  std::uint64_t hash_mask_ = 0;
  std::uint64_t hash_factor_ = 0;
  std::uint32_t open_ = 0;
  std::uint32_t aside_ = 0;
  std::array<std::uint8_t, kWords> opened_;
  std::array<Word, kWords + 1> words_{};  // last: what lies before them is within reach of an instruction
};

}  // namespace sdr::offload

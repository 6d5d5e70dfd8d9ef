// ReceiveBatch: what one batch of completions amounts to, gathered before it is written to the bitmaps.
//
// Model: packets of one word of one slot's packet bitmap become one mask, and one atomic OR. A small set of such masks
// is open at a time, found by slot and word, so that packets which are out of order by a few words, or of several
// messages by turns, gather as well as a straight run does; a mask that another word needs the place of is written
// first. What the slot says (is it open, how long is it) is looked up once for as long as packets of that slot follow
// one another.
//
// Why it may wait: nobody is told of a packet before its bit is written, and the batch is written before the worker
// leaves it. A slot that is shut meanwhile is not cleaned before the worker has left (sdk/quiescence.hpp).
//
// Threads: the worker's own, on its stack. The orders of the atomics are argued in receive_worker.hpp.
//
// Freestanding: included by the device program.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>

#include "core/completion.hpp"
#include "core/message_table.hpp"
#include "core/publish.hpp"

namespace sdr::core {

class ReceiveBatch {
 public:
  struct Counts {
    std::uint32_t packets = 0;
    std::uint32_t duplicates = 0;
    std::uint32_t late = 0;
    std::uint32_t out_of_range = 0;
  };

  ReceiveBatch(const MessageTable& table, std::uint32_t mtu)
      : table_(table),
        layout_(table.geometry().layout),
        all_fragments_(static_cast<std::uint32_t>((std::uint64_t{1} << layout_.fragments()) - 1)),
        mtu_(mtu) {
    names_.fill(kNobody);
  }

  void take(const Completion& completion) {
    const Immediate immediate = layout_.decode(completion.immediate);
    const std::uint32_t use = use_of(immediate, completion.generation);
    if (use != use_ && !enter(use, immediate.slot, completion.generation)) return;
    const std::uint32_t offset = immediate.offset.value;
    if (completion.length != 0 && offset >= packets_) {
      ++counts_.out_of_range;
      return;
    }
    if (fragments_missing_ != 0) gather_user_immediate(immediate);
    if (completion.length != 0) mark(immediate.slot, offset);
    if (completion.length < mtu_) note_end(immediate.slot, completion.length == 0 ? offset : offset + 1);
  }

  // For a caller that gathers by itself, from completions in another form: what must not be marked, by mark_word()
  // below, of the 64 packets of a word in a use of a slot, since it lies past the buffer or brings a fragment of the
  // user immediate that is still missing. All of them, when it is not that use which is posted. Such packets, short
  // ones, and ones seen before are for take().
  //
  // The slot is looked at with acquire, so this is for workers whose batches begin and end with read-modify-writes of
  // an epoch that whoever shuts a slot reads by one, too (offload/device_worker.hpp).
  [[nodiscard]] std::uint64_t not_to_mark(SlotIndex index, std::uint32_t word, std::uint8_t generation) const {
    if (index.value >= table_.geometry().slots) return ~std::uint64_t{0};
    const Slot& slot = table_.slot(index);
    if (slot.state.load(std::memory_order_acquire) != (kSlotOpen | generation)) return ~std::uint64_t{0};
    const std::uint32_t first = word * kWordBits;
    std::uint64_t bits = 0;
    if (slot.packets < first + kWordBits) [[unlikely]]
      bits = slot.packets <= first ? ~std::uint64_t{0} : ~bit_range(0, slot.packets - first);
    const std::uint32_t seen = slot.fragments_seen.load(std::memory_order_relaxed);
    if (seen != all_fragments_) [[unlikely]] {
      std::uint64_t missing = all_fragments_ & ~seen;
      for (std::uint32_t n = layout_.fragments(); n < kWordBits; n *= 2) missing |= missing << n;
      bits |= missing;
    }
    return bits;
  }
  // Takes no more than the fragment of the user immediate from a packet that was not to be marked.
  void take_fragment(const Immediate& immediate, std::uint8_t generation) {
    if (look_at(use_of(immediate, generation), immediate.slot, generation)) gather_user_immediate(immediate);
  }
  // The caller's packets of one word; each is counted by count_marked(), and those that are not the first of their kind
  // in the batch by count_duplicate() as well.
  void mark_word(SlotIndex index, std::uint32_t word, std::uint64_t mask) { set(index, word, mask); }
  void count_marked(std::uint32_t packets) { counts_.packets += packets; }
  void count_duplicate() { ++counts_.duplicates; }

  // Writes what is still gathered. The batch is over.
  const Counts& finish() {
    for (std::uint32_t open = open_; open != 0; open &= open - 1)
      write(static_cast<std::uint32_t>(std::countr_zero(open)));
    if (end_seen_) write_end();
    counts_.packets -= counts_.duplicates;  // every packet was counted when it was marked
    return counts_;
  }

 private:
  // Masks open at a time: 2048 packets. More would cost a batch of one packet more to set up than they save.
  static constexpr std::uint32_t kOpen = 32;
  static constexpr std::uint64_t kNobody = ~std::uint64_t{0};
  static constexpr std::uint32_t kNoUse = ~std::uint32_t{0};

  static constexpr std::uint64_t name_of(const Immediate& packet) {
    return std::uint64_t{packet.slot.value} << 32 | packet.offset.value >> kLogWordBits;
  }

  static constexpr std::uint32_t use_of(const Immediate& packet, std::uint8_t generation) {
    return packet.slot.value << 8 | generation;
  }

  // Packets of another use of a slot than the last one follow. False when it is not that use which is posted; the one
  // before is then still known.
  bool enter(std::uint32_t use, SlotIndex index, std::uint8_t generation) {
    if (look_at(use, index, generation)) return true;
    ++(index.value >= table_.geometry().slots ? counts_.out_of_range : counts_.late);
    return false;
  }

  bool look_at(std::uint32_t use, SlotIndex index, std::uint8_t generation) {
    if (index.value >= table_.geometry().slots) return false;
    Slot& slot = table_.slot(index);
    // seq_cst, because whoever shuts the slot asks next whether a batch is running (sdk/quiescence.hpp): either this
    // load sees the slot shut, or that look sees this batch.
    if (slot.state.load(std::memory_order_seq_cst) != (kSlotOpen | generation)) return false;
    use_ = use;
    packets_ = slot.packets;
    fragments_missing_ = all_fragments_ & ~slot.fragments_seen.load(std::memory_order_relaxed);
    return true;
  }

  void gather_user_immediate(const Immediate& immediate) {
    const std::uint32_t which = immediate.offset.value & (layout_.fragments() - 1);
    const std::uint32_t bit = std::uint32_t{1} << which;
    if ((fragments_missing_ & bit) == 0) return;
    table_.note_fragment(immediate.slot, immediate.user_fragment << (which * layout_.user_bits), bit);
    fragments_missing_ &= ~bit;
  }

  void mark(SlotIndex index, std::uint32_t offset) {
    const std::uint32_t word = offset >> kLogWordBits;
    const std::uint64_t name = name_of({.slot = index, .offset = PacketOffset(offset)});
    // Slots by turns are mostly at the same word: neighbours must not meet in one place.
    const std::uint32_t place = (word + index.value * 5) % kOpen;
    if (names_[place] != name) {
      if (names_[place] != kNobody) write(place);
      names_[place] = name;
      masks_[place] = 0;
      open_ |= std::uint32_t{1} << place;
    }
    const std::uint64_t bit = std::uint64_t{1} << (offset % kWordBits);
    ++counts_.packets;
    counts_.duplicates += (masks_[place] & bit) != 0 ? 1U : 0U;
    masks_[place] |= bit;
  }

  void write(std::uint32_t place) {
    set(SlotIndex(static_cast<std::uint32_t>(names_[place] >> 32)), static_cast<std::uint32_t>(names_[place]),
        masks_[place]);
  }

  void set(SlotIndex index, std::uint32_t word, std::uint64_t mask) {
    Slot& slot = table_.slot(index);
    note_arrived(slot);
    note_touched(slot, word + 1);
    const std::uint64_t before = table_.packet_bits(index)[word].fetch_or(mask, std::memory_order_seq_cst);
    counts_.duplicates += count_few(before & mask);
    publish(table_, index, word, before, before | mask);
  }

  // Within a chunk the earliest end says it all; ends of different chunks or slots are applied each by itself.
  void note_end(SlotIndex index, std::uint32_t end) {
    const std::uint32_t log = table_.geometry().log_packets_per_chunk;
    if (end_seen_) {
      if (end_slot_ != index || (end_ - 1) >> log != (end - 1) >> log)
        write_end();
      else if (end_ < end)
        return;
    }
    end_slot_ = index;
    end_ = end;
    end_seen_ = true;
  }

  void write_end() {
    note_arrived(table_.slot(end_slot_));
    apply_end(table_, end_slot_, end_);
  }

  static void note_arrived(Slot& slot) {
    if (!slot.arrived.load(std::memory_order_relaxed)) slot.arrived.store(true, std::memory_order_relaxed);
  }

  const MessageTable& table_;
  const ImmediateLayout layout_;
  const std::uint32_t all_fragments_;  // a bit each
  const std::uint32_t mtu_;
  // The slot use whose packets are coming in, and what is known of it.
  std::uint32_t use_ = kNoUse;
  std::uint32_t packets_ = 0;
  std::uint32_t fragments_missing_ = 0;
  // The open masks: slot << 32 | word.
  std::uint32_t open_ = 0;
  std::array<std::uint64_t, kOpen> names_;
  std::array<std::uint64_t, kOpen> masks_;
  // The end of a message, not yet applied.
  bool end_seen_ = false;
  SlotIndex end_slot_;
  std::uint32_t end_ = 0;  // packets of the message
  Counts counts_;
};

}  // namespace sdr::core

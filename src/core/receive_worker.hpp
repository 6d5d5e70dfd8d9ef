// ReceiveWorker: turns packet completions into chunk bits. The whole receive path of libsdr runs through process().
//
// Model: for each completion, in this order (paper section 3.2): decode the immediate, check the slot's generation
// (a mismatch is a late packet), set the packet's bit, and if that was the last packet of its chunk, publish the chunk.
// Runs of packets that fall into one 64-bit word of one slot are gathered and set with a single atomic OR.
//
// Ownership and threads: one worker a thread; any number of workers share a MessageTable. Counters are written by the
// worker's thread and may be read from any.
//
// Why the orders suffice: the transport has placed the payload before it made the completion (same thread). The OR on
// the packet word is a read-modify-write with acq_rel, so all ORs on that word form one chain, and whoever sets the
// chunk's last bit has acquired every earlier OR and with it every payload of the chunk. It then publishes with
// release, the reader polls with acquire. A chunk that spans several words is published by whoever, after filling a
// word, sees all the others full: the OR and those loads are seq_cst, so of two workers that fill the last two words
// at once at least one sees both.
//
// End of a message: a packet shorter than the MTU (zero-length packets included) has nothing behind it. It sets the
// phantom bits of its chunk behind itself, so that a short last chunk completes like any other. A zero-length packet
// carries no data and sets no bit of its own: it only marks the end and may carry a user-immediate fragment. Its offset
// may lie past the posted buffer, and past the bitmaps.
//
// Freestanding: included by the device program.
#pragma once

#include <atomic>
#include <bit>
#include <cstdint>
#include <span>

#include "core/chunk_fold.hpp"
#include "core/completion.hpp"
#include "core/immediate.hpp"
#include "core/message_table.hpp"

namespace sdr::core {

// A counter with one writer and any number of readers.
class Counter {
 public:
  void add(std::uint64_t n) { value_.store(value_.load(std::memory_order_relaxed) + n, std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t get() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> value_{0};
};

struct WorkerCounters {
  Counter packets;       // packets that set a bit
  Counter duplicates;    // packets whose bit was set already
  Counter late;          // packets of an earlier use of their slot, or of a slot not posted
  Counter out_of_range;  // slot or offset beyond the table or the posted buffer
};

class ReceiveWorker {
 public:
  // `mtu` is the payload of a full packet in bytes; a shorter packet marks the end of its message.
  ReceiveWorker(const MessageTable& table, std::uint32_t mtu) : table_(&table), mtu_(mtu) {}

  [[nodiscard]] const WorkerCounters& counters() const { return counters_; }

  void process(std::span<const Completion> completions) {
    const ImmediateLayout layout = table_->geometry().layout;
    Run run;
    for (const Completion& completion : completions) {
      const Immediate immediate = layout.decode(completion.immediate);
      if (!run.extends(immediate, completion.generation)) {
        flush(run);
        if (!begin(run, immediate, completion.generation)) continue;
      }
      take(run, immediate, completion);
    }
    flush(run);
  }

 private:
  // Packets of one slot use that fall into one word of the packet bitmap, not yet written to it.
  struct Run {
    Slot* slot = nullptr;
    SlotIndex index;
    std::uint8_t generation = 0;
    std::uint32_t word = 0;
    std::uint64_t mask = 0;
    std::uint32_t end_offset = 0;  // packets of the message, if an end marker was seen in this run
    bool end_seen = false;

    [[nodiscard]] bool extends(const Immediate& immediate, std::uint8_t packet_generation) const {
      return slot != nullptr && index == immediate.slot && generation == packet_generation &&
             word == immediate.offset.value >> kLogWordBits;
    }
  };

  bool begin(Run& run, const Immediate& immediate, std::uint8_t generation) {
    run = Run{};
    if (immediate.slot.value >= table_->geometry().slots) {
      counters_.out_of_range.add(1);
      return false;
    }
    Slot& slot = table_->slot(immediate.slot);
    // seq_cst, because whoever shuts the slot asks next whether a batch is running (sdk/quiescence.hpp): either this
    // load sees the slot shut, or that look sees this batch.
    if (slot.state.load(std::memory_order_seq_cst) != (kSlotOpen | generation)) {
      counters_.late.add(1);
      return false;
    }
    run.slot = &slot;
    run.index = immediate.slot;
    run.generation = generation;
    run.word = immediate.offset.value >> kLogWordBits;
    return true;
  }

  void take(Run& run, const Immediate& immediate, const Completion& completion) {
    const std::uint32_t offset = immediate.offset.value;
    if (completion.length != 0 && offset >= run.slot->packets) {
      counters_.out_of_range.add(1);
      return;
    }
    gather_user_immediate(*run.slot, immediate);
    if (completion.length != 0) {
      const std::uint64_t bit = std::uint64_t{1} << (offset % kWordBits);
      counters_.duplicates.add((run.mask & bit) != 0 ? 1 : 0);
      run.mask |= bit;
    }
    if (completion.length < mtu_) note_end(run, completion.length == 0 ? offset : offset + 1);
  }

  // Within a chunk the earliest end says it all; short packets of different chunks are applied each by itself.
  void note_end(Run& run, std::uint32_t end) const {
    const std::uint32_t log = table_->geometry().log_packets_per_chunk;
    if (run.end_seen && (run.end_offset - 1) >> log != (end - 1) >> log)
      apply_end(*table_, run.index, run.end_offset);
    else if (run.end_seen && run.end_offset < end)
      return;
    run.end_offset = end;
    run.end_seen = true;
  }

  void gather_user_immediate(Slot& slot, const Immediate& immediate) const {
    const ImmediateLayout layout = table_->geometry().layout;
    if (layout.user_bits == 0) return;
    const std::uint32_t which = immediate.offset.value & (layout.fragments() - 1);
    const std::uint32_t seen = std::uint32_t{1} << which;
    if ((slot.fragments_seen.load(std::memory_order_relaxed) & seen) != 0) return;
    slot.user_immediate.fetch_or(immediate.user_fragment << (which * layout.user_bits), std::memory_order_relaxed);
    slot.fragments_seen.fetch_or(seen, std::memory_order_release);
  }

  void flush(Run& run) {
    if (run.slot == nullptr) return;
    if ((run.mask != 0 || run.end_seen) && !run.slot->arrived.load(std::memory_order_relaxed))
      run.slot->arrived.store(true, std::memory_order_relaxed);
    if (run.mask != 0) {
      note_touched(*run.slot, run.word + 1);
      const std::uint64_t before =
          table_->packet_bits(run.index)[run.word].fetch_or(run.mask, std::memory_order_seq_cst);
      const auto repeated = static_cast<std::uint32_t>(std::popcount(before & run.mask));
      counters_.duplicates.add(repeated);
      counters_.packets.add(static_cast<std::uint32_t>(std::popcount(run.mask)) - repeated);
      publish(*table_, run.index, run.word, before, before | run.mask);
    }
    if (run.end_seen) apply_end(*table_, run.index, run.end_offset);
    run.slot = nullptr;
  }

  static void note_touched(Slot& slot, std::uint32_t words) {
    std::uint32_t seen = slot.words_touched.load(std::memory_order_relaxed);
    while (seen < words && !slot.words_touched.compare_exchange_weak(seen, words, std::memory_order_relaxed)) {
    }
  }

  // Publishes the chunks that became complete when `word` of the packet bitmap went from `before` to `after`.
  static void publish(const MessageTable& table, SlotIndex index, std::uint32_t word, std::uint64_t before,
                      std::uint64_t after) {
    const std::uint32_t log = table.geometry().log_packets_per_chunk;
    if (log == 0) {
      const std::uint64_t fresh = after & ~before;
      if (fresh != 0) table.chunk_bits(index)[word].fetch_or(fresh, std::memory_order_release);
      return;
    }
    if (log <= kLogWordBits) {
      std::uint64_t fresh = full_chunks(after, log) & ~full_chunks(before, log);
      for (; fresh != 0; fresh &= fresh - 1) {
        const auto first_packet = word * kWordBits + static_cast<std::uint32_t>(std::countr_zero(fresh));
        set_chunk(table, index, first_packet >> log);
      }
      return;
    }
    if (after != ~std::uint64_t{0} || before == after) return;
    const std::uint32_t words_per_chunk = 1U << (log - kLogWordBits);
    const std::uint32_t first = word & ~(words_per_chunk - 1);
    const std::span<BitmapWord> words = table.packet_bits(index);
    for (std::uint32_t w = first; w < first + words_per_chunk; ++w)
      if (words[w].load(std::memory_order_seq_cst) != ~std::uint64_t{0}) return;
    set_chunk(table, index, first >> (log - kLogWordBits));
  }

  static void set_chunk(const MessageTable& table, SlotIndex index, std::uint32_t chunk) {
    table.chunk_bits(index)[chunk / kWordBits].fetch_or(std::uint64_t{1} << (chunk % kWordBits),
                                                        std::memory_order_release);
  }

 public:
  // The message in this slot has at most `packets` packets: completes a short last chunk. Idempotent; safe beside
  // workers while the slot is open. Used by end markers, and by a layer that learns the length on another way.
  static void apply_end(const MessageTable& table, SlotIndex index, std::uint32_t packets) {
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

 private:
  const MessageTable* table_;
  std::uint32_t mtu_;
  WorkerCounters counters_;
};

}  // namespace sdr::core

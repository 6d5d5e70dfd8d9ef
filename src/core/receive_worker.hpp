// ReceiveWorker: turns packet completions into chunk bits. The whole receive path of libsdr runs through process().
//
// Model: for each completion, in this order (paper section 3.2): decode the immediate, check the slot's generation
// (a mismatch is a late packet), set the packet's bit, and if that was the last packet of its chunk, publish the chunk.
// Packets of a batch that fall into one 64-bit word of one slot are gathered and set with a single atomic OR
// (receive_batch.hpp).
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
#include <cstdint>
#include <span>

#include "core/completion.hpp"
#include "core/message_table.hpp"
#include "core/publish.hpp"
#include "core/receive_batch.hpp"

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
    if (completions.empty()) return;
    process_with([&completions](ReceiveBatch& batch) {
      for (const Completion& completion : completions) batch.take(completion);
    });
  }

  // A batch of completions that lie elsewhere in another form: `fill` takes them into it.
  template <typename Fill>
  void process_with(Fill&& fill) {
    ReceiveBatch batch(*table_, mtu_);
    fill(batch);
    const ReceiveBatch::Counts& counts = batch.finish();
    counters_.packets.add(counts.packets);
    if (counts.duplicates != 0) counters_.duplicates.add(counts.duplicates);
    if (counts.late != 0) counters_.late.add(counts.late);
    if (counts.out_of_range != 0) counters_.out_of_range.add(counts.out_of_range);
  }

  // See core::apply_end(): for a layer that learns the length of a message on another way than by an end marker.
  static void apply_end(const MessageTable& table, SlotIndex index, std::uint32_t packets) {
    core::apply_end(table, index, packets);
  }

 private:
  const MessageTable* table_;
  std::uint32_t mtu_;
  WorkerCounters counters_;
};

}  // namespace sdr::core

// The completion ring of one channel: entries that the NIC writes in turn and one worker reads in turn.
//
// Model: a power of two of entries in device memory, and a record with the number of entries the worker has done with,
// the queue's doorbell record. The NIC never laps the worker: a full ring makes push() fail, and nothing is lost (a
// real queue is made as long as there can be packets in flight).
//
// Threads: one producer, one consumer. Each keeps its own position to itself.
// Invariant: entries below `consumed` have had all their effect on the bitmaps and counters.
//
// Freestanding: included by the device program.
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "core/chunk_fold.hpp"
#include "core/completion.hpp"
#include "core/immediate.hpp"
#include "offload/completion_entry.hpp"
#include "offload/orders.hpp"

namespace sdr::offload {

struct alignas(64) RingRecord {
  std::atomic<std::uint64_t> consumed;
};

// The ownership byte of the entry at `position` once it is a packet's, in a ring of 2^log entries.
constexpr std::uint8_t packet_ownership(std::uint64_t position, std::uint32_t log) {
  return static_cast<std::uint8_t>(CompletionEntry::kWriteWithImmediate | (position >> log & 1));
}

template <typename O = Orders>
class RingProducer {
 public:
  RingProducer() = default;
  RingProducer(CompletionEntry* entries, std::uint32_t log_entries, RingRecord* record)
      : entries_(entries), log_(log_entries), record_(record) {}

  // The payload is in its place. False: the ring is full, nothing has happened.
  bool push(const core::Completion& completion) { return write(completion, packet_ownership(produced_, log_)); }
  // What a queue pair in the error state completes with.
  bool push_error() { return write({}, static_cast<std::uint8_t>(CompletionEntry::kError | (produced_ >> log_ & 1))); }

  [[nodiscard]] std::uint64_t produced() const { return produced_; }
  // Entries that have had their effect; what the worker did for them is visible to the caller.
  [[nodiscard]] std::uint64_t consumed() const { return record_->consumed.load(O::ring_reuse); }

 private:
  bool write(const core::Completion& completion, std::uint8_t ownership) {
    if (produced_ - consumed_seen_ == std::uint64_t{1} << log_) {
      consumed_seen_ = record_->consumed.load(O::ring_reuse);
      if (produced_ - consumed_seen_ == std::uint64_t{1} << log_) return false;
    }
    CompletionEntry& entry = entries_[produced_ & ((std::uint64_t{1} << log_) - 1)];
    entry.user_index[2] = completion.channel;
    entry.user_index[3] = completion.generation;
    entry.immediate_be = swap_bytes(completion.immediate);
    entry.byte_count_be = swap_bytes(completion.length);
    entry.ownership.store(ownership, O::entry_publish);
    ++produced_;
    return true;
  }

  CompletionEntry* entries_ = nullptr;
  std::uint32_t log_ = 0;
  RingRecord* record_ = nullptr;
  std::uint64_t produced_ = 0;
  std::uint64_t consumed_seen_ = 0;
};

template <typename O = Orders>
class RingConsumer {
 public:
  RingConsumer() = default;
  RingConsumer(CompletionEntry* entries, std::uint32_t log_entries, RingRecord* record, std::uint32_t mtu)
      : entries_(entries), mask_((std::uint64_t{1} << log_entries) - 1), log_(log_entries), record_(record), mtu_(mtu) {
    mtu_be_ = swap_bytes(mtu);
  }

  [[nodiscard]] bool ready() const {
    const std::uint8_t now = entries_[head_ & mask_].ownership.load(O::entry_take);
    return now < CompletionEntry::kInvalid && (now & 1) == (head_ >> log_ & 1);
  }

  // Entries of one lap, at most `most`, on their way into a batch.
  class Take {
   public:
    Take(const RingConsumer& ring, std::uint32_t most)
        : at_(ring.entries_ + (ring.head_ & ring.mask_)),
          expected_(packet_ownership(ring.head_, ring.log_)),
          mtu_(ring.mtu_),
          mtu_be_(ring.mtu_be_) {
      const std::uint64_t left = ring.mask_ + 1 - (ring.head_ & ring.mask_);
      end_ = at_ + (left < most ? left : most);
    }

    // Takes what there is into `batch`. Full packets that follow one another in one word of one use, which is what
    // order looks like, are told by their bytes as they lie, and their numbers are not turned round.
    template <typename Batch>
    void into(Batch& batch, const core::ImmediateLayout& layout) {
      const std::uint32_t user_bits = layout.user_bits;
      // The generation, and of the immediate what is above the packet's place in its word.
      const std::uint64_t same_word =
          std::uint64_t{swap_bytes(~((core::kWordBits << user_bits) - 1))} << 32 | 0xFF000000;
      const std::uint32_t expected = expected_;
      const std::uint32_t up = 8 - user_bits;
      const std::uint32_t full = mtu_be_;
      std::uint64_t bits = kNoRun;
      std::uint64_t key = ~same_word;  // no packet's
      const CompletionEntry* const end = end_;
      const CompletionEntry* at = at_;
      const CompletionEntry* run = nullptr;  // the first packet of the run that is open
      for (; at != end; ++at) {
        const std::uint32_t now = at->ownership.load(O::entry_take);
        if (now != expected) [[unlikely]] {
          if (now >= CompletionEntry::kInvalid || ((now ^ expected) & 1) != 0) break;
          ++errors_;
          key = ~same_word;
          close(batch, bits, run, at);
          continue;
        }
        const std::uint64_t name = use_and_place(*at) & same_word;
        if (name == key && at->byte_count_be == full) [[likely]] {
          const std::uint64_t bit = std::uint64_t{1} << place_in_word(at->immediate_be, up, user_bits);
          if ((bit & bits) == 0) [[likely]] {
            bits |= bit;
            continue;
          }
          if (run == nullptr) {
            run = at;
            bits = batch.open_run(layout.decode(swap_bytes(at->immediate_be)), at->user_index[3]);
            if ((bit & bits) == 0) {
              bits |= bit;
              continue;
            }
          }
        }
        close(batch, bits, run, at);
        key = name;
        const std::uint32_t length = at->byte_count_be;
        take_one(batch, swap_bytes(at->immediate_be), length == full ? mtu_ : swap_bytes(length), at->user_index[3]);
      }
      close(batch, bits, run, at);
      at_ = at;
    }

   private:
    friend class RingConsumer;
    static constexpr std::uint64_t kNoRun = ~std::uint64_t{0};

    // The user index and the immediate as they lie, side by side.
    static std::uint64_t use_and_place(const CompletionEntry& entry) {
      static_assert(std::endian::native == std::endian::little);
      static_assert(offsetof(CompletionEntry, immediate_be) == offsetof(CompletionEntry, user_index) + 4);
      std::uint64_t both = 0;
      // Aligned: a device that must not load across words would otherwise take byte by byte.
      __builtin_memcpy(&both, __builtin_assume_aligned(&entry.user_index, 8), 8);
      return both;
    }
    // The packet's place in its word: the six bits above the user bits, at most eight, of a big-endian immediate.
    // `up` is 8 - user_bits.
    static std::uint32_t place_in_word(const std::uint32_t& be, std::uint32_t up, std::uint32_t user_bits) {
      const auto* bytes = reinterpret_cast<const unsigned char*>(&be);
      return (std::uint32_t{bytes[2]} << up | std::uint32_t{bytes[3]} >> user_bits) % core::kWordBits;
    }
    template <typename Batch>
    static void close(Batch& batch, std::uint64_t& bits, const CompletionEntry*& run, const CompletionEntry* end) {
      if (run == nullptr) return;
      if (run != end) batch.close_run(bits, static_cast<std::uint32_t>(end - run));
      bits = kNoRun;
      run = nullptr;
    }
    // Out of line, so that the loop above keeps its registers.
    template <typename Batch>
    [[gnu::noinline]] static void take_one(Batch& batch, std::uint32_t immediate, std::uint32_t length,
                                           std::uint32_t generation) {
      batch.take({.immediate = immediate,
                  .length = static_cast<std::uint16_t>(length),
                  .generation = static_cast<std::uint8_t>(generation)});
    }

    const CompletionEntry* at_;
    const CompletionEntry* end_;
    std::uint8_t expected_;
    std::uint32_t mtu_;
    std::uint32_t mtu_be_;
    std::uint32_t errors_ = 0;
  };

  // They have had their effect, and go back to the NIC. Returns how many were errors.
  std::uint32_t finish(const Take& take) {
    head_ += static_cast<std::uint64_t>(take.at_ - (entries_ + (head_ & mask_)));
    record_->consumed.store(head_, O::ring_consumed);
    return take.errors_;
  }

 private:
  CompletionEntry* entries_ = nullptr;
  std::uint64_t mask_ = 0;
  std::uint32_t log_ = 0;
  RingRecord* record_ = nullptr;
  std::uint32_t mtu_ = 0;
  std::uint32_t mtu_be_ = 0;
  std::uint64_t head_ = 0;
};

}  // namespace sdr::offload

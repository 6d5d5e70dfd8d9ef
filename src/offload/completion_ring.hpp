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
#include <cstddef>
#include <cstdint>

#include "core/completion.hpp"
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

// Entries of one lap that a worker has found ready.
struct ReadyEntries {
  const CompletionEntry* begin = nullptr;
  const CompletionEntry* end = nullptr;
  std::uint8_t ownership = 0;  // of packets among them; the rest are errors

  [[nodiscard]] bool empty() const { return begin == end; }
};

template <typename O = Orders>
class RingConsumer {
 public:
  RingConsumer() = default;
  RingConsumer(CompletionEntry* entries, std::uint32_t log_entries, RingRecord* record)
      : entries_(entries), mask_((std::uint64_t{1} << log_entries) - 1), log_(log_entries), record_(record) {}

  // At most `most`, and at least half of what lies ready, if anything does. The NIC writes the entries of a ring in
  // turn, so whoever acquires one has all before it: looked at are the first, the last of as many as are wanted, and
  // only when that is not ready the 2nd, 4th, 8th ... No entry has a fence of its own.
  [[nodiscard]] ReadyEntries ready(std::uint32_t most) const {
    const std::uint64_t place = head_ & mask_;
    const std::uint64_t left = mask_ + 1 - place;
    const std::uint64_t limit = left < most ? left : most;
    const CompletionEntry* const first = entries_ + place;
    std::uint64_t found = 0;
    if (is_ready(first[0])) {
      found = 1;
      if (is_ready(first[limit - 1])) {
        found = limit;
      } else {
        while (2 * found < limit && is_ready(first[2 * found - 1])) found *= 2;
      }
    }
    return {first, first + found, packet_ownership(head_, log_)};
  }

  // They have had their effect, and go back to the NIC.
  void give_back(const ReadyEntries& entries) {
    head_ += static_cast<std::uint64_t>(entries.end - entries.begin);
    record_->consumed.store(head_, O::ring_consumed);
  }

 private:
  [[nodiscard]] bool is_ready(const CompletionEntry& entry) const {
    const std::uint8_t now = entry.ownership.load(O::entry_take);
    return now < CompletionEntry::kInvalid && (now & 1) == (head_ >> log_ & 1);
  }

  CompletionEntry* entries_ = nullptr;
  std::uint64_t mask_ = 0;
  std::uint32_t log_ = 0;
  RingRecord* record_ = nullptr;
  std::uint64_t head_ = 0;
};

}  // namespace sdr::offload

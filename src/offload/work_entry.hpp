// Sending by the device: extents that the host hands over, and the work entries that the device makes of them.
//
// Model: the host writes a SendCommand for each extent of a message and rings. Every worker walks all of them and makes
// the packets of its own channels: packet n of all that were ever commanded belongs to channel n / burst mod channels.
// A WorkEntry is what a NIC wants to know for one single-packet Write with immediate; the rings, one a channel, lie in
// the host's window, where the NIC (the transport of the host) takes them in turn.
//
// Threads: commands are written by one host thread and read by all workers, which say how many they have done with.
// A ring has one worker that fills it, and one host thread that empties it.
// Invariant: a channel's entries come in the order of its packets.
//
// Freestanding: included by the device program.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "core/immediate.hpp"
#include "offload/completion_entry.hpp"
#include "offload/orders.hpp"

namespace sdr::offload {

struct alignas(64) SendCommand {
  std::uint64_t address = 0;  // of the host
  std::uint64_t bytes = 0;
  std::uint32_t slot = 0;
  std::uint32_t first = 0;  // packet
  std::uint32_t trailing = 0;
  std::uint32_t user_immediate = 0;
  std::uint32_t generation = 0;
};
inline constexpr std::uint32_t kSendCommands = 512;  // under way, a power of two

struct alignas(64) WorkEntry {
  std::uint64_t address;
  std::uint32_t immediate_be;
  std::uint32_t byte_count_be;
  std::uint8_t generation;
  std::uint8_t channel;
  std::atomic<std::uint8_t> ownership;  // kMade and the parity of the lap; zero at first

  static constexpr std::uint8_t kMade = 0x10;
};
static_assert(sizeof(WorkEntry) == 64 && sizeof(SendCommand) == 64);

struct alignas(64) SendRecord {
  std::atomic<std::uint64_t> done;  // entries that the NIC has taken
};

constexpr std::uint8_t made_ownership(std::uint64_t position, std::uint32_t log) {
  return static_cast<std::uint8_t>(WorkEntry::kMade | (position >> log & 1));
}

// The NIC's end of one ring.
class WorkConsumer {
 public:
  WorkConsumer(const WorkEntry* entries, std::uint32_t log_entries, SendRecord* record)
      : entries_(entries), log_(log_entries), record_(record) {}

  // The entry `ahead` places after the next one to be taken, once it is made.
  [[nodiscard]] const WorkEntry* look(std::uint64_t ahead) const {
    const std::uint64_t position = taken_ + ahead;
    if (ahead >> log_ != 0) return nullptr;
    const WorkEntry& entry = entries_[position & ((std::uint64_t{1} << log_) - 1)];
    return entry.ownership.load(Orders::entry_take) == made_ownership(position, log_) ? &entry : nullptr;
  }
  void take(std::uint64_t entries) {
    taken_ += entries;
    record_->done.store(taken_, Orders::ring_consumed);
  }

 private:
  const WorkEntry* entries_;
  std::uint32_t log_;
  SendRecord* record_;
  std::uint64_t taken_ = 0;
};

// The device's end.
template <typename O = Orders>
class WorkProducer {
 public:
  WorkProducer() = default;
  WorkProducer(WorkEntry* entries, std::uint32_t log_entries, const SendRecord* record)
      : entries_(entries), log_(log_entries), record_(record) {}

  [[nodiscard]] bool has_room() {
    if (made_ - taken_seen_ < std::uint64_t{1} << log_) return true;
    taken_seen_ = record_->done.load(O::ring_reuse);
    return made_ - taken_seen_ < std::uint64_t{1} << log_;
  }
  void make(std::uint64_t address, std::uint32_t immediate, std::uint32_t length, std::uint32_t generation,
            std::uint32_t channel) {
    WorkEntry& entry = entries_[made_ & ((std::uint64_t{1} << log_) - 1)];
    entry.address = address;
    entry.immediate_be = swap_bytes(immediate);
    entry.byte_count_be = swap_bytes(length);
    entry.generation = static_cast<std::uint8_t>(generation);
    entry.channel = static_cast<std::uint8_t>(channel);
    entry.ownership.store(made_ownership(made_, log_), O::entry_publish);
    ++made_;
  }

 private:
  WorkEntry* entries_ = nullptr;
  std::uint32_t log_ = 0;
  const SendRecord* record_ = nullptr;
  std::uint64_t made_ = 0;
  std::uint64_t taken_seen_ = 0;
};

}  // namespace sdr::offload

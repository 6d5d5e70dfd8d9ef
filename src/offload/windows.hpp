// Windows: where everything lies in the two pieces of memory that host and device share.
//
//   device memory   header | doorbell, commands | worker records | ring records | rings | slots | packet bits |
//                   doorbell, commands and records of sending | stacks
//   host memory     done record | user immediates | chunk bits | work rings of sending
//
// Model: a Shape says how many there are of each; both sides compute the same offsets from it. Addresses differ between
// the sides, so nothing in the windows is a pointer. Memory starts as zeros; the host lays it out, then the device
// process starts.
//
// Freestanding: included by the device program.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/message_table.hpp"
#include "offload/completion_ring.hpp"
#include "offload/doorbell.hpp"
#include "offload/work_entry.hpp"

namespace sdr::offload {

inline constexpr std::uint32_t kMaxWorkers = 64;
inline constexpr std::uint32_t kMaxChannels = 64;
inline constexpr std::size_t kStackBytes = std::size_t{64} << 10;

struct Shape {
  core::TableGeometry geometry;
  std::uint32_t mtu = 4096;
  std::uint32_t channels = 4;
  std::uint32_t workers = 4;
  std::uint32_t log_ring_entries = 10;
  std::uint32_t burst = 0;  // packets to send that stay on one channel in a row; 0: the device does not send
};
// Two compilers lay these out.
static_assert(sizeof(core::Slot) == 24 && sizeof(core::TableGeometry) == 16 && sizeof(Shape) == 36);

struct alignas(64) Header {
  std::uint64_t version;
  Shape shape;
  std::atomic<std::uint32_t> stop;
};
inline constexpr std::uint64_t kVersion = 0x5344'524F'4646'0002;  // "SDROFF", 2

// What a worker says of itself. Written by the worker, read by the host; the epoch is odd inside a batch.
struct alignas(64) WorkerRecord {
  std::atomic<std::uint64_t> epoch;
  std::atomic<std::uint64_t> alive;  // moves as long as the worker does
  std::atomic<std::uint64_t> batches;
  std::atomic<std::uint64_t> packets;
  std::atomic<std::uint64_t> duplicates;
  std::atomic<std::uint64_t> late;
  std::atomic<std::uint64_t> out_of_range;
  std::atomic<std::uint64_t> errors;
};

// Likewise, of what it sends.
struct alignas(64) SenderRecord {
  std::atomic<std::uint64_t> commands;  // that it has done with
  std::atomic<std::uint64_t> made;      // packets
};

class Windows {
 public:
  Windows(const Shape& shape, std::byte* device, std::byte* host) : shape_(shape), device_(device), host_(host) {
    std::size_t at = sizeof(Header);
    bell_ = place<DoorbellRecord>(at, 1);
    commands_ = place<Command>(at, kCommands);
    workers_ = place<WorkerRecord>(at, shape.workers);
    records_ = place<RingRecord>(at, shape.channels);
    entries_ = place<CompletionEntry>(at, std::size_t{shape.channels} << shape.log_ring_entries);
    slots_ = place<core::Slot>(at, shape.geometry.slots);
    packet_bits_ = place<core::BitmapWord>(at, packet_words());
    send_bell_ = place<DoorbellRecord>(at, 1);
    send_commands_ = place<SendCommand>(at, shape.burst == 0 ? 0 : kSendCommands);
    senders_ = place<SenderRecord>(at, shape.workers);
    work_records_ = place<SendRecord>(at, shape.channels);
    stacks_ = place<Stack>(at, shape.workers);
    device_bytes_ = at;
    at = 0;
    done_ = place<DoneRecord>(at, 1);
    immediates_ = place<core::BitmapWord>(at, shape.geometry.slots);
    chunk_bits_ = place<core::BitmapWord>(at, chunk_words());
    work_ = place<WorkEntry>(at, shape.burst == 0 ? 0 : std::size_t{shape.channels} << shape.log_ring_entries);
    host_bytes_ = at;
  }

  [[nodiscard]] const Shape& shape() const { return shape_; }
  [[nodiscard]] std::size_t device_bytes() const { return device_bytes_; }
  [[nodiscard]] std::size_t host_bytes() const { return host_bytes_; }

  [[nodiscard]] Header& header() const { return *at<Header>(device_, 0); }
  [[nodiscard]] WorkerRecord& worker(std::uint32_t index) const { return at<WorkerRecord>(device_, workers_)[index]; }
  [[nodiscard]] std::span<CompletionEntry> ring(std::uint32_t channel) const {
    const std::size_t entries = std::size_t{1} << shape_.log_ring_entries;
    return {at<CompletionEntry>(device_, entries_) + channel * entries, entries};
  }
  [[nodiscard]] RingRecord& ring_record(std::uint32_t channel) const {
    return at<RingRecord>(device_, records_)[channel];
  }
  [[nodiscard]] std::byte* stack_top(std::uint32_t worker) const {
    return device_ + stacks_ + (worker + 1) * kStackBytes;
  }
  // In its low half what has arrived of the user immediate, in its high half a bit a fragment.
  [[nodiscard]] core::BitmapWord& user_immediate(core::SlotIndex slot) const {
    return at<core::BitmapWord>(host_, immediates_)[slot.value];
  }
  template <typename O>
  [[nodiscard]] Doorbell<O> doorbell() const {
    return {at<Command>(device_, commands_), at<DoorbellRecord>(device_, bell_), at<DoneRecord>(host_, done_)};
  }
  template <typename O>
  [[nodiscard]] RingProducer<O> producer(std::uint32_t channel) const {
    return {ring(channel).data(), shape_.log_ring_entries, &ring_record(channel)};
  }
  template <typename O>
  [[nodiscard]] RingConsumer<O> consumer(std::uint32_t channel) const {
    return {ring(channel).data(), shape_.log_ring_entries, &ring_record(channel)};
  }
  [[nodiscard]] DoorbellRecord& send_bell() const { return *at<DoorbellRecord>(device_, send_bell_); }
  [[nodiscard]] SendCommand* send_commands() const { return at<SendCommand>(device_, send_commands_); }
  [[nodiscard]] SenderRecord& send_record(std::uint32_t worker) const {
    return at<SenderRecord>(device_, senders_)[worker];
  }
  template <typename O>
  [[nodiscard]] WorkProducer<O> work_producer(std::uint32_t channel) const {
    return {work_ring(channel), shape_.log_ring_entries, at<SendRecord>(device_, work_records_) + channel};
  }
  [[nodiscard]] WorkConsumer work_consumer(std::uint32_t channel) const {
    return {work_ring(channel), shape_.log_ring_entries, at<SendRecord>(device_, work_records_) + channel};
  }
  [[nodiscard]] core::MessageTable table() const {
    return {shape_.geometry,
            {at<core::Slot>(device_, slots_), shape_.geometry.slots},
            {at<core::BitmapWord>(device_, packet_bits_), packet_words()},
            {at<core::BitmapWord>(host_, chunk_bits_), chunk_words()},
            {at<core::BitmapWord>(host_, immediates_), shape_.geometry.slots}};
  }

  // Marks every entry of every ring as nobody's, and says what the device is to find. Before the device starts.
  void lay_out() const {
    for (std::uint32_t channel = 0; channel < shape_.channels; ++channel)
      for (CompletionEntry& entry : ring(channel))
        entry.ownership.store(CompletionEntry::kInvalid | 1, std::memory_order_relaxed);
    header().shape = shape_;
    header().version = kVersion;
  }

 private:
  struct alignas(64) Stack {
    std::byte bytes[kStackBytes];
  };

  [[nodiscard]] WorkEntry* work_ring(std::uint32_t channel) const {
    return at<WorkEntry>(host_, work_) + (std::size_t{channel} << shape_.log_ring_entries);
  }
  template <typename T>
  static std::size_t place(std::size_t& at, std::size_t count) {
    const std::size_t begin = (at + 63) & ~std::size_t{63};
    at = begin + count * sizeof(T);
    return begin;
  }
  template <typename T>
  static T* at(std::byte* window, std::size_t offset) {
    return reinterpret_cast<T*>(window + offset);
  }
  [[nodiscard]] std::size_t packet_words() const {
    return std::size_t{shape_.geometry.slots} * shape_.geometry.packet_words();
  }
  [[nodiscard]] std::size_t chunk_words() const {
    return std::size_t{shape_.geometry.slots} * shape_.geometry.chunk_words();
  }

  Shape shape_;
  std::byte* device_;
  std::byte* host_;
  std::size_t bell_, commands_, workers_, records_, entries_, slots_, packet_bits_, stacks_, device_bytes_;
  std::size_t send_bell_, send_commands_, senders_, work_records_;
  std::size_t done_, immediates_, chunk_bits_, work_, host_bytes_;
};

}  // namespace sdr::offload

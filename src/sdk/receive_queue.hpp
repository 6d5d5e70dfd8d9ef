// ReceiveQueue: posted receives in order, their slots, generations and bitmaps (paper section 3.1).
//
// Model: receive n takes slot n mod slots under generation (n / slots) mod generations. Posting exposes the buffer to
// the transport and opens the slot; completing shuts both, waits until no worker can still be inside, and cleans up.
//
// Late packets: a packet is told apart as long as its slot has been reused at most generations - 1 times since it was
// sent. At one message every t, a packet may be late by up to (generations - 1) * slots * t and still be dropped; one
// slot use later than that it is taken for current (tests/sdk/late_packet_test.cpp shows it).
//
// Threads: the thread that drives the QueuePair; workers reach slots through the table only.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/message_table.hpp"
#include "core/receive_worker.hpp"
#include "sdk/offload.hpp"
#include "sdk/quiescence.hpp"
#include "sdr/queue_pair.hpp"
#include "transport/transport.hpp"

namespace sdr::sdk {

class ReceiveQueue {
 public:
  // With an engine that receives, the table is the engine's.
  ReceiveQueue(const core::TableGeometry& geometry, std::uint32_t mtu, std::uint8_t generations,
               OffloadEngine* engine = nullptr);

  [[nodiscard]] const core::MessageTable& table() const { return table_; }
  [[nodiscard]] std::uint64_t bitmap_bytes() const;
  [[nodiscard]] std::uint64_t state_bytes() const;
  [[nodiscard]] std::uint64_t posted() const { return posted_; }

  struct Posted {
    RecvHandle handle;
    transport::Aim aim;
  };
  // Retry: the next slot is still occupied. An error of the transport leaves all as it was.
  Result<Posted> post(std::span<std::byte> buffer, transport::Endpoint& endpoint);
  Result<void> complete(RecvHandle handle, transport::Endpoint& endpoint, const Quiescence& quiescence);

  [[nodiscard]] Result<ChunkBitmap> chunk_bitmap(RecvHandle handle) const;
  [[nodiscard]] Result<std::uint64_t> chunk_packets(RecvHandle handle, std::uint32_t chunk, std::uint32_t from) const;
  [[nodiscard]] Result<std::uint32_t> user_immediate(RecvHandle handle) const;
  Result<void> set_length(RecvHandle handle, Bytes length);
  [[nodiscard]] bool touched(RecvHandle handle) const;

 private:
  struct Entry {
    std::uint64_t number = 0;
    std::uint64_t length = 0;  // of the posted buffer
    bool open = false;
  };
  [[nodiscard]] core::SlotIndex slot_of(std::uint64_t number) const;
  [[nodiscard]] core::Generation generation_of(std::uint64_t number) const;
  [[nodiscard]] const Entry* find(RecvHandle handle) const;
  static Error closed(RecvHandle handle);
  // Of a slot that no worker holds.
  void clear(core::SlotIndex slot);

  core::TableGeometry geometry_;
  OffloadEngine* engine_;  // null: the table is our own
  std::uint32_t mtu_;
  std::uint8_t generations_;
  std::vector<core::Slot> slots_;
  // calloc'ed: the pages of a bitmap that no message reaches are never touched and cost no memory.
  struct Free {
    void operator()(core::BitmapWord* words) const;
  };
  std::unique_ptr<core::BitmapWord[], Free> packet_bits_;
  std::unique_ptr<core::BitmapWord[], Free> chunk_bits_;
  core::MessageTable table_;
  std::vector<Entry> entries_;
  std::uint64_t posted_ = 0;
};

}  // namespace sdr::sdk

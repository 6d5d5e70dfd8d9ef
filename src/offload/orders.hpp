// Orders: every memory order of the protocol between the host and the device, by name, in one place.
//
// The names stand for the two ends of each hand-over; docs/offload.md puts them together to the argument that a host
// which sees a chunk bit sees the chunk's bytes. A test takes the same code with one of them weakened and expects the
// sanitizer to object (tests/offload/device_order.cpp). The orders inside the message table are the core's.
//
// Freestanding: included by the device program.
#pragma once

#include <atomic>

namespace sdr::offload {

struct Orders {
  // NIC -> worker: payload and entry before the entry's ownership byte.
  static constexpr std::memory_order entry_publish = std::memory_order_release;
  static constexpr std::memory_order entry_take = std::memory_order_acquire;
  // Worker -> NIC: done with an entry (and with what it did to the bitmaps) before its place is used again.
  static constexpr std::memory_order ring_consumed = std::memory_order_release;
  static constexpr std::memory_order ring_reuse = std::memory_order_acquire;
  // Host -> device: a command before the doorbell; device -> host: what the command did before the word that it did.
  static constexpr std::memory_order doorbell_ring = std::memory_order_release;
  static constexpr std::memory_order doorbell_see = std::memory_order_acquire;
  static constexpr std::memory_order command_done = std::memory_order_release;
  static constexpr std::memory_order command_seen_done = std::memory_order_acquire;
  // Worker <-> the worker that serves the doorbells, all of them read-modify-writes of the worker's epoch but the last:
  // a batch that begins after the look sees what was shut before the look; what a batch did comes before the cleaning
  // by whoever saw it end. All in one chain, so the end is one of them, and releases for the beginnings after it.
  static constexpr std::memory_order batch_begin = std::memory_order_acquire;
  static constexpr std::memory_order batch_end = std::memory_order_release;
  static constexpr std::memory_order batch_look = std::memory_order_acq_rel;
  static constexpr std::memory_order batch_seen_end = std::memory_order_acquire;
};

}  // namespace sdr::offload

// CompletionEntry: what the NIC writes for one packet, 64 bytes laid out as mlx5 lays out a receive completion.
//
// Model: numbers are big-endian. The ownership byte, written last, says whose the entry is: its low bit is the parity
// of the ring's lap, its high half the opcode; an entry nobody has written yet holds the invalid opcode. The generation
// travels in the user index, which a driver chooses for each queue pair when it creates it (generation, and the channel
// above it), so no table of queue pair numbers is looked up for each packet.
//
// Threads: written by the NIC, read by the worker of its ring (completion_ring.hpp).
// Source: struct mlx5_cqe64 of rdma-core's mlx5dv.h; a test compares the offsets where that header is installed.
//
// Freestanding: included by the device program.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace sdr::offload {

// Big-endian, by shifts: the compiler of a device without a byte-swap instruction would call a library for the builtin.
constexpr std::uint32_t swap_bytes(std::uint32_t v) {
  return v << 24 | (v & 0xFF00U) << 8 | (v >> 8 & 0xFF00U) | v >> 24;
}

struct alignas(64) CompletionEntry {
  std::uint8_t header[32];
  std::uint8_t user_index[4];  // reserved, reserved, channel, generation
  std::uint32_t immediate_be;
  std::uint32_t application;
  std::uint32_t byte_count_be;
  std::uint64_t timestamp_be;
  std::uint32_t queue_pair_be;
  std::uint16_t work_counter_be;
  std::uint8_t signature;
  std::atomic<std::uint8_t> ownership;

  static constexpr std::uint8_t kWriteWithImmediate = 0x10;  // the opcode, in its place
  static constexpr std::uint8_t kError = 0xE0;
  static constexpr std::uint8_t kInvalid = 0xF0;
};
static_assert(sizeof(CompletionEntry) == 64);
static_assert(offsetof(CompletionEntry, user_index) == 32 && offsetof(CompletionEntry, immediate_be) == 36 &&
              offsetof(CompletionEntry, byte_count_be) == 44 && offsetof(CompletionEntry, timestamp_be) == 48 &&
              offsetof(CompletionEntry, queue_pair_be) == 56 && offsetof(CompletionEntry, ownership) == 63);
static_assert(sizeof(std::atomic<std::uint8_t>) == 1);

}  // namespace sdr::offload

// TestTable: a MessageTable with storage of its own, and completions by name, for the tests of core.
//
// No threads of its own; the table in it may be shared like any other.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "core/message_table.hpp"
#include "core/receive_worker.hpp"

namespace sdr::core {

inline constexpr std::uint16_t kTestMtu = 1024;

struct TestTable {
  explicit TestTable(const TableGeometry& geometry)
      : slots(geometry.slots),
        packet_bits(std::size_t{geometry.slots} * geometry.packet_words()),
        chunk_bits(std::size_t{geometry.slots} * geometry.chunk_words()),
        table(geometry, slots, packet_bits, chunk_bits) {}

  static TableGeometry geometry(std::uint32_t packets, std::uint8_t log, std::uint32_t slots = 4,
                                ImmediateLayout layout = {}) {
    const std::uint32_t per_chunk = 1U << log;
    return {.layout = layout,
            .slots = slots,
            .packets_per_slot = (packets + per_chunk - 1) / per_chunk * per_chunk,
            .log_packets_per_chunk = log};
  }

  [[nodiscard]] Completion packet(std::uint32_t slot, std::uint32_t offset, std::uint16_t length = kTestMtu,
                                  std::uint8_t generation = 0, std::uint32_t user = 0) const {
    return {.immediate = table.geometry().layout.encode(SlotIndex(slot), PacketOffset(offset), user),
            .length = length,
            .generation = generation};
  }
  [[nodiscard]] bool chunk(std::uint32_t slot, std::uint32_t index) const {
    return (table.chunk_bits(SlotIndex(slot))[index / 64].load() >> (index % 64) & 1) != 0;
  }
  [[nodiscard]] std::uint32_t chunks_set(std::uint32_t slot) const {
    std::uint32_t count = 0;
    for (const BitmapWord& word : table.chunk_bits(SlotIndex(slot)))
      count += static_cast<std::uint32_t>(std::popcount(word.load()));
    return count;
  }
  [[nodiscard]] bool all_zero() const {
    const auto zero = [](const BitmapWord& word) { return word.load() == 0; };
    const auto idle = [](const Slot& slot) {
      return slot.state == 0 && slot.words_touched == 0 && slot.fragments_seen == 0 && slot.user_immediate == 0 &&
             !slot.arrived;
    };
    return std::all_of(packet_bits.begin(), packet_bits.end(), zero) &&
           std::all_of(chunk_bits.begin(), chunk_bits.end(), zero) && std::all_of(slots.begin(), slots.end(), idle);
  }
  void close_and_clean(std::uint32_t slot) const {
    table.close(SlotIndex(slot));
    table.clean(SlotIndex(slot));
  }

  std::vector<Slot> slots;
  std::vector<BitmapWord> packet_bits;
  std::vector<BitmapWord> chunk_bits;
  MessageTable table;
};

}  // namespace sdr::core

// Immediate: the 32 bits that ride in every packet and say where it belongs (paper section 3.2.1).
//
//   31        22 21                    4 3      0
//  [ message id |    packet offset      | user  ]   default split 10 + 18 + 4
//
// The split is chosen at QP creation and must agree on both ends. A user immediate (32 bits) is cut into
// 32 / user_bits fragments; the packet at offset o carries fragment o mod fragments, so with 4 bits any eight
// consecutive packets carry all of it.
//
// Freestanding: included by the device program.
#pragma once

#include <cstdint>

#include "core/indices.hpp"

namespace sdr::core {

struct Immediate {
  SlotIndex slot;
  PacketOffset offset;
  std::uint32_t user_fragment = 0;
};

struct ImmediateLayout {
  std::uint8_t message_id_bits = 10;
  std::uint8_t packet_offset_bits = 18;
  std::uint8_t user_bits = 4;

  // Valid when the fields fill 32 bits and the user immediate divides into equal fragments.
  [[nodiscard]] constexpr bool valid() const {
    const bool user_ok = user_bits == 0 || user_bits == 1 || user_bits == 2 || user_bits == 4 || user_bits == 8;
    return message_id_bits >= 1 && message_id_bits <= 16 && packet_offset_bits >= 1 && user_ok &&
           message_id_bits + packet_offset_bits + user_bits == 32;
  }
  [[nodiscard]] constexpr std::uint32_t max_slots() const { return 1U << message_id_bits; }
  [[nodiscard]] constexpr std::uint32_t max_packets() const { return 1U << packet_offset_bits; }
  // How many packets it takes to carry a whole user immediate; 0 when there is no room for one.
  [[nodiscard]] constexpr std::uint32_t fragments() const { return user_bits == 0 ? 0U : 32U / user_bits; }

  [[nodiscard]] constexpr std::uint32_t encode(SlotIndex slot, PacketOffset offset, std::uint32_t user) const {
    std::uint32_t fragment = 0;
    if (user_bits != 0) {
      const std::uint32_t which = offset.value & (fragments() - 1);
      fragment = (user >> (which * user_bits)) & ((1U << user_bits) - 1);
    }
    return (slot.value << (packet_offset_bits + user_bits)) | (offset.value << user_bits) | fragment;
  }

  [[nodiscard]] constexpr Immediate decode(std::uint32_t immediate) const {
    return {.slot = SlotIndex(immediate >> (packet_offset_bits + user_bits)),
            .offset = PacketOffset((immediate >> user_bits) & (max_packets() - 1)),
            .user_fragment = immediate & ((1U << user_bits) - 1)};
  }

  friend constexpr bool operator==(const ImmediateLayout&, const ImmediateLayout&) = default;
};

}  // namespace sdr::core

// Strong index types of the packet path. An index of one kind never turns into another by accident.
//
// Freestanding: included by the device program.
#pragma once

#include <compare>
#include <cstdint>

namespace sdr::core {

template <typename Tag, typename Rep>
struct Index {
  Rep value = 0;

  constexpr Index() = default;
  constexpr explicit Index(Rep v) : value(v) {}
  friend constexpr bool operator==(Index, Index) = default;
  friend constexpr auto operator<=>(Index, Index) = default;
};

using SlotIndex = Index<struct SlotTag, std::uint32_t>;               // a row of the message table
using PacketOffset = Index<struct PacketOffsetTag, std::uint32_t>;    // packets from the start of a message
using ChunkIndex = Index<struct ChunkTag, std::uint32_t>;             // chunks from the start of a message
using ChannelIndex = Index<struct ChannelTag, std::uint8_t>;          // one transport QP of an SDR QP
using Generation = Index<struct GenerationTag, std::uint8_t>;         // which use of a slot, modulo the generations
using MessageNumber = Index<struct MessageNumberTag, std::uint64_t>;  // n-th message of a QP, from 0, never wraps

}  // namespace sdr::core

// What two verbs endpoints tell each other: the info blob, the aim of an exposed buffer, the head of a control
// datagram.
//
//   aim (16 bytes, rides in the CTS)            control datagram (payload of a UD Send)
//   0   rkey       u32                          0   token   u64      the receiver's
//   4   address    u40  of the buffer's start   8   body
//   9   length     u40  of the buffer
//   14  tag        u16  of slot and generation
//
// All in network byte order. Addresses are small, because memory is registered with an iova of its page offset
// (verbs_memory.hpp). Length and tag let the sender's endpoint refuse a packet that its aim is not for, before a NIC
// does: some software NICs do not check the bounds of a window.
//
// Parsing looks at nothing but the bytes given; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/indices.hpp"
#include "sdr/result.hpp"
#include "transport/transport.hpp"
#include "transport/verbs_gid.hpp"

namespace sdr::transport::verbs_wire {

inline constexpr std::uint8_t kAimSize = 16;
inline constexpr std::uint64_t kMostAddressed = std::uint64_t{1} << 40;  // what an aim can name, in bytes
inline constexpr std::size_t kControlHeader = 8;
inline constexpr std::size_t kMostGids = 8;  // that an info lists

struct Target {
  std::uint32_t rkey = 0;
  std::uint64_t address = 0;
  std::uint64_t length = 0;
  std::uint16_t tag = 0;
};

// Tells the uses of a slot apart, and slots from each other as far as 16 bits go.
constexpr std::uint16_t tag_of(core::SlotIndex slot, core::Generation generation) {
  return static_cast<std::uint16_t>(slot.value ^ std::uint32_t{generation.value} << 8);
}

Aim encode_aim(const Target& target);
// Zeroes for an aim of another size: nothing fits into it.
Target decode_aim(const Aim& aim);

struct PeerInfo {
  std::uint16_t payload = 0;   // EndpointOptions::payload
  std::uint16_t port_mtu = 0;  // of the port, in bytes
  std::uint8_t channels = 0;
  std::uint8_t generations = 0;
  std::uint64_t token = 0;
  std::uint32_t control_qpn = 0;
  std::uint32_t control_qkey = 0;
  std::vector<VerbsGid> gids;       // what its end of the connection may be, best first
  std::vector<std::uint32_t> qpns;  // channels * generations, the generations of a channel in a row
};

std::vector<std::byte> encode_info(const PeerInfo& info);
// Protocol error for what encode_info did not write: it names the field.
Result<PeerInfo> parse_info(std::span<const std::byte> bytes);

}  // namespace sdr::transport::verbs_wire

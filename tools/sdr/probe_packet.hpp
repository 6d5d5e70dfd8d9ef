// ProbePacket: the header that every datagram of `sdr probe` begins with. The rest of a datagram is zeros.
//
//   0   magic "SDRP"   4 bytes
//   4   version        u8         of this layout
//   5   kind           u8         1 load, 2 end of a flow's load, 3 echo, 4 its reply
//   6   flow           u16        from 0 on; 0 in echoes
//   8   token          u64        of the run: strays and earlier runs have another one
//   16  trial          u32        counted over all payload sizes; kNoTrial: an echo while no load is on the way
//   20  sequence       u32        of the packet in its flow and trial; in an end, how many there were
//   24  sent at        u64        nanoseconds of the sender's clock; an echo's reply brings them back
//
// in network byte order (docs/probe.md). Plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "units/byte_codec.hpp"

namespace sdr::cli {

struct ProbePacket {
  static constexpr std::uint32_t kMagic = 0x53445250;
  static constexpr std::uint8_t kVersion = 1;
  static constexpr std::size_t kBytes = 32;
  static constexpr std::uint32_t kNoTrial = UINT32_MAX;

  enum class Kind : std::uint8_t { Load = 1, End = 2, Echo = 3, Reply = 4 };

  Kind kind = Kind::Load;
  std::uint16_t flow = 0;
  std::uint64_t token = 0;
  std::uint32_t trial = 0;
  std::uint32_t sequence = 0;
  std::uint64_t sent_at = 0;

  friend bool operator==(const ProbePacket&, const ProbePacket&) = default;
};

// Writes the header into the first kBytes of `into`, which has as many.
inline void encode(const ProbePacket& packet, std::span<std::byte> into) {
  ByteWriter writer(into);
  writer.u32(ProbePacket::kMagic);
  writer.u8(ProbePacket::kVersion);
  writer.u8(static_cast<std::uint8_t>(packet.kind));
  writer.u16(packet.flow);
  writer.u64(packet.token);
  writer.u32(packet.trial);
  writer.u32(packet.sequence);
  writer.u64(packet.sent_at);
}

// Nothing for a datagram that is not of this run or this version.
inline std::optional<ProbePacket> parse_probe_packet(std::span<const std::byte> datagram, std::uint64_t token) {
  ByteReader reader(datagram);
  const bool ours = reader.u32() == ProbePacket::kMagic && reader.u8() == ProbePacket::kVersion;
  const std::uint8_t kind = reader.u8();
  ProbePacket packet;
  packet.kind = static_cast<ProbePacket::Kind>(kind);
  packet.flow = reader.u16();
  packet.token = reader.u64();
  packet.trial = reader.u32();
  packet.sequence = reader.u32();
  packet.sent_at = reader.u64();
  const bool good = ours && reader.ok() && kind >= 1 && kind <= 4 && packet.token == token;
  return good ? std::optional(packet) : std::nullopt;
}

}  // namespace sdr::cli

#include "transport/verbs_wire.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "units/byte_codec.hpp"

namespace sdr::transport::verbs_wire {
namespace {

// The blob: magic, version, channels, generations, number of GIDs, payload, port MTU, token, control QPN and Q_Key; a
// GID each: version, prefix, 16 bytes; a QPN each: the difference from the one before, zigzag, LEB128. QPs made in a
// row mostly have numbers in a row, so that hundreds of them fit the fixed info of the C API.
constexpr std::uint32_t kMagic = 0x53445256;  // "SDRV"
constexpr std::uint8_t kInfoVersion = 1;
constexpr std::size_t kInfoFixedSize = 4 + 4 + 2 + 2 + 8 + 4 + 4;
constexpr std::size_t kGidSize = 18;
constexpr std::size_t kMostQpnBytes = 5;
constexpr std::uint32_t kMostQpn = (1U << 24) - 1;

Error malformed(std::string message) {
  return {ErrorCode::Protocol, "the peer's verbs info " + std::move(message)};
}

void put_u40(ByteWriter& writer, std::uint64_t value) {
  writer.u8(static_cast<std::uint8_t>(value >> 32));
  writer.u32(static_cast<std::uint32_t>(value));
}

std::uint64_t get_u40(ByteReader& reader) {
  const std::uint64_t high = reader.u8();
  return high << 32 | reader.u32();
}

Result<std::vector<std::uint32_t>> parse_qpns(ByteReader& reader, std::size_t count) {
  std::vector<std::uint32_t> qpns;
  std::int64_t last = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t zigzag = reader.varint();
    if (!reader.ok()) return malformed(fmt::format("ends before QP number {} of {}", i + 1, count));
    last += static_cast<std::int64_t>(zigzag >> 1) ^ -static_cast<std::int64_t>(zigzag & 1);
    if (zigzag >> 26 != 0 || last < 0 || last > kMostQpn) {
      return malformed(fmt::format("names QP {}, beyond 24 bits", last));
    }
    qpns.push_back(static_cast<std::uint32_t>(last));
  }
  return qpns;
}

}  // namespace

Aim encode_aim(const Target& target) {
  Aim aim;
  ByteWriter writer(aim.bytes);
  writer.u32(target.rkey);
  put_u40(writer, target.address);
  put_u40(writer, target.length);
  writer.u16(target.tag);
  aim.size = kAimSize;
  return aim;
}

Target decode_aim(const Aim& aim) {
  if (aim.size != kAimSize) return {};
  ByteReader reader(aim.bytes);
  Target target;
  target.rkey = reader.u32();
  target.address = get_u40(reader);
  target.length = get_u40(reader);
  target.tag = reader.u16();
  return target;
}

std::vector<std::byte> encode_info(const PeerInfo& info) {
  std::vector<std::byte> bytes(kInfoFixedSize + info.gids.size() * kGidSize + info.qpns.size() * kMostQpnBytes);
  ByteWriter writer(bytes);
  writer.u32(kMagic);
  writer.u8(kInfoVersion);
  writer.u8(info.channels);
  writer.u8(info.generations);
  writer.u8(static_cast<std::uint8_t>(info.gids.size()));
  writer.u16(info.payload);
  writer.u16(info.port_mtu);
  writer.u64(info.token);
  writer.u32(info.control_qpn);
  writer.u32(info.control_qkey);
  for (const VerbsGid& gid : info.gids) {
    writer.u8(static_cast<std::uint8_t>(gid.version));
    writer.u8(gid.prefix_bits);
    writer.bytes(gid.bytes);
  }
  std::int64_t last = 0;
  for (const std::uint32_t qpn : info.qpns) {
    const std::int64_t step = qpn - last;
    writer.varint(static_cast<std::uint64_t>(step) << 1 ^ static_cast<std::uint64_t>(step >> 63));
    last = qpn;
  }
  bytes.resize(writer.size());
  return bytes;
}

Result<PeerInfo> parse_info(std::span<const std::byte> bytes) {
  if (bytes.size() < kInfoFixedSize) {
    return malformed(fmt::format("has {} bytes, at least {} are needed", bytes.size(), kInfoFixedSize));
  }
  ByteReader reader(bytes);
  if (reader.u32() != kMagic) return malformed("does not start with SDRV: is the peer's transport another one?");
  if (const std::uint8_t version = reader.u8(); version != kInfoVersion) {
    return malformed(fmt::format("is of version {}, this library speaks version {}", version, kInfoVersion));
  }
  PeerInfo info;
  info.channels = reader.u8();
  info.generations = reader.u8();
  const std::size_t gids = reader.u8();
  info.payload = reader.u16();
  info.port_mtu = reader.u16();
  info.token = reader.u64();
  info.control_qpn = reader.u32();
  info.control_qkey = reader.u32();
  if (info.channels == 0 || info.generations == 0) {
    return malformed(fmt::format("has {} channels of {} generations", info.channels, info.generations));
  }
  if (info.control_qpn > kMostQpn) return malformed(fmt::format("names QP {}, beyond 24 bits", info.control_qpn));
  if (gids == 0 || gids > kMostGids) {
    return malformed(fmt::format("lists {} GIDs, from 1 to {} are possible", gids, kMostGids));
  }
  for (std::size_t i = 0; i < gids; ++i) {
    VerbsGid gid;
    const std::uint8_t version = reader.u8();
    gid.prefix_bits = reader.u8();
    const auto address = reader.bytes(gid.bytes.size());
    if (!reader.ok()) return malformed(fmt::format("ends before GID {} of {}", i + 1, gids));
    if (version != 1 && version != 2)
      return malformed(fmt::format("names RoCE version {}, known are 1 and 2", version));
    gid.version = static_cast<RoceVersion>(version);
    std::copy(address.begin(), address.end(), gid.bytes.begin());
    info.gids.push_back(gid);
  }
  auto qpns = parse_qpns(reader, std::size_t{info.channels} * info.generations);
  if (!qpns) return qpns.error();
  info.qpns = std::move(qpns).value();
  if (reader.left() != 0) return malformed(fmt::format("has {} bytes too many", reader.left()));
  return info;
}

}  // namespace sdr::transport::verbs_wire

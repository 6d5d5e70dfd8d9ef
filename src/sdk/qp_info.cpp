#include "sdk/qp_info.hpp"

#include <fmt/format.h>

#include "units/byte_codec.hpp"

namespace sdr::sdk {
namespace {

constexpr std::uint32_t kMagic = 0x53445251;  // "SDRQ"
constexpr std::size_t kFixedBytes = 4 * 4 + 8 + 4 * 3 + 3 + 4 + 2;

Error mismatch(const char* field, std::uint64_t local, std::uint64_t remote) {
  return {ErrorCode::Mismatch, fmt::format("the two ends differ in {}: {} here, {} at the peer", field, local, remote)};
}

}  // namespace

std::size_t QpInfo::encoded_size(std::size_t endpoint_bytes) {
  return kFixedBytes + endpoint_bytes;
}

std::vector<std::byte> QpInfo::encode() const {
  std::vector<std::byte> blob(encoded_size(endpoint_info.size()));
  ByteWriter writer(blob);
  writer.u32(kMagic);
  writer.u32(version);
  writer.u32(mtu);
  writer.u32(packets_per_chunk);
  writer.u64(max_message);
  writer.u32(slots);
  writer.u32(channels);
  writer.u32(generations);
  writer.u8(layout.message_id_bits);
  writer.u8(layout.packet_offset_bits);
  writer.u8(layout.user_bits);
  writer.u32(receive_buffer);
  writer.u16(static_cast<std::uint16_t>(endpoint_info.size()));
  writer.bytes(endpoint_info);
  return blob;
}

Result<QpInfo> QpInfo::decode(std::span<const std::byte> blob) {
  ByteReader reader(blob);
  if (reader.u32() != kMagic || !reader.ok())
    return Error{ErrorCode::InvalidArgument,
                 fmt::format("the peer's QP info ({} bytes) is not an SDR QP info", blob.size())};
  QpInfo info;
  info.version = reader.u32();
  if (reader.ok() && info.version != kProtocolVersion)
    return mismatch("protocol version", kProtocolVersion, info.version);
  info.mtu = reader.u32();
  info.packets_per_chunk = reader.u32();
  info.max_message = reader.u64();
  info.slots = reader.u32();
  info.channels = reader.u32();
  info.generations = reader.u32();
  info.layout.message_id_bits = reader.u8();
  info.layout.packet_offset_bits = reader.u8();
  info.layout.user_bits = reader.u8();
  info.receive_buffer = reader.u32();
  const std::uint16_t endpoint_bytes = reader.u16();
  const auto endpoint = reader.bytes(endpoint_bytes);
  if (!reader.ok())
    return Error{ErrorCode::InvalidArgument, fmt::format("the peer's QP info is cut short at {} bytes", blob.size())};
  info.endpoint_info.assign(endpoint.begin(), endpoint.end());
  return info;
}

Result<void> check_compatible(const QpInfo& local, const QpInfo& remote) {
  if (local.mtu != remote.mtu) return mismatch("MTU (payload bytes per packet)", local.mtu, remote.mtu);
  if (local.packets_per_chunk != remote.packets_per_chunk)
    return mismatch("packets per chunk", local.packets_per_chunk, remote.packets_per_chunk);
  if (local.slots != remote.slots) return mismatch("message slots", local.slots, remote.slots);
  if (local.max_message != remote.max_message)
    return mismatch("largest message in bytes", local.max_message, remote.max_message);
  if (local.channels != remote.channels) return mismatch("channels", local.channels, remote.channels);
  if (local.generations != remote.generations) return mismatch("generations", local.generations, remote.generations);
  if (local.layout.message_id_bits != remote.layout.message_id_bits)
    return mismatch("message id bits of the immediate", local.layout.message_id_bits, remote.layout.message_id_bits);
  if (local.layout.packet_offset_bits != remote.layout.packet_offset_bits)
    return mismatch("packet offset bits of the immediate", local.layout.packet_offset_bits,
                    remote.layout.packet_offset_bits);
  if (local.layout.user_bits != remote.layout.user_bits)
    return mismatch("user bits of the immediate", local.layout.user_bits, remote.layout.user_bits);
  return {};
}

}  // namespace sdr::sdk

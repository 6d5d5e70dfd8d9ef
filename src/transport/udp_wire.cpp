#include "transport/udp_wire.hpp"

#include <fmt/core.h>

#include <algorithm>

namespace sdr::transport::udp_wire {
namespace {

// The blob: "SDRU", version, IP version, channels, zero, payload u16, control port u16, token u64, address (4 or 16
// bytes), one u16 a channel.
constexpr std::array<std::byte, 4> kMagic{std::byte{'S'}, std::byte{'D'}, std::byte{'R'}, std::byte{'U'}};
constexpr std::uint8_t kInfoVersion = 1;
constexpr std::size_t kInfoFixedSize = 20;

std::size_t address_size(std::uint8_t ip_version) {
  return ip_version == 4 ? 4 : 16;
}

Error malformed(std::string message) {
  return {ErrorCode::Protocol, "the peer's UDP info " + std::move(message)};
}

}  // namespace

std::array<std::byte, kHeaderSize> encode_control(std::uint64_t token) {
  std::array<std::byte, kHeaderSize> header{};
  store(header.data(), token);
  header[8] = std::byte{kControlKind};
  return header;
}

std::optional<std::uint64_t> parse_control(std::span<const std::byte> header) {
  if (header.size() < kHeaderSize || header[8] != std::byte{kControlKind}) return std::nullopt;
  const auto reserved = header.subspan(9, 7);
  if (std::any_of(reserved.begin(), reserved.end(), [](std::byte b) { return b != std::byte{0}; })) return std::nullopt;
  return load<std::uint64_t>(header.data());
}

std::vector<std::byte> encode_info(const PeerInfo& info) {
  const std::size_t address = address_size(info.ip_version);
  std::vector<std::byte> bytes(kInfoFixedSize + address + 2 * info.data_ports.size());
  std::copy(kMagic.begin(), kMagic.end(), bytes.begin());
  bytes[4] = std::byte{kInfoVersion};
  bytes[5] = std::byte{info.ip_version};
  bytes[6] = static_cast<std::byte>(info.data_ports.size());
  store(&bytes[8], info.payload);
  store(&bytes[10], info.control_port);
  store(&bytes[12], info.token);
  std::memcpy(&bytes[kInfoFixedSize], info.address.data(), address);
  std::size_t at = kInfoFixedSize + address;
  for (const std::uint16_t port : info.data_ports) {
    store(bytes.data() + at, port);
    at += 2;
  }
  return bytes;
}

Result<PeerInfo> parse_info(std::span<const std::byte> bytes) {
  if (bytes.size() < kInfoFixedSize) {
    return malformed(fmt::format("has {} bytes, at least {} are needed", bytes.size(), kInfoFixedSize));
  }
  if (!std::equal(kMagic.begin(), kMagic.end(), bytes.begin())) return malformed("does not start with SDRU");
  const auto byte_at = [&](std::size_t at) { return std::to_integer<std::uint8_t>(bytes[at]); };
  if (byte_at(4) != kInfoVersion) {
    return malformed(fmt::format("is of version {}, this library speaks version {}", byte_at(4), kInfoVersion));
  }
  PeerInfo info;
  info.ip_version = byte_at(5);
  if (info.ip_version != 4 && info.ip_version != 6) {
    return malformed(fmt::format("names IP version {}, known are 4 and 6", info.ip_version));
  }
  const std::size_t channels = byte_at(6);
  const std::size_t address = address_size(info.ip_version);
  const std::size_t expected = kInfoFixedSize + address + 2 * channels;
  if (bytes.size() != expected) {
    return malformed(
        fmt::format("has {} bytes, {} channels over IPv{} make {}", bytes.size(), channels, info.ip_version, expected));
  }
  if (channels == 0) return malformed("has no channel");
  info.payload = load<std::uint16_t>(&bytes[8]);
  info.control_port = load<std::uint16_t>(&bytes[10]);
  info.token = load<std::uint64_t>(&bytes[12]);
  std::memcpy(info.address.data(), &bytes[kInfoFixedSize], address);
  for (std::size_t c = 0; c < channels; ++c) {
    info.data_ports.push_back(load<std::uint16_t>(&bytes[kInfoFixedSize + address + 2 * c]));
  }
  if (info.control_port == 0 || std::count(info.data_ports.begin(), info.data_ports.end(), 0) != 0) {
    return malformed("names port 0");
  }
  return info;
}

}  // namespace sdr::transport::udp_wire

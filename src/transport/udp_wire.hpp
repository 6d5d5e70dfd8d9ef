// The bytes that libsdr's UDP transport puts on the wire, and the blob that introduces one endpoint to another.
//
//   data packet                               control datagram
//   0   token              u64                0   token            u64
//   8   immediate          u32                8   kind             u8 = 0x12
//   12  payload length     u16                9   zero             7 bytes
//   14  kind               u8 = 0x11          16  body
//   15  generation         u8
//   16  payload
//
// All in network byte order. The high four bits of a kind are the version of this grammar, the low four say data or
// control. The token is the receiver's, drawn at random by it and told only to its peer: who does not know it cannot
// place a byte. Parsing looks at nothing but the bytes given, so it can be fuzzed by itself; it runs on any thread.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <vector>

#include "sdr/result.hpp"

namespace sdr::transport::udp_wire {

inline constexpr std::size_t kHeaderSize = 16;
inline constexpr std::uint8_t kDataKind = 0x11;
inline constexpr std::uint8_t kControlKind = 0x12;

// A whole number in network byte order at `at`, which need not be aligned.
template <typename T>
void store(std::byte* at, T value) {
  if constexpr (std::endian::native == std::endian::little && sizeof(T) == 8) value = __builtin_bswap64(value);
  if constexpr (std::endian::native == std::endian::little && sizeof(T) == 4) value = __builtin_bswap32(value);
  if constexpr (std::endian::native == std::endian::little && sizeof(T) == 2) value = __builtin_bswap16(value);
  std::memcpy(at, &value, sizeof(T));
}
template <typename T>
[[nodiscard]] T load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  if constexpr (std::endian::native == std::endian::little && sizeof(T) == 8) value = __builtin_bswap64(value);
  if constexpr (std::endian::native == std::endian::little && sizeof(T) == 4) value = __builtin_bswap32(value);
  if constexpr (std::endian::native == std::endian::little && sizeof(T) == 2) value = __builtin_bswap16(value);
  return value;
}

struct DataHeader {
  std::uint64_t token = 0;
  std::uint32_t immediate = 0;
  std::uint16_t length = 0;  // of the payload
  std::uint8_t generation = 0;
};

// Writes kHeaderSize bytes.
inline void encode_data(std::byte* at, const DataHeader& header) {
  store(at, header.token);
  store(at + 8, header.immediate);
  store(at + 12, header.length);
  at[14] = std::byte{kDataKind};
  at[15] = std::byte{header.generation};
}

// Nothing when `datagram` is too short, of another kind or version, or not of the length that its header says.
// The token is for the caller to check.
[[nodiscard]] inline std::optional<DataHeader> parse_data(std::span<const std::byte> datagram) {
  if (datagram.size() < kHeaderSize || datagram[14] != std::byte{kDataKind}) return std::nullopt;
  const DataHeader header{.token = load<std::uint64_t>(datagram.data()),
                          .immediate = load<std::uint32_t>(datagram.data() + 8),
                          .length = load<std::uint16_t>(datagram.data() + 12),
                          .generation = std::to_integer<std::uint8_t>(datagram[15])};
  if (header.length != datagram.size() - kHeaderSize) return std::nullopt;
  return header;
}

std::array<std::byte, kHeaderSize> encode_control(std::uint64_t token);

// The token of a control datagram whose first bytes are `header`; nothing when it is none.
[[nodiscard]] std::optional<std::uint64_t> parse_control(std::span<const std::byte> header);

// What one endpoint must know of another to send to it: Endpoint::info().
struct PeerInfo {
  std::uint8_t ip_version = 4;          // 4 or 6
  std::array<std::byte, 16> address{};  // network byte order; the first four bytes for IPv4
  std::uint16_t payload = 0;            // EndpointOptions::payload: both ends must place by the same
  std::uint64_t token = 0;
  std::uint16_t control_port = 0;
  std::vector<std::uint16_t> data_ports;  // one a channel
};

std::vector<std::byte> encode_info(const PeerInfo& info);
// Protocol error for what encode_info did not write: it names the field.
Result<PeerInfo> parse_info(std::span<const std::byte> bytes);

}  // namespace sdr::transport::udp_wire

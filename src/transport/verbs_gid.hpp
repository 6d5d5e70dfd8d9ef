// The choice of GIDs: which of a port's addresses a connection takes, and which of the peer's.
//
// Model: a RoCE port has a table of GIDs, several of them for one IP address (RoCE v1 and v2), and others for
// link-local addresses, VLANs and stacked devices. Taking the wrong one is the usual reason why RDMA connections come
// to nothing. Each end lists in its info() the GIDs that it would use, with the prefix length of their subnet; at
// connect() both ends judge all pairs by the same rule and so come to the same pair:
//
//   RoCE v2 before v1, the same IP version and RoCE version on both sides always; then
//   no link-local address, if there is a pair without; then
//   a common subnet; then
//   IPv4 before IPv6; then
//   the pair with the lowest addresses.
//
// Pure: no device is asked, so that the rule is tested with tables alone. Any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace sdr::transport {

enum class RoceVersion : std::uint8_t { V1 = 1, V2 = 2 };

struct VerbsGid {
  static constexpr std::uint8_t kUnknownPrefix = 0xFF;

  std::array<std::byte, 16> bytes{};  // IPv6, or IPv4 as ::ffff:a.b.c.d
  RoceVersion version = RoceVersion::V2;
  std::uint8_t prefix_bits = kUnknownPrefix;  // of the subnet, counted in the IP version's own bits
  std::uint32_t index = 0;                    // in the table of its port; means nothing to the peer

  [[nodiscard]] bool is_ipv4() const;
  [[nodiscard]] bool is_link_local() const;  // fe80::/10, 169.254.0.0/16
  [[nodiscard]] bool is_zero() const;
  // The four or sixteen bytes of the IP address.
  [[nodiscard]] std::span<const std::byte> address() const&;
  // "192.0.2.7", "2001:db8::7".
  [[nodiscard]] std::string to_string() const;

  friend bool operator==(const VerbsGid&, const VerbsGid&) = default;
};

struct VerbsGidPair {
  VerbsGid own;
  VerbsGid peer;
};

// Nothing when no GID of one table can talk to any of the other.
[[nodiscard]] std::optional<VerbsGidPair> choose_gids(std::span<const VerbsGid> own, std::span<const VerbsGid> peer);

// Those of `table` worth telling a peer, best first, at most `most`: empty entries left out.
[[nodiscard]] std::vector<VerbsGid> usable_gids(std::span<const VerbsGid> table, std::size_t most);

}  // namespace sdr::transport

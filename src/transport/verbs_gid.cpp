#include "transport/verbs_gid.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <tuple>

namespace sdr::transport {
namespace {

constexpr std::size_t kIpv4At = 12;  // in ::ffff:a.b.c.d

std::uint8_t byte_of(const VerbsGid& gid, std::size_t at) {
  return std::to_integer<std::uint8_t>(gid.bytes[at]);
}

// What people use when they say nothing: the netmask of an address that the system does not know.
std::uint8_t prefix_of(const VerbsGid& gid) {
  if (gid.prefix_bits != VerbsGid::kUnknownPrefix) return gid.prefix_bits;
  return gid.is_ipv4() ? 24 : 64;
}

bool same_subnet(const VerbsGid& a, const VerbsGid& b) {
  const auto x = a.address();
  const auto y = b.address();
  // Both ends must come to the same answer, so the wider subnet counts.
  unsigned bits = std::min<unsigned>({prefix_of(a), prefix_of(b), static_cast<unsigned>(x.size()) * 8});
  for (std::size_t i = 0; bits > 0; ++i) {
    const unsigned here = std::min(bits, 8U);
    const auto mask = static_cast<std::byte>(0xFF00U >> here & 0xFFU);
    if ((x[i] & mask) != (y[i] & mask)) return false;
    bits -= here;
  }
  return true;
}

bool compatible(const VerbsGid& a, const VerbsGid& b) {
  return a.version == b.version && a.is_ipv4() == b.is_ipv4() && !a.is_zero() && !b.is_zero();
}

// Smaller is better. Symmetric in its arguments, so that both ends agree.
auto rank(const VerbsGid& a, const VerbsGid& b) {
  return std::tuple(a.version != RoceVersion::V2, a.is_link_local() || b.is_link_local(), !same_subnet(a, b),
                    !a.is_ipv4(), std::min(a.bytes, b.bytes), std::max(a.bytes, b.bytes));
}

}  // namespace

bool VerbsGid::is_ipv4() const {
  return std::all_of(bytes.begin(), bytes.begin() + 10, [](std::byte b) { return b == std::byte{0}; }) &&
         byte_of(*this, 10) == 0xFF && byte_of(*this, 11) == 0xFF;
}

bool VerbsGid::is_link_local() const {
  if (is_ipv4()) return byte_of(*this, kIpv4At) == 169 && byte_of(*this, kIpv4At + 1) == 254;
  return byte_of(*this, 0) == 0xFE && (byte_of(*this, 1) & 0xC0) == 0x80;
}

bool VerbsGid::is_zero() const {
  return std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0}; });
}

std::span<const std::byte> VerbsGid::address() const& {
  return is_ipv4() ? std::span(bytes).subspan(kIpv4At) : std::span<const std::byte>(bytes);
}

std::string VerbsGid::to_string() const {
  char text[INET6_ADDRSTRLEN] = "?";
  inet_ntop(is_ipv4() ? AF_INET : AF_INET6, address().data(), text, sizeof text);
  return text;
}

std::optional<VerbsGidPair> choose_gids(std::span<const VerbsGid> own, std::span<const VerbsGid> peer) {
  std::optional<VerbsGidPair> best;
  for (const VerbsGid& a : own) {
    for (const VerbsGid& b : peer) {
      if (compatible(a, b) && (!best || rank(a, b) < rank(best->own, best->peer))) best = VerbsGidPair{a, b};
    }
  }
  return best;
}

std::vector<VerbsGid> usable_gids(std::span<const VerbsGid> table, std::size_t most) {
  std::vector<VerbsGid> chosen;
  std::copy_if(table.begin(), table.end(), std::back_inserter(chosen), [](const VerbsGid& g) { return !g.is_zero(); });
  std::sort(chosen.begin(), chosen.end(), [](const VerbsGid& a, const VerbsGid& b) {
    return std::tuple(rank(a, a), a.index) < std::tuple(rank(b, b), b.index);
  });
  if (chosen.size() > most) chosen.resize(most);
  return chosen;
}

}  // namespace sdr::transport

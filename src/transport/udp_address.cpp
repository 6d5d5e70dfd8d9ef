#include "transport/udp_address.hpp"

#include <arpa/inet.h>
#include <fmt/core.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <memory>

namespace sdr::transport {
namespace {

struct FreeInterfaces {
  void operator()(ifaddrs* list) const { freeifaddrs(list); }
};
using Interfaces = std::unique_ptr<ifaddrs, FreeInterfaces>;

Interfaces interfaces() {
  ifaddrs* list = nullptr;
  return Interfaces(getifaddrs(&list) == 0 ? list : nullptr);
}

// Calls visit(interface name, address) for each IP address of this machine until it returns true.
template <typename Visit>
bool any_interface(Visit visit) {
  const Interfaces list = interfaces();
  for (const ifaddrs* i = list.get(); i != nullptr; i = i->ifa_next) {
    if (i->ifa_addr == nullptr) continue;
    const int family = i->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    const socklen_t size = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    if (visit(i->ifa_name, SocketAddress(i->ifa_addr, size))) return true;
  }
  return false;
}

bool same_host(const SocketAddress& a, const SocketAddress& b) {
  const auto x = a.address_bytes();
  const auto y = b.address_bytes();
  return std::equal(x.begin(), x.end(), y.begin(), y.end());
}

// The first address that getaddrinfo gives for `host`.
std::optional<SocketAddress> resolve(const std::string& host, const std::string& port, int flags, std::string* why) {
  const addrinfo hints{.ai_flags = flags, .ai_family = AF_UNSPEC, .ai_socktype = SOCK_DGRAM};
  addrinfo* found = nullptr;
  const int code = getaddrinfo(host.c_str(), port.empty() ? nullptr : port.c_str(), &hints, &found);
  if (code != 0) {
    if (why != nullptr) *why = gai_strerror(code);
    return std::nullopt;
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> list(found, &freeaddrinfo);
  return SocketAddress(list->ai_addr, list->ai_addrlen);
}

}  // namespace

SocketAddress::SocketAddress(const sockaddr* address, socklen_t size) : size_(size) {
  std::memcpy(&storage_, address, size);
}

SocketAddress::SocketAddress(std::span<const std::byte> address, std::uint16_t port) {
  if (address.size() == 4) {
    sockaddr_in in{.sin_family = AF_INET, .sin_port = htons(port)};
    std::memcpy(&in.sin_addr, address.data(), 4);
    std::memcpy(&storage_, &in, size_ = sizeof in);
  } else {
    sockaddr_in6 in{.sin6_family = AF_INET6, .sin6_port = htons(port)};
    std::memcpy(&in.sin6_addr, address.data(), 16);
    std::memcpy(&storage_, &in, size_ = sizeof in);
  }
}

std::uint16_t SocketAddress::port() const {
  return ntohs(is_ipv6() ? reinterpret_cast<const sockaddr_in6*>(&storage_)->sin6_port
                         : reinterpret_cast<const sockaddr_in*>(&storage_)->sin_port);
}

SocketAddress SocketAddress::with_port(std::uint16_t port) const {
  SocketAddress copy = *this;
  if (is_ipv6()) {
    reinterpret_cast<sockaddr_in6*>(&copy.storage_)->sin6_port = htons(port);
  } else {
    reinterpret_cast<sockaddr_in*>(&copy.storage_)->sin_port = htons(port);
  }
  return copy;
}

SocketAddress SocketAddress::with_scope_of(const SocketAddress& other) const {
  SocketAddress copy = *this;
  if (is_link_local() && other.is_ipv6()) {
    reinterpret_cast<sockaddr_in6*>(&copy.storage_)->sin6_scope_id =
        reinterpret_cast<const sockaddr_in6*>(&other.storage_)->sin6_scope_id;
  }
  return copy;
}

std::span<const std::byte> SocketAddress::address_bytes() const& {
  if (is_ipv6()) {
    return {reinterpret_cast<const std::byte*>(&reinterpret_cast<const sockaddr_in6*>(&storage_)->sin6_addr), 16};
  }
  return {reinterpret_cast<const std::byte*>(&reinterpret_cast<const sockaddr_in*>(&storage_)->sin_addr), 4};
}

bool SocketAddress::is_unspecified() const {
  const auto bytes = address_bytes();
  return std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0}; });
}

bool SocketAddress::is_link_local() const {
  return is_ipv6() && address_bytes()[0] == std::byte{0xfe} &&
         (address_bytes()[1] & std::byte{0xc0}) == std::byte{0x80};
}

bool SocketAddress::is_local() const {
  if (!is_ipv6() && address_bytes()[0] == std::byte{127}) return true;
  return any_interface([&](const char*, const SocketAddress& own) { return same_host(own, *this); });
}

std::string SocketAddress::host() const {
  char text[INET6_ADDRSTRLEN] = "?";
  inet_ntop(storage_.ss_family, address_bytes().data(), text, sizeof text);
  if (!is_link_local()) return text;
  // Without its interface a link-local address leads nowhere.
  const unsigned scope = reinterpret_cast<const sockaddr_in6*>(&storage_)->sin6_scope_id;
  char name[IF_NAMESIZE] = "";
  if (scope == 0) return text;
  return if_indextoname(scope, name) != nullptr ? fmt::format("{}%{}", text, name) : fmt::format("{}%{}", text, scope);
}

std::string SocketAddress::to_string() const {
  return is_ipv6() ? fmt::format("[{}]:{}", host(), port()) : fmt::format("{}:{}", host(), port());
}

SocketAddress SocketAddress::any() const {
  const std::array<std::byte, 16> zero{};
  return {std::span(zero).first(address_bytes().size()), port()};
}

std::optional<std::uint32_t> SocketAddress::interface_mtu() const {
  ifreq request{};
  const bool found = any_interface([&](const char* name, const SocketAddress& own) {
    if (!same_host(own, *this)) return false;
    std::strncpy(request.ifr_name, name, IFNAMSIZ - 1);
    return true;
  });
  if (!found) return std::nullopt;
  const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return std::nullopt;
  const bool known = ioctl(fd, SIOCGIFMTU, &request) == 0;
  close(fd);
  return known ? std::optional(static_cast<std::uint32_t>(request.ifr_mtu)) : std::nullopt;
}

Result<SocketAddress> local_address(const std::string& text) {
  if (const auto literal = resolve(text, "", AI_NUMERICHOST, nullptr)) return *literal;
  std::optional<SocketAddress> best;
  const auto rank = [](const SocketAddress& a) { return !a.is_ipv6() ? 0 : a.is_link_local() ? 2 : 1; };
  any_interface([&](const char* name, const SocketAddress& own) {
    if (text == name && (!best || rank(own) < rank(*best))) best = own;
    return false;
  });
  if (best) return best->with_port(0);
  return Error{ErrorCode::InvalidArgument,
               fmt::format("\"{}\" is neither an IP address nor an interface of this machine with one", text)};
}

Result<SocketAddress> remote_address(const std::string& text) {
  std::string host = text;
  std::string port;
  if (const auto close = text.find(']'); text.starts_with('[') && close != std::string::npos) {
    host = text.substr(1, close - 1);
    if (close + 1 < text.size() && text[close + 1] == ':') port = text.substr(close + 2);
  } else if (std::count(text.begin(), text.end(), ':') == 1) {
    host = text.substr(0, text.find(':'));
    port = text.substr(text.find(':') + 1);
  }
  std::string why;
  if (const auto address = resolve(host, port, 0, &why)) return *address;
  return Error{ErrorCode::InvalidArgument, fmt::format("no IP address for \"{}\": {}", text, why)};
}

}  // namespace sdr::transport

// SocketAddress: an IPv4 or IPv6 address with a port, and what this machine knows about it.
//
// Used while endpoints are made and connected, from one thread; never on the data path.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "sdr/result.hpp"

namespace sdr::transport {

class SocketAddress {
 public:
  SocketAddress() = default;
  SocketAddress(const sockaddr* address, socklen_t size);
  // From four (IPv4) or sixteen (IPv6) bytes in network order.
  SocketAddress(std::span<const std::byte> address, std::uint16_t port);

  [[nodiscard]] const sockaddr* raw() const { return reinterpret_cast<const sockaddr*>(&storage_); }
  [[nodiscard]] socklen_t size() const { return size_; }
  [[nodiscard]] bool is_ipv6() const { return storage_.ss_family == AF_INET6; }
  [[nodiscard]] std::uint16_t port() const;
  [[nodiscard]] SocketAddress with_port(std::uint16_t port) const;
  // A link-local IPv6 address means nothing without the interface it is on.
  [[nodiscard]] SocketAddress with_scope_of(const SocketAddress& other) const;
  [[nodiscard]] std::span<const std::byte> address_bytes() const&;
  std::span<const std::byte> address_bytes() const&& = delete;  // would outlive what it points into
  [[nodiscard]] bool is_unspecified() const;                    // 0.0.0.0 or ::
  [[nodiscard]] bool is_link_local() const;                     // fe80::/10
  [[nodiscard]] bool is_local() const;                          // loopback, or an address of this machine
  [[nodiscard]] std::string host() const;                       // "192.0.2.7", "2001:db8::7"
  [[nodiscard]] std::string to_string() const;                  // "192.0.2.7:5201", "[2001:db8::7]:5201"

  // The unspecified address of the same IP version.
  [[nodiscard]] SocketAddress any() const;
  // The MTU of the interface that has this address; nothing when none has.
  [[nodiscard]] std::optional<std::uint32_t> interface_mtu() const;

 private:
  sockaddr_storage storage_{};
  socklen_t size_ = 0;
};

// An IPv4 or IPv6 literal, or an interface's name: then its first IPv4 address, else its first IPv6 address, link-local
// ones last because they do not route. The port is 0.
Result<SocketAddress> local_address(const std::string& text);
// "192.0.2.7", "host", "host:5201", "2001:db8::7", "[2001:db8::7]:5201". Asks the resolver when it is a name.
Result<SocketAddress> remote_address(const std::string& text);

}  // namespace sdr::transport

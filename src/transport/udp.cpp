#include "transport/udp.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "transport/udp_address.hpp"
#include "transport/udp_endpoint.hpp"
#include "transport/udp_socket.hpp"

namespace sdr::transport {
namespace {

// What a UDP datagram over IPv4 can carry beside our header, down to a multiple of 8.
constexpr std::uint16_t kMaxPayload = (UdpSocket::kMaxBatchBytes - udp_wire::kHeaderSize) / 8 * 8;
// Of Ethernet: assumed where nothing is known of the path.
constexpr std::uint32_t kUsualMtu = 1500;

Error invalid(std::string message) {
  return {ErrorCode::InvalidArgument, std::move(message)};
}

// Where sockets are bound, and what the peer is told.
struct Addresses {
  SocketAddress bind;
  SocketAddress advertised;
};

Result<Addresses> addresses(const UdpOptions& options) {
  std::string advertise = options.advertise_address;
  if (options.bind_address.empty()) {
    auto advertised = local_address(advertise.empty() ? "127.0.0.1" : advertise);
    if (!advertised) return advertised.error();
    return Addresses{.bind = advertised->is_local() ? *advertised : advertised->any(), .advertised = *advertised};
  }
  const auto bind = local_address(options.bind_address);
  if (!bind) return bind.error();
  if (advertise.empty()) {
    if (!bind->is_unspecified()) return Addresses{.bind = *bind, .advertised = *bind};
    advertise = bind->is_ipv6() ? "::1" : "127.0.0.1";
  }
  auto advertised = local_address(advertise);
  if (!advertised) return advertised.error();
  if (advertised->is_ipv6() != bind->is_ipv6()) {
    return invalid(fmt::format("bind address {} and advertised address {} are of different IP versions", bind->host(),
                               advertised->host()));
  }
  return Addresses{.bind = *bind, .advertised = *advertised};
}

Result<void> check(const EndpointOptions& options, const UdpOptions& udp) {
  if (Result<void> valid = transport::check(options, kMaxPayload); !valid) return valid;
  if (udp.base_port != 0 && udp.base_port + options.channels > 65535) {
    return invalid(fmt::format("base port {} and {} channels go beyond port 65535", udp.base_port, options.channels));
  }
  return {};
}

std::uint16_t payload_for(std::uint32_t mtu, bool ipv6) {
  const std::uint32_t overhead = (ipv6 ? 40 : 20) + 8 + udp_wire::kHeaderSize;
  const std::uint32_t room = mtu > overhead ? mtu - overhead : 0;
  return static_cast<std::uint16_t>(std::min<std::uint32_t>(room, UdpDevice::kMaxSuggestedPayload) / 8 * 8);
}

}  // namespace

Result<std::uint16_t> UdpDevice::max_payload(const std::string& remote) const {
  const auto own = addresses(options_);
  if (!own) return own.error();
  if (remote.empty()) {
    const auto mtu = own->bind.is_unspecified() ? std::nullopt : own->bind.interface_mtu();
    return payload_for(mtu.value_or(kUsualMtu), own->bind.is_ipv6());
  }
  auto peer = remote_address(remote);
  if (!peer) return peer.error();
  if (peer->port() == 0) *peer = peer->with_port(9);  // connect() sends nothing, but wants a port
  // From any address when the default is only loopback: the question is about the path, not about our sockets.
  const bool bound = !options_.bind_address.empty() && own->bind.is_ipv6() == peer->is_ipv6();
  auto probe = UdpSocket::open(bound ? own->bind.with_port(0) : peer->any().with_port(0), {});
  if (!probe) return probe.error();
  if (auto connected = probe->connect(*peer); !connected) return connected.error();
  const auto mtu = probe->path_mtu();
  if (!mtu) return mtu.error();
  return payload_for(*mtu, peer->is_ipv6());
}

Result<std::unique_ptr<Endpoint>> UdpDevice::create_endpoint(const EndpointOptions& options) {
  if (auto valid = check(options, options_); !valid) return valid.error();
  const auto where = addresses(options_);
  if (!where) return where.error();
  return UdpEndpoint::open(options, options_, where->bind, where->advertised);
}

}  // namespace sdr::transport

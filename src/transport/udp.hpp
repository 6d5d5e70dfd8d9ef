// UdpDevice: libsdr's packets over UDP sockets (RFC 768), IPv4 or IPv6. The grammar is in udp_wire.hpp.
//
// Each endpoint has a control socket and one socket a channel, all connected to the peer, so that the kernel turns
// strangers away before the token does. A peer that is not there yet, or no longer, costs the packets sent to it and
// nothing else.
//
// The device holds its options only; endpoints do not need it to live on, though the contract lets them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "transport/transport.hpp"

namespace sdr::transport {

struct UdpOptions {
  // Where to receive: an IPv4 or IPv6 literal, or an interface's name. Empty: at advertise_address if this machine has
  // it, otherwise at any address of its IP version.
  std::string bind_address;
  // What info() tells the peer to send to, and where it must see our packets come from (its sockets are connected).
  // Empty: bind_address, or 127.0.0.1 if that is empty or means "any".
  std::string advertise_address;
  // 0: ports chosen by the kernel. Otherwise the control socket is on this port and channel c on base_port + 1 + c; a
  // device can then have one endpoint at a time.
  std::uint16_t base_port = 0;
  // Batches by UDP_SEGMENT and UDP_GRO where the kernel has them; sendmmsg and recvmmsg otherwise.
  bool segmentation = true;
  bool coalescing = true;
};

class UdpDevice final : public Device {
 public:
  // max_payload() says no more than what fits a jumbo frame, even on loopback, whose MTU of 64 KiB is like no link's.
  static constexpr std::uint16_t kMaxSuggestedPayload = 8952;
  // A control datagram's body fits the smallest MTU that IPv6 knows (1280).
  static constexpr std::uint16_t kMaxControl = 1200;

  explicit UdpDevice(UdpOptions options = {}) : options_(std::move(options)) {}

  [[nodiscard]] std::string name() const override { return "udp"; }
  // `remote` is an address, a name, or either with ":port"; "" stands for whatever the local interface carries.
  [[nodiscard]] Result<std::uint16_t> max_payload(const std::string& remote) const override;
  Result<std::unique_ptr<Endpoint>> create_endpoint(const EndpointOptions& options) override;

 private:
  UdpOptions options_;
};

}  // namespace sdr::transport

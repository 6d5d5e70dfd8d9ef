// UDP keeps the transport contract: on IPv4 and IPv6, with the kernel's batching and without.
#include "udp_network.hpp"

namespace sdr::transport::conformance {
namespace {

bool register_udp(const std::string& name, const UdpOptions& a, const UdpOptions& b) {
  // Nothing reaches memory that was not polled, so everything is held until then.
  return register_network({.name = name,
                           .traits = {.can_hold = true},
                           .make = [a, b](const EndpointOptions& of_a, const EndpointOptions& of_b) {
                             return UdpNetwork::make(a, b, of_a, of_b);
                           }});
}

const UdpOptions kBatched{};
const UdpOptions kPlain{.segmentation = false, .coalescing = false};
const UdpOptions kIpv6{.bind_address = "::1"};

const bool kRegistered =
    register_udp("UdpIpv4Segmented", kBatched, kBatched) && register_udp("UdpIpv4Plain", kPlain, kPlain) &&
    register_udp("UdpIpv4SegmentedToPlain", kBatched, kPlain) &&
    register_udp("UdpIpv4PlainToCoalesced", kPlain, kBatched) && register_udp("UdpIpv6", kIpv6, kIpv6);

}  // namespace
}  // namespace sdr::transport::conformance

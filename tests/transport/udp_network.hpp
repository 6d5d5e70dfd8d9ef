// UdpNetwork: two UDP endpoints on this machine, for the conformance suite and for the tests of UDP alone.
#pragma once

#include <memory>

#include "connected_network.hpp"
#include "transport/udp.hpp"

namespace sdr::transport::conformance {

class UdpNetwork final : public ConnectedNetwork {
 public:
  // Null, with a test failure added, when the pair cannot be made.
  static std::unique_ptr<UdpNetwork> make(const UdpOptions& udp_a, const UdpOptions& udp_b, const EndpointOptions& a,
                                          const EndpointOptions& b) {
    auto network = std::unique_ptr<UdpNetwork>(new UdpNetwork(udp_a, udp_b));
    return network->start(network->device_a_, network->device_, a, b) ? std::move(network) : nullptr;
  }

  ~UdpNetwork() override { close(); }

  Device& device() override { return device_; }

 private:
  UdpNetwork(const UdpOptions& a, const UdpOptions& b) : device_a_(a), device_(b) {}

  UdpDevice device_a_, device_;
};

}  // namespace sdr::transport::conformance

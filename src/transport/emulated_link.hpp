// EmulatedLinkDevice: any transport, with the way out made as long, slow and lossy as a LinkSpec says.
//
// It stands between the protocol and a real endpoint: what is written goes to a link model first and to the inner
// endpoint when it is due. The emulator is the wire, so it owns copies of the payloads. Each process emulates the
// direction in which it sends (half of the RTT); with both ends given the same spec and opposite directions, the two of
// them make the link. Each endpoint is a link of its own.
//
// Lifetime: outlives its endpoints, and the inner device this one.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "simulation/link_model.hpp"
#include "transport/transport.hpp"

namespace sdr::transport {

class EmulatedLinkDevice final : public Device {
 public:
  EmulatedLinkDevice(Device& inner, const simulation::LinkSpec& spec, simulation::Direction direction)
      : inner_(inner), spec_(spec), direction_(direction) {}
  EmulatedLinkDevice(std::unique_ptr<Device> inner, const simulation::LinkSpec& spec, simulation::Direction direction)
      : owned_(std::move(inner)), inner_(*owned_), spec_(spec), direction_(direction) {}

  [[nodiscard]] std::string name() const override;
  // What the inner device can do, and what fits the spec's MTU beside IP, UDP and our header.
  [[nodiscard]] Result<std::uint16_t> max_payload(const std::string& remote) const override;
  // InvalidArgument for a payload beyond the MTU, when the spec's text named one.
  Result<std::unique_ptr<Endpoint>> create_endpoint(const EndpointOptions& options) override;

 private:
  std::unique_ptr<Device> owned_;
  Device& inner_;
  simulation::LinkSpec spec_;
  simulation::Direction direction_;
  std::uint32_t endpoints_ = 0;  // made so far; tells their losses apart
};

}  // namespace sdr::transport

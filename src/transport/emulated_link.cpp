#include "transport/emulated_link.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "transport/emulated_link_endpoint.hpp"

namespace sdr::transport {
namespace {

// IP, UDP and our header of 16 bytes, by the address that the packets go to. Once an endpoint exists, it says itself.
std::uint16_t expected_overhead(const std::string& remote) {
  const bool ipv6 = std::count(remote.begin(), remote.end(), ':') >= 2;
  return ipv6 ? 40 + 8 + 16 : 20 + 8 + 16;
}

}  // namespace

std::string EmulatedLinkDevice::name() const {
  return fmt::format("{} over an emulated link ({})", inner_.name(), to_string(spec_));
}

Result<std::uint16_t> EmulatedLinkDevice::max_payload(const std::string& remote) const {
  Result<std::uint16_t> inner = inner_.max_payload(remote);
  if (!inner) return inner;
  return std::min(*inner, spec_.payload_within(expected_overhead(remote)));
}

Result<std::unique_ptr<Endpoint>> EmulatedLinkDevice::create_endpoint(const EndpointOptions& options) {
  Result<std::unique_ptr<Endpoint>> inner = inner_.create_endpoint(options);
  if (!inner) return inner;
  const std::uint16_t overhead = (*inner)->facts().packet_overhead;
  if (spec_.mtu_given && options.payload > spec_.payload_within(overhead)) {
    return Error{ErrorCode::InvalidArgument,
                 fmt::format("payload {} and {} bytes of headers are more than the link's mtu {} (payload at most {})",
                             options.payload, overhead, spec_.mtu, spec_.payload_within(overhead))};
  }
  const simulation::LinkModel model(spec_, direction_, endpoints_++);
  return std::unique_ptr<Endpoint>(
      std::make_unique<EmulatedLinkEndpoint>(std::move(inner).value(), model, options.payload));
}

}  // namespace sdr::transport

// Implements sdr/device.hpp: from a name to a device.
#include <fmt/format.h>

#include <memory>
#include <string>

#include "sdr/device.hpp"
#include "simulation/link_spec.hpp"
#include "transport/emulated_link.hpp"
#include "transport/udp.hpp"
#include "transport/udp_address.hpp"

namespace sdr {
namespace {

constexpr std::string_view kKnownNames = "\"udp\", \"udp:ADDRESS\" and \"udp:INTERFACE\"";

}  // namespace

Result<DevicePtr> open_device(std::string_view name, const DeviceOptions& options) {
  const std::size_t colon = name.find(':');
  const std::string where(colon == std::string_view::npos ? "" : name.substr(colon + 1));
  if (name.substr(0, colon) != "udp" || (colon != std::string_view::npos && where.empty())) {
    return Error{ErrorCode::InvalidArgument, fmt::format("unknown device \"{}\"; there are {}", name, kKnownNames)};
  }
  if (!where.empty()) {
    if (const auto address = transport::local_address(where); !address) return address.error();
  }
  auto udp = std::make_unique<transport::UdpDevice>(transport::UdpOptions{.bind_address = where,
                                                                          .base_port = options.base_port,
                                                                          .segmentation = options.segmentation,
                                                                          .coalescing = options.coalescing});
  if (options.link.empty()) return DevicePtr(std::move(udp));
  const Result<simulation::LinkSpec> spec = simulation::LinkSpec::parse(options.link);
  if (!spec) return spec.error();
  const auto direction = options.link_far_end ? simulation::Direction::Backward : simulation::Direction::Forward;
  return DevicePtr(std::make_shared<transport::EmulatedLinkDevice>(std::move(udp), *spec, direction));
}

}  // namespace sdr

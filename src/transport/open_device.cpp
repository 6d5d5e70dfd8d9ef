// Implements sdr/device.hpp: from a name to a device.
#include <fmt/format.h>

#include <memory>
#include <string>

#include "sdr/device.hpp"
#include "simulation/link_spec.hpp"
#include "transport/emulated_link.hpp"
#include "transport/udp.hpp"
#include "transport/udp_address.hpp"
#include "transport/verbs.hpp"

namespace sdr {
namespace {

constexpr std::string_view kKnownNames =
    "\"udp\", \"udp:ADDRESS\", \"udp:INTERFACE\", \"verbs:DEVICE\" and the names of RDMA devices";

Result<std::unique_ptr<transport::Device>> open_udp(const std::string& where, const DeviceOptions& options) {
  if (!where.empty()) {
    if (const auto address = transport::local_address(where); !address) return address.error();
  }
  return std::unique_ptr<transport::Device>(
      std::make_unique<transport::UdpDevice>(transport::UdpOptions{.bind_address = where,
                                                                   .base_port = options.base_port,
                                                                   .segmentation = options.segmentation,
                                                                   .coalescing = options.coalescing}));
}

Result<std::unique_ptr<transport::Device>> open_rdma(std::string_view text) {
  const Result<transport::VerbsOptions> options = transport::parse_verbs_options(text);
  if (!options) return options.error();
  return transport::open_verbs(*options);
}

Error unknown(std::string_view name) {
  std::string there;
  for (const transport::VerbsFacts& facts : transport::list_verbs_devices())
    there += fmt::format("{}{}", there.empty() ? "" : ", ", facts.device);
  return {ErrorCode::InvalidArgument, fmt::format("unknown device \"{}\"; there are {} ({})", name, kKnownNames,
                                                  there.empty() ? "none here" : there)};
}

Result<std::unique_ptr<transport::Device>> open_by_name(std::string_view name, const DeviceOptions& options) {
  const std::size_t colon = name.find(':');
  const std::string_view kind = name.substr(0, colon);
  const std::string_view where = colon == std::string_view::npos ? std::string_view() : name.substr(colon + 1);
  const bool named = colon == std::string_view::npos || !where.empty();
  if (kind == "udp" && named) return open_udp(std::string(where), options);
  if (kind == "verbs" && colon != std::string_view::npos) return open_rdma(where);
  // As people name them: "mlx5_0", "rxe0,gid=3".
  if (transport::is_verbs_device(name.substr(0, name.find(',')))) return open_rdma(name);
  return unknown(name);
}

}  // namespace

Result<DevicePtr> open_device(std::string_view name, const DeviceOptions& options) {
  auto device = open_by_name(name, options);
  if (!device) return device.error();
  if (options.link.empty()) return DevicePtr(std::move(device).value());
  const Result<simulation::LinkSpec> spec = simulation::LinkSpec::parse(options.link);
  if (!spec) return spec.error();
  const auto direction = options.link_far_end ? simulation::Direction::Backward : simulation::Direction::Forward;
  return DevicePtr(std::make_shared<transport::EmulatedLinkDevice>(std::move(device).value(), *spec, direction));
}

}  // namespace sdr

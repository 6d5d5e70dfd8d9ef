#include "transport/verbs_port.hpp"

#include <fmt/format.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>

#include "transport/verbs_wire.hpp"

namespace sdr::transport {
namespace {

// Linux's soft-RoCE. Its windows do not keep the bounds they were bound with (kernel 6.1), its regions do.
constexpr std::uint32_t kVendorSoftRoce = 0xFFFFFF;
constexpr std::size_t kMostGidsOfADevice = 512;

struct DeviceList {
  int count = 0;
  std::unique_ptr<ibv_device*, verbs::Destroy<&ibv_free_device_list>> list{ibv_get_device_list(&count)};

  [[nodiscard]] std::span<ibv_device* const> devices() const& {
    return {list.get(), list ? static_cast<std::size_t>(count) : 0};
  }
  [[nodiscard]] std::string names() const {
    std::string text;
    for (ibv_device* device : devices()) text += fmt::format("{}{}", text.empty() ? "" : ", ", device->name);
    return text;
  }
};

Error no_device(const std::string& name, const DeviceList& list) {
  if (list.devices().empty()) {
    return {ErrorCode::System,
            fmt::format("no RDMA device \"{}\": this machine has none at all; load the driver of the NIC, or make a "
                        "soft-RoCE device with: rdma link add {} type rxe netdev INTERFACE",
                        name, name.empty() ? "rxe0" : name)};
  }
  return {ErrorCode::System, fmt::format("no RDMA device \"{}\"; there are: {}", name, list.names())};
}

Error cannot_open(const std::string& name, int number) {
  if (number == EACCES || number == EPERM) {
    return {ErrorCode::System,
            fmt::format("no permission to open RDMA device {}: this user must be able to read and write the devices "
                        "under /dev/infiniband (join their group, or run as root)",
                        name)};
  }
  if (number == ENOENT || number == ENODEV) {
    return {ErrorCode::System, fmt::format("RDMA device {} has no file under /dev/infiniband: load the kernel module "
                                           "ib_uverbs (modprobe ib_uverbs)",
                                           name)};
  }
  return verbs::verbs_error(fmt::format("RDMA device {} cannot be opened", name), number);
}

// The prefix length of an address that an interface of this machine has.
std::uint8_t prefix_bits(const VerbsGid& gid, const ifaddrs* interfaces) {
  for (const ifaddrs* i = interfaces; i != nullptr; i = i->ifa_next) {
    if (i->ifa_addr == nullptr || i->ifa_netmask == nullptr) continue;
    const bool ipv4 = i->ifa_addr->sa_family == AF_INET;
    if (ipv4 != gid.is_ipv4() || (!ipv4 && i->ifa_addr->sa_family != AF_INET6)) continue;
    const auto bytes = [&](const sockaddr* address) {
      const auto* at =
          ipv4 ? reinterpret_cast<const std::byte*>(&reinterpret_cast<const sockaddr_in*>(address)->sin_addr)
               : reinterpret_cast<const std::byte*>(&reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr);
      return std::span(at, ipv4 ? 4 : 16);
    };
    const auto own = gid.address();
    const auto theirs = bytes(i->ifa_addr);
    if (!std::equal(own.begin(), own.end(), theirs.begin(), theirs.end())) continue;
    int bits = 0;
    for (const std::byte mask : bytes(i->ifa_netmask)) bits += std::popcount(std::to_integer<unsigned>(mask));
    return static_cast<std::uint8_t>(bits);
  }
  return VerbsGid::kUnknownPrefix;
}

}  // namespace

namespace verbs {

Error verbs_error(const std::string& what, int number) {
  const int positive = number < 0 ? -number : number;
  std::string hint;
  if (positive == ENOMEM) {
    hint = "; the limit of locked memory (ulimit -l) or the device's own limits (ibv_devinfo -v) may be too low";
  }
  return {ErrorCode::System, fmt::format("{}: {}{}", what, std::strerror(positive), hint)};
}

std::uint16_t bytes_of(ibv_mtu mtu) {
  return static_cast<std::uint16_t>(128U << static_cast<unsigned>(mtu));
}

ibv_mtu mtu_within(std::uint16_t bytes) {
  ibv_mtu mtu = IBV_MTU_256;
  for (const ibv_mtu larger : {IBV_MTU_512, IBV_MTU_1024, IBV_MTU_2048, IBV_MTU_4096}) {
    if (bytes_of(larger) <= bytes) mtu = larger;
  }
  return mtu;
}

}  // namespace verbs

Result<std::shared_ptr<VerbsPort>> VerbsPort::open(const std::string& name, std::uint8_t port) {
  const DeviceList list;
  const auto devices = list.devices();
  const auto found = std::find_if(devices.begin(), devices.end(), [&](ibv_device* d) { return name == d->name; });
  if (found == devices.end()) return no_device(name, list);
  std::shared_ptr<VerbsPort> made(new VerbsPort);
  errno = 0;
  made->context_.reset(ibv_open_device(*found));
  if (!made->context_) return cannot_open(name, errno);
  if (const int failed = ibv_query_device(made->context(), &made->attributes_); failed != 0) {
    return verbs::verbs_error(fmt::format("RDMA device {} does not say what it can do", name), failed);
  }
  if (port < 1 || port > made->attributes_.phys_port_cnt) {
    return Error{ErrorCode::InvalidArgument, fmt::format("RDMA device {} has no port {}: from 1 to {} are there", name,
                                                         port, made->attributes_.phys_port_cnt)};
  }
  made->number_ = port;
  made->domain_.reset(ibv_alloc_pd(made->context()));
  if (!made->domain_) return verbs::verbs_error(fmt::format("no protection domain on RDMA device {}", name), errno);
  return made;
}

std::string VerbsPort::name() const {
  const char* device = context_->device->name;
  return attributes_.phys_port_cnt > 1 ? fmt::format("{} port {}", device, number_) : std::string(device);
}

Result<ibv_port_attr> VerbsPort::state() const {
  ibv_port_attr port{};
  if (const int failed = ibv_query_port(context(), number_, &port); failed != 0) {
    return verbs::verbs_error(fmt::format("RDMA device {} does not say how its port is", name()), failed);
  }
  return port;
}

Result<ibv_port_attr> VerbsPort::ready() const {
  auto port = state();
  if (!port) return port;
  const auto refused = [](std::string message) { return Error{ErrorCode::System, std::move(message)}; };
  if (port->link_layer != IBV_LINK_LAYER_ETHERNET) {
    return refused(fmt::format("RDMA device {} is InfiniBand; libsdr speaks RoCE, over Ethernet, only", name()));
  }
  if (port->state != IBV_PORT_ACTIVE) {
    return refused(
        fmt::format("RDMA device {} is down (port state {}): bring its network interface up (ip link set "
                    "INTERFACE up) and check the cable",
                    name(), ibv_port_state_str(port->state)));
  }
  if (verbs::bytes_of(port->active_mtu) < kLeastMtu) {
    return refused(
        fmt::format("RDMA device {} has an active MTU of {} bytes, at least {} are needed: raise the MTU of "
                    "its network interface (ip link set INTERFACE mtu 1500, or 4200 for 4096)",
                    name(), verbs::bytes_of(port->active_mtu), kLeastMtu));
  }
  return port;
}

std::vector<VerbsGid> VerbsPort::gids() const {
  std::array<ibv_gid_entry, kMostGidsOfADevice> entries;
  const ssize_t count = ibv_query_gid_table(context(), entries.data(), entries.size(), 0);
  ifaddrs* first = nullptr;
  if (::getifaddrs(&first) != 0) first = nullptr;
  const std::unique_ptr<ifaddrs, verbs::Destroy<&::freeifaddrs>> interfaces(first);
  std::vector<VerbsGid> found;
  for (std::size_t i = 0; static_cast<ssize_t>(i) < count; ++i) {
    const ibv_gid_entry& entry = entries[i];
    if (entry.port_num != number_ || entry.gid_type == IBV_GID_TYPE_IB) continue;
    VerbsGid gid{.version = entry.gid_type == IBV_GID_TYPE_ROCE_V2 ? RoceVersion::V2 : RoceVersion::V1,
                 .index = entry.gid_index};
    std::memcpy(gid.bytes.data(), entry.gid.raw, gid.bytes.size());
    gid.prefix_bits = prefix_bits(gid, interfaces.get());
    found.push_back(gid);
  }
  return found;
}

Result<std::vector<VerbsGid>> VerbsPort::gids_for(std::optional<std::uint32_t> index) const {
  const std::vector<VerbsGid> table = gids();
  if (!index) {
    std::vector<VerbsGid> usable = usable_gids(table, verbs_wire::kMostGids);
    if (!usable.empty()) return usable;
    return Error{ErrorCode::System,
                 fmt::format("RDMA device {} has no RoCE address: give its network interface an IP address", name())};
  }
  std::string known;
  for (const VerbsGid& gid : table) {
    if (gid.index == *index) return std::vector<VerbsGid>{gid};
    known += fmt::format("{}{} ({}, RoCE v{})", known.empty() ? "" : ", ", gid.index, gid.to_string(),
                         static_cast<int>(gid.version));
  }
  return Error{ErrorCode::InvalidArgument, fmt::format("RDMA device {} has no GID of index {}; there are: {}", name(),
                                                       *index, known.empty() ? "none" : known)};
}

VerbsKeys VerbsPort::keys(VerbsKeys wanted) const {
  if (wanted != VerbsKeys::Auto) return wanted;
  const bool windows = (attributes_.device_cap_flags & IBV_DEVICE_MEM_WINDOW) != 0 && attributes_.max_mw > 0;
  return windows && attributes_.vendor_id != kVendorSoftRoce ? VerbsKeys::Window : VerbsKeys::Region;
}

std::vector<VerbsFacts> list_verbs_devices() {
  std::vector<VerbsFacts> all;
  const DeviceList list;
  for (ibv_device* device : list.devices()) {
    VerbsFacts facts{.device = device->name, .state = "unknown"};
    const auto port = VerbsPort::open(device->name, 1);
    if (!port) {
      facts.trouble = port.error().message;
      all.push_back(std::move(facts));
      continue;
    }
    facts.keys = (*port)->keys(VerbsKeys::Auto);
    if (const auto state = (*port)->state()) facts.state = ibv_port_state_str(state->state);
    const auto ready = (*port)->ready();
    if (ready) {
      facts.payload = verbs::bytes_of(ready->active_mtu);
    } else {
      facts.trouble = ready.error().message;
    }
    facts.gids = usable_gids((*port)->gids(), verbs_wire::kMostGids);
    all.push_back(std::move(facts));
  }
  return all;
}

bool is_verbs_device(std::string_view name) {
  const DeviceList list;
  const auto devices = list.devices();
  return std::any_of(devices.begin(), devices.end(), [&](ibv_device* device) { return name == device->name; });
}

}  // namespace sdr::transport

// Devices as people name them: a door to one kind of network, from which QueuePairs are made.
//
//   "udp"               UDP over loopback and whatever the peer's address routes to
//   "udp:192.0.2.7"     UDP bound to a local address (IPv4 or IPv6)
//   "udp:eth0"          UDP bound to the address of an interface
//   "verbs:mlx5_0"      RDMA; "mlx5_0" alone will do, options go behind: "mlx5_0,gid=3" (docs/verbs.md)
// A device may be used by several threads; it lives as long as the last QueuePair made from it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "sdr/result.hpp"

namespace sdr {

namespace transport {
class Device;
}
using DevicePtr = std::shared_ptr<transport::Device>;

struct DeviceOptions {
  std::string link;           // emulated impairment on the way out, "rtt=25ms,rate=1Gbit,loss=1e-3"; empty: none
  bool link_far_end = false;  // with a link: this end is the one that was connected to (each direction has its losses)
  std::uint16_t base_port = 0;  // UDP: control on base_port, channel c on base_port + 1 + c; 0: chosen by the system
  bool segmentation = true;     // use UDP_SEGMENT where the kernel has it
  bool coalescing = true;       // use UDP_GRO where the kernel has it
};

// Errors: InvalidArgument for an unknown name (lists the known ones) or a bad link text, System when it is not there.
Result<DevicePtr> open_device(std::string_view name, const DeviceOptions& options = {});

}  // namespace sdr

// Offload devices: another processor for a QueuePair's work on every packet (docs/offload.md).
//
//   QueuePairOptions options;
//   options.offload = open_offload({.device = OffloadDevice::Riscv}).value();
//
// The transport of this process stays the NIC: it places payload and raises completions; the device checks generations,
// keeps the packet bits and publishes chunks, and it cuts messages into packets. Each QueuePair made with it has a
// device of its own. A device that fails is left, and the QueuePair goes on without one:
// QueuePair::offload_failure() says so.
//
// Any thread.
#pragma once

#include <chrono>
#include <optional>
#include <string_view>

#include "sdr/queue_pair.hpp"
#include "sdr/result.hpp"
#include "sdr/units.hpp"

namespace sdr {

enum class OffloadDevice {
  Host,   // threads of this process
  Riscv,  // threads of an emulated RV64 processor, a process of its own for each QueuePair
};
// "host" or "riscv".
std::optional<OffloadDevice> parse_offload_device(std::string_view text);
std::string_view to_string(OffloadDevice device);

struct OffloadOptions {
  OffloadDevice device = OffloadDevice::Host;
  unsigned threads = 1;  // of the device; at most one a channel has anything to do
  bool receive = true;
  bool send = true;
  Duration silence = std::chrono::seconds(2);  // after which a device that stands still is given up
};

// InvalidArgument for options out of range or a device that this build has not; System when it cannot run here.
Result<OffloadPtr> open_offload(const OffloadOptions& options);

}  // namespace sdr

// Device: a processor that turns completions into chunk bits for this host.
//
// Model: opening one creates a process on the device with its worker threads, its two windows, a completion ring for
// each channel and a doorbell. Whoever places payload (a NIC, or the transport of this process in its place) pushes a
// completion into the ring of its channel; the host posts and completes slots by the doorbell and polls chunk bits.
//
//   push() -> ring -> [ device: generation check, packet bit, last of its chunk? ] -> chunk bit in the host's window
//
// Threads: push(ring of a channel) by one thread a channel; the doorbell by one thread; chunk_bits(), user_immediate()
// and counts() by any; check() and stop() by the thread that opened it.
//
// Invariants: nothing waits without a bound. A device that ends, or whose workers stand still for `silence`, is an
// error from then on, the first one for good; chunk bits set before that stay set and true, since they lie in memory of
// the host, and what is in its rings is lost to it and is for the caller to count as not arrived.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "offload/process.hpp"
#include "offload/shared_memory.hpp"
#include "offload/windows.hpp"
#include "sdr/result.hpp"
#include "sdr/units.hpp"

namespace sdr::offload {

enum class DeviceKind { Host, Riscv };
[[nodiscard]] std::optional<DeviceKind> parse_device_kind(std::string_view text);
[[nodiscard]] std::string_view to_string(DeviceKind kind);

struct DeviceOptions {
  DeviceKind kind = DeviceKind::Host;
  Shape shape;
  Duration silence = std::chrono::seconds(2);  // after which a device whose workers stand still is given up
  std::string emulator_plugin;                 // of the riscv device: a counting plugin with its arguments
};

struct DeviceCounts {
  std::uint64_t batches = 0;
  std::uint64_t packets = 0;
  std::uint64_t duplicates = 0;
  std::uint64_t late = 0;
  std::uint64_t out_of_range = 0;
  std::uint64_t errors = 0;  // completions of queue pairs in the error state

  [[nodiscard]] std::uint64_t total() const { return packets + duplicates + late + out_of_range + errors; }
};

struct UserImmediate {
  std::uint32_t value = 0;           // what has arrived of it
  std::uint32_t fragments_seen = 0;  // a bit a fragment
};

// The number of a doorbell command.
using Ticket = std::uint64_t;

class Device {
 public:
  static Result<std::unique_ptr<Device>> open(const DeviceOptions& options);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  [[nodiscard]] const Shape& shape() const { return windows_.shape(); }
  [[nodiscard]] RingProducer<>& ring(core::ChannelIndex channel) { return rings_[channel.value]; }

  // Retry: too many commands in flight, nothing has happened. `packets` is the length of the posted buffer.
  Result<Ticket> post(core::SlotIndex slot, core::Generation generation, std::uint32_t packets);
  // Shuts the slot: once it is done, no packet of that use touches anything. The slot may then be posted again.
  Result<Ticket> complete(core::SlotIndex slot);
  // Both in one command, for a slot whose next receive is there already: the slot's generation advances.
  Result<Ticket> repost(core::SlotIndex slot, core::Generation generation, std::uint32_t packets);
  // The message in the open slot has only so many packets.
  Result<Ticket> end(core::SlotIndex slot, std::uint32_t packets);
  [[nodiscard]] bool done(Ticket ticket) const { return doorbell_.done() >= ticket; }
  // Returns when it is done, or an error when the device has failed; the device's silence bounds it.
  Result<void> wait(Ticket ticket);

  // Bits of the slot's chunks, to be read with acquire. Meaningless between complete() and its being done.
  [[nodiscard]] std::span<const core::BitmapWord> chunk_bits(core::SlotIndex slot) const;
  [[nodiscard]] UserImmediate user_immediate(core::SlotIndex slot) const;
  [[nodiscard]] DeviceCounts counts() const;
  // All there is of the slots, as the device keeps it. For reading, and for a host that carries on after a failure.
  [[nodiscard]] const core::MessageTable& table() const { return table_; }
  // Completions of a ring that the device is not known to have taken.
  [[nodiscard]] std::vector<core::Completion> not_taken(core::ChannelIndex channel) const;

  // Sending, where the shape has a burst; by one thread. False: too many commands are under way.
  bool send(const SendCommand& command);
  [[nodiscard]] WorkConsumer& work(core::ChannelIndex channel) { return work_[channel.value]; }
  [[nodiscard]] std::uint64_t packets_made() const;

  // Ok while the device works. Call it now and then, more often than `silence` where a bound is wanted.
  Result<void> check();
  // Ends the device process; an error when it had failed or did not end by itself.
  Result<void> stop();
  // Of the process that runs the device, 0 for the host device.
  [[nodiscard]] int process_id() const { return process_->id(); }

 private:
  Device(const DeviceOptions& options, const Windows& windows, SharedMemory device, SharedMemory host);
  Result<Ticket> ring_doorbell(const Command& command);
  Error fail(Error error);

  const DeviceKind kind_;
  const Duration silence_;
  SharedMemory device_memory_;
  SharedMemory host_memory_;
  const Windows windows_;
  const core::MessageTable table_;
  Doorbell<> doorbell_;
  std::vector<RingProducer<>> rings_;
  std::vector<WorkConsumer> work_;
  std::uint64_t sends_rung_ = 0;
  std::unique_ptr<Process> process_;
  // What was last seen of each worker, and when it moved.
  struct Sign {
    std::uint64_t alive = 0;
    TimePoint since{};
  };
  std::vector<Sign> signs_;
  std::optional<Error> failed_;
  bool stopped_ = false;
};

}  // namespace sdr::offload

#include "offload/device.hpp"

#include <fmt/format.h>

#include <thread>
#include <utility>

#include "runtime/clock.hpp"

namespace sdr::offload {
namespace {

constexpr std::uint32_t kMaxLogRing = 20;

Result<void> check_shape(const Shape& shape) {
  const auto bad = [](std::string message) { return Error{ErrorCode::InvalidArgument, std::move(message)}; };
  const core::TableGeometry& geometry = shape.geometry;
  if (!geometry.layout.valid()) {
    return bad(fmt::format("immediate split {}+{}+{} does not fill 32 bits", geometry.layout.message_id_bits,
                           geometry.layout.packet_offset_bits, geometry.layout.user_bits));
  }
  if (geometry.slots == 0 || geometry.slots > geometry.layout.max_slots())
    return bad(fmt::format("{} slots on a device, not 1 to {}", geometry.slots, geometry.layout.max_slots()));
  const std::uint32_t per_chunk = std::uint32_t{1} << std::min<std::uint32_t>(geometry.log_packets_per_chunk, 31);
  if (geometry.packets_per_slot == 0 || geometry.packets_per_slot > geometry.layout.max_packets() ||
      geometry.packets_per_slot % per_chunk != 0) {
    return bad(fmt::format("{} packets a slot are not whole chunks of {} packets, 1 to {}", geometry.packets_per_slot,
                           per_chunk, geometry.layout.max_packets()));
  }
  if (shape.mtu == 0 || shape.mtu > 65535) return bad(fmt::format("MTU {} is not 1 to 65535", shape.mtu));
  if (shape.channels == 0 || shape.channels > kMaxChannels)
    return bad(fmt::format("{} channels on a device, not 1 to {}", shape.channels, kMaxChannels));
  if (shape.workers == 0 || shape.workers > kMaxWorkers)
    return bad(fmt::format("{} device threads, not 1 to {}", shape.workers, kMaxWorkers));
  if (shape.workers > shape.channels) {
    return bad(fmt::format("{} device threads for {} channels: a ring has one reader", shape.workers, shape.channels));
  }
  if (shape.log_ring_entries > kMaxLogRing)
    return bad(fmt::format("2^{} ring entries are more than 2^{}", shape.log_ring_entries, kMaxLogRing));
  return {};
}

}  // namespace

std::optional<DeviceKind> parse_device_kind(std::string_view text) {
  if (text == "host") return DeviceKind::Host;
  if (text == "riscv") return DeviceKind::Riscv;
  return std::nullopt;
}

std::string_view to_string(DeviceKind kind) {
  return kind == DeviceKind::Host ? "host" : "riscv";
}

Result<std::unique_ptr<Device>> Device::open(const DeviceOptions& options) {
  if (const Result<void> sound = check_shape(options.shape); !sound) return sound.error();
  const Windows sizes(options.shape, nullptr, nullptr);
  Result<SharedMemory> device = SharedMemory::create("sdr-device-memory", sizes.device_bytes());
  if (!device) return device.error();
  Result<SharedMemory> host = SharedMemory::create("sdr-host-window", sizes.host_bytes());
  if (!host) return host.error();
  const Windows windows(options.shape, device->bytes().data(), host->bytes().data());
  windows.lay_out();

  std::unique_ptr<Device> opened(new Device(options, windows, std::move(*device), std::move(*host)));
  Result<std::unique_ptr<Process>> process =
      options.kind == DeviceKind::Host
          ? start_host_process(windows)
          : start_riscv_process(windows, opened->device_memory_, opened->host_memory_, options.emulator_plugin);
  if (!process) return process.error();
  opened->process_ = std::move(*process);
  opened->signs_.assign(options.shape.workers, {.since = runtime::now()});
  // A device that cannot even start says so here: worker 0 and its like have each made a round.
  for (std::uint32_t w = 0; w < options.shape.workers; ++w) {
    while (windows.worker(w).alive.load(std::memory_order_relaxed) == 0) {
      if (const Result<void> alive = opened->check(); !alive) return alive.error();
      std::this_thread::yield();
    }
  }
  return opened;
}

Device::Device(const DeviceOptions& options, const Windows& windows, SharedMemory device, SharedMemory host)
    : kind_(options.kind),
      silence_(options.silence),
      device_memory_(std::move(device)),
      host_memory_(std::move(host)),
      windows_(windows),
      table_(windows.table()),
      doorbell_(windows.doorbell<Orders>()) {
  for (std::uint32_t channel = 0; channel < options.shape.channels; ++channel)
    rings_.push_back(windows.producer<Orders>(channel));
  for (std::uint32_t channel = 0; options.shape.burst != 0 && channel < options.shape.channels; ++channel)
    work_.push_back(windows.work_consumer(channel));
}

Device::~Device() {
  if (process_ != nullptr) static_cast<void>(stop());
}

Result<Ticket> Device::ring_doorbell(const Command& command) {
  if (failed_) return *failed_;
  if (command.slot >= shape().geometry.slots)
    return Error{ErrorCode::InvalidArgument,
                 fmt::format("slot {} of a device with {} slots", command.slot, shape().geometry.slots)};
  if (command.packets > shape().geometry.packets_per_slot)
    return Error{ErrorCode::InvalidArgument,
                 fmt::format("{} packets posted to a slot of {}", command.packets, shape().geometry.packets_per_slot)};
  const Ticket ticket = doorbell_.ring(command);
  if (ticket == 0) return Error{ErrorCode::Retry, fmt::format("{} doorbell commands are in flight already", kCommands)};
  return ticket;
}

Result<Ticket> Device::post(core::SlotIndex slot, core::Generation generation, std::uint32_t packets) {
  return ring_doorbell({Operation::Post, slot.value, generation.value, packets});
}

Result<Ticket> Device::complete(core::SlotIndex slot) {
  return ring_doorbell({Operation::Complete, slot.value, 0, 0});
}

Result<Ticket> Device::repost(core::SlotIndex slot, core::Generation generation, std::uint32_t packets) {
  return ring_doorbell({Operation::Repost, slot.value, generation.value, packets});
}

Result<Ticket> Device::end(core::SlotIndex slot, std::uint32_t packets) {
  return ring_doorbell({Operation::End, slot.value, 0, packets});
}

std::vector<core::Completion> Device::not_taken(core::ChannelIndex channel) const {
  std::vector<core::Completion> left;
  const RingProducer<>& ring = rings_[channel.value];
  const std::span<const CompletionEntry> entries = windows_.ring(channel.value);
  // What the device says that it has taken is right within what can be; if it is not, none of it is believed.
  const std::uint64_t end = ring.produced();
  const std::uint64_t earliest = end - std::min<std::uint64_t>(end, entries.size());
  const std::uint64_t consumed = ring.consumed();
  for (std::uint64_t at = consumed >= earliest && consumed <= end ? consumed : earliest; at < end; ++at) {
    const CompletionEntry& entry = entries[at % entries.size()];
    left.push_back({.immediate = swap_bytes(entry.immediate_be),
                    .length = static_cast<std::uint16_t>(swap_bytes(entry.byte_count_be)),
                    .generation = entry.user_index[3],
                    .channel = entry.user_index[2]});
  }
  return left;
}

bool Device::send(const SendCommand& command) {
  for (std::uint32_t w = 0; w < shape().workers; ++w)
    if (sends_rung_ - windows_.send_record(w).commands.load(Orders::ring_reuse) == kSendCommands) return false;
  windows_.send_commands()[sends_rung_ % kSendCommands] = command;
  windows_.send_bell().rung.store(++sends_rung_, Orders::doorbell_ring);
  return true;
}

std::uint64_t Device::packets_made() const {
  std::uint64_t made = 0;
  for (std::uint32_t w = 0; w < shape().workers; ++w)
    made += windows_.send_record(w).made.load(std::memory_order_relaxed);
  return made;
}

Result<void> Device::wait(Ticket ticket) {
  while (!done(ticket)) {
    if (Result<void> alive = check(); !alive) return alive;
    std::this_thread::yield();
  }
  return {};
}

std::span<const core::BitmapWord> Device::chunk_bits(core::SlotIndex slot) const {
  return table_.chunk_bits(slot);
}

UserImmediate Device::user_immediate(core::SlotIndex slot) const {
  const std::uint64_t word = windows_.user_immediate(slot).load(std::memory_order_acquire);
  return {.value = static_cast<std::uint32_t>(word), .fragments_seen = static_cast<std::uint32_t>(word >> 32)};
}

DeviceCounts Device::counts() const {
  DeviceCounts sum;
  for (std::uint32_t w = 0; w < shape().workers; ++w) {
    const WorkerRecord& record = windows_.worker(w);
    sum.batches += record.batches.load(std::memory_order_relaxed);
    sum.packets += record.packets.load(std::memory_order_relaxed);
    sum.duplicates += record.duplicates.load(std::memory_order_relaxed);
    sum.late += record.late.load(std::memory_order_relaxed);
    sum.out_of_range += record.out_of_range.load(std::memory_order_relaxed);
    sum.errors += record.errors.load(std::memory_order_relaxed);
  }
  return sum;
}

Error Device::fail(Error error) {
  failed_ = std::move(error);
  return *failed_;
}

Result<void> Device::check() {
  if (failed_) return *failed_;
  if (const Result<void> running = process_->running(); !running) return fail(running.error());
  const TimePoint now = runtime::now();
  for (std::uint32_t w = 0; w < shape().workers; ++w) {
    const std::uint64_t alive = windows_.worker(w).alive.load(std::memory_order_relaxed);
    Sign& sign = signs_[w];
    if (alive != sign.alive) {
      sign = {.alive = alive, .since = now};
    } else if (now - sign.since > silence_) {
      return fail({ErrorCode::Closed,
                   fmt::format("worker {} of the {} device has stood still for {} (limit {})", w,
                               offload::to_string(kind_), sdr::to_string(now - sign.since), sdr::to_string(silence_))});
    }
  }
  return {};
}

Result<void> Device::stop() {
  if (!stopped_) {
    stopped_ = true;
    const Result<void> ended = process_->end();
    if (!ended && !failed_) return fail(ended.error());
    if (!failed_) {
      failed_ = Error{ErrorCode::Closed, fmt::format("the {} device was stopped", offload::to_string(kind_))};
      return {};
    }
  }
  return *failed_;
}

}  // namespace sdr::offload

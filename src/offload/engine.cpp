#include "offload/engine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <thread>
#include <utility>

#include "sdr/offload.hpp"

namespace sdr::offload {
namespace {

core::ChannelIndex index_of(std::size_t channel) {
  return core::ChannelIndex(static_cast<std::uint8_t>(channel));
}

constexpr Duration kLookEvery = std::chrono::milliseconds(2);

class DeviceOffload final : public sdk::Offload {
 public:
  explicit DeviceOffload(const OffloadOptions& options) : options_(options) {}

  Result<std::unique_ptr<sdk::OffloadEngine>> attach(const sdk::OffloadShape& shape) override {
    const DeviceKind kind = options_.device == OffloadDevice::Host ? DeviceKind::Host : DeviceKind::Riscv;
    DeviceOptions device{.kind = kind, .silence = options_.silence};
    device.shape = {.geometry = shape.geometry,
                    .mtu = shape.mtu,
                    .channels = shape.channels,
                    .workers = std::min<std::uint32_t>(options_.threads, shape.channels),
                    .burst = options_.send ? shape.burst : 0};
    if (!options_.receive) {
      // A table that nobody asks about need not be large.
      device.shape.geometry.slots = 1;
      device.shape.geometry.packets_per_slot = 1U << shape.geometry.log_packets_per_chunk;
    }
    Result<std::unique_ptr<Device>> opened = Device::open(device);
    if (!opened) return opened.error();
    return std::unique_ptr<sdk::OffloadEngine>(std::make_unique<Engine>(
        std::move(*opened), kind, Engine::Halves{.receive = options_.receive, .send = options_.send}));
  }

 private:
  const OffloadOptions options_;
};

}  // namespace

Engine::Engine(std::unique_ptr<Device> device, DeviceKind kind, Halves halves)
    : kind_(kind),
      halves_(halves),
      device_(std::move(device)),
      channels_(device_->shape().channels),
      uses_(device_->shape().geometry.slots) {
  for (std::size_t c = 0; c < channels_.size(); ++c) workers_.emplace_back(device_->table(), device_->shape().mtu);
}

bool Engine::works() {
  std::optional<Error> why;
  {
    const std::lock_guard guard(lock_);
    if (failure_) return false;
    if (const Result<void> alive = device_->check(); !alive) why = alive.error();
  }
  if (why) take_over(*why);
  return !why;
}

void Engine::take_over(const Error& why) {
  std::vector<std::unique_lock<std::mutex>> rings;
  for (Channel& channel : channels_) rings.emplace_back(channel.filling);
  const std::lock_guard guard(lock_);
  if (failure_) return;
  // A device that stands still may yet move: it is ended before anybody else writes what it writes.
  static_cast<void>(device_->stop());
  for (std::uint32_t slot = 0; halves_.receive && slot < uses_.size(); ++slot) take_up(core::SlotIndex(slot));
  for (std::size_t c = 0; halves_.receive && c < channels_.size(); ++c)
    workers_[c].process(device_->not_taken(index_of(c)));
  for (std::uint32_t slot = 0; slot < uses_.size(); ++slot)
    if (uses_[slot].end) core::apply_end(device_->table(), core::SlotIndex(slot), *uses_[slot].end);
  failure_ = why;
  failed_.store(true, std::memory_order_release);
}

void Engine::take_up(core::SlotIndex slot) {
  const core::MessageTable& table = device_->table();
  const Use& use = uses_[slot.value];
  core::Slot& row = table.slot(slot);
  const std::span<core::BitmapWord> bits = table.packet_bits(slot);
  const auto words =
      static_cast<std::uint32_t>(std::min<std::size_t>(row.words_touched.load(std::memory_order_relaxed), bits.size()));
  row.words_touched.store(words, std::memory_order_relaxed);
  row.packets = use.open ? use.packets : std::min(row.packets, table.geometry().packets_per_slot);
  if (!use.open) return table.close(slot);
  row.state.store(core::kSlotOpen | use.generation.value, std::memory_order_release);
  for (std::uint32_t w = 0; w < words; ++w) core::publish(table, slot, w, 0, bits[w].load(std::memory_order_acquire));
}

template <typename Ring>
bool Engine::carried_out(const Ring& ring, bool wait) {
  while (!failed()) {
    Result<Ticket> ticket = Ticket{0};
    {
      const std::lock_guard guard(lock_);
      if (failure_) return false;
      ticket = ring();
    }
    if (!ticket && ticket.error().code != ErrorCode::Retry) {
      take_over(ticket.error());
      return false;
    }
    while (ticket && wait && !device_->done(*ticket)) {
      if (!works()) return false;
      std::this_thread::yield();
    }
    if (ticket) return true;
    if (!works()) return false;
    std::this_thread::yield();
  }
  return false;
}

void Engine::post(core::SlotIndex slot, core::Generation generation, std::uint32_t packets) {
  const bool by_device = carried_out([&] { return device_->post(slot, generation, packets); }, true);
  const std::lock_guard guard(lock_);
  uses_[slot.value] = {.open = true, .generation = generation, .packets = packets};
  if (by_device && !failure_) return;
  // The device may have begun.
  table().close(slot);
  table().clean(slot);
  table().post(slot, generation, packets);
}

bool Engine::drained() {
  for (std::size_t c = 0; c < channels_.size(); ++c) {
    const std::uint64_t given = channels_[c].given.load(std::memory_order_acquire);
    while (device_->ring(index_of(c)).consumed() < given) {
      if (!works()) return false;
      std::this_thread::yield();
    }
  }
  return true;
}

void Engine::complete(core::SlotIndex slot) {
  // The transport is done with the slot, so what of this use is on its way to the device is in the rings. Left there,
  // it might come up in a later use that has the same generation.
  const bool by_device = drained() && carried_out([&] { return device_->complete(slot); }, true);
  const std::lock_guard guard(lock_);
  uses_[slot.value] = {};
  if (by_device && !failure_) return;
  // What lay in the rings has been processed by the take-over.
  table().close(slot);
  table().clean(slot);
}

void Engine::end(core::SlotIndex slot, std::uint32_t packets) {
  const auto command = [&] {
    uses_[slot.value].end = packets;
    return device_->end(slot, packets);
  };
  if (carried_out(command, false)) return;
  core::apply_end(table(), slot, packets);
}

void Engine::take(core::ChannelIndex channel, std::span<const core::Completion> completions) {
  Channel& own = channels_[channel.value];
  while (!completions.empty()) {
    {
      const std::lock_guard filling(own.filling);
      if (failed()) return workers_[channel.value].process(completions);
      std::size_t given = 0;
      RingProducer<>& ring = device_->ring(channel);
      while (given < completions.size() && ring.push(completions[given])) ++given;
      completions = completions.subspan(given);
      own.given.store(ring.produced(), std::memory_order_release);
    }
    if (completions.empty()) return;
    if (works()) std::this_thread::yield();
  }
}

bool Engine::pending() const {
  if (failed()) return false;
  for (std::size_t c = 0; c < channels_.size(); ++c)
    if (device_->ring(index_of(c)).consumed() < channels_[c].given.load(std::memory_order_acquire)) return true;
  return false;
}

bool Engine::submit(const sdk::SendExtent& extent) {
  const bool taken = device_->send({.address = reinterpret_cast<std::uintptr_t>(extent.data),
                                    .bytes = extent.bytes,
                                    .slot = extent.slot.value,
                                    .first = extent.first,
                                    .trailing = extent.trailing,
                                    .user_immediate = extent.user_immediate,
                                    .generation = extent.generation.value});
  if (taken) commanded_.push_back(extent);
  return taken;
}

std::uint64_t Engine::packets_of(const sdk::SendExtent& extent, const Shape& shape) {
  return (extent.bytes + shape.mtu - 1) / shape.mtu + extent.trailing;
}

std::optional<sdk::SendWork> Engine::Expected::next() {
  if (extent_ == extents_.size()) return std::nullopt;
  const sdk::SendExtent& extent = extents_[extent_];
  const std::uint64_t from = std::min(packet_ * shape_.mtu, extent.bytes);
  const core::PacketOffset offset(extent.first + static_cast<std::uint32_t>(packet_));
  if (++packet_ == packets_of(extent, shape_)) {
    ++extent_;
    packet_ = 0;
  }
  return sdk::SendWork{.data = extent.data + from,
                       .immediate = shape_.geometry.layout.encode(extent.slot, offset, extent.user_immediate),
                       .length = static_cast<std::uint16_t>(std::min<std::uint64_t>(extent.bytes - from, shape_.mtu)),
                       .generation = extent.generation};
}

core::ChannelIndex Engine::channel_of(std::uint64_t packet) const {
  return core::ChannelIndex(static_cast<std::uint8_t>(packet / device_->shape().burst % channels_.size()));
}

std::size_t Engine::made(std::span<sdk::SendWork> out) {
  std::array<std::uint64_t, kMaxChannels> ahead{};
  Expected expected(commanded_, sent_of_first_, device_->shape());
  std::size_t n = 0;
  for (; n < out.size(); ++n) {
    const core::ChannelIndex channel = channel_of(packets_sent_ + n);
    const WorkEntry* entry = device_->work(channel).look(ahead[channel.value]++);
    if (entry == nullptr) break;
    std::optional<sdk::SendWork> work = expected.next();
    const bool asked_for = work && entry->address == reinterpret_cast<std::uintptr_t>(work->data) &&
                           swap_bytes(entry->immediate_be) == work->immediate &&
                           swap_bytes(entry->byte_count_be) == work->length &&
                           entry->generation == work->generation.value && entry->channel == channel.value;
    if (!asked_for) {
      take_over(
          {ErrorCode::Protocol, fmt::format("the {} device made a packet that it was not asked for: {} bytes from "
                                            "address {:#x}, immediate {:#010x}",
                                            offload::to_string(kind_), swap_bytes(entry->byte_count_be), entry->address,
                                            swap_bytes(entry->immediate_be))});
      break;
    }
    work->channel = channel;
    out[n] = *work;
  }
  return n;
}

void Engine::sent(std::size_t packets) {
  std::array<std::uint64_t, kMaxChannels> taken{};
  for (std::size_t n = 0; n < packets; ++n) ++taken[channel_of(packets_sent_ + n).value];
  packets_sent_ += packets;
  sent_of_first_ += packets;
  while (!commanded_.empty() && sent_of_first_ >= packets_of(commanded_.front(), device_->shape())) {
    sent_of_first_ -= packets_of(commanded_.front(), device_->shape());
    commanded_.pop_front();
  }
  for (std::size_t c = 0; c < channels_.size(); ++c)
    if (taken[c] != 0) device_->work(index_of(c)).take(taken[c]);
}

void Engine::look(TimePoint now) {
  if (failed() || now - looked_at_ < kLookEvery) return;
  looked_at_ = now;
  works();
}

std::optional<Error> Engine::failure() const {
  const std::lock_guard guard(lock_);
  return failure_;
}

sdk::OffloadCounts Engine::counts() const {
  const DeviceCounts device = device_->counts();
  sdk::OffloadCounts sum{.packets = device.packets,
                         .duplicates = device.duplicates,
                         .late = device.late,
                         .out_of_range = device.out_of_range,
                         .packets_made = device_->packets_made()};
  for (const core::ReceiveWorker& worker : workers_) {
    sum.packets += worker.counters().packets.get();
    sum.duplicates += worker.counters().duplicates.get();
    sum.late += worker.counters().late.get();
    sum.out_of_range += worker.counters().out_of_range.get();
  }
  return sum;
}

}  // namespace sdr::offload

namespace sdr {

std::optional<OffloadDevice> parse_offload_device(std::string_view text) {
  if (text == "host") return OffloadDevice::Host;
  if (text == "riscv") return OffloadDevice::Riscv;
  return std::nullopt;
}

std::string_view to_string(OffloadDevice device) {
  return device == OffloadDevice::Host ? "host" : "riscv";
}

Result<OffloadPtr> open_offload(const OffloadOptions& options) {
  const auto invalid = [](std::string message) { return Error{ErrorCode::InvalidArgument, std::move(message)}; };
  if (options.threads < 1 || options.threads > offload::kMaxWorkers)
    return invalid(fmt::format("{} offload threads, not 1 to {}", options.threads, offload::kMaxWorkers));
  if (options.silence <= Duration(0))
    return invalid(fmt::format("an offload device may be silent for {}, not more than 0", to_string(options.silence)));
  if (!options.receive && !options.send) return invalid("an offload device that is neither to receive nor to send");
  if (options.device == OffloadDevice::Riscv)
    if (const Result<void> available = offload::riscv_available(); !available) return available.error();
  return OffloadPtr(std::make_shared<offload::DeviceOffload>(options));
}

}  // namespace sdr

#include "transport/emulated_link_endpoint.hpp"

#include <algorithm>
#include <cstring>

namespace sdr::transport {
namespace {

using namespace std::chrono_literals;
using simulation::BufferPool;

constexpr std::uint64_t kSlack = 4 << 20;  // for bursts, and for a driver that comes late
constexpr std::uint64_t kWithoutRate = 256 << 20;
constexpr std::uint64_t kMost = 1 << 30;
constexpr Duration kRetry = 100us;  // an inner endpoint that is full names no time itself

// Aims are copied as they are; the payload behind them stays aligned to 8.
constexpr std::size_t kAimRoom = (sizeof(Aim) + 7) / 8 * 8;

std::uint64_t capacity_of(const simulation::LinkModel& model) {
  const Bandwidth rate = model.spec().rate;
  if (!rate.limited()) return kWithoutRate;
  const double bytes = rate.bits_per_second * static_cast<double>(model.longest_delay().count()) / 8e9;
  return bytes >= static_cast<double>(kMost) ? kMost : std::min(static_cast<std::uint64_t>(bytes) + kSlack, kMost);
}

// Only the driving thread writes them, so an increment need not be one atomic step.
void count(std::atomic<std::uint64_t>& counter, std::uint64_t by = 1) {
  counter.store(counter.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
}

}  // namespace

EmulatedLinkEndpoint::EmulatedLinkEndpoint(std::unique_ptr<Endpoint> inner, const simulation::LinkModel& model,
                                           std::uint16_t payload)
    : inner_(std::move(inner)),
      model_(model),
      facts_(inner_->facts()),
      aim_room_(facts_.aim_size == 0 ? 0 : kAimRoom),
      capacity_(capacity_of(model)),
      pool_(aim_room_ + std::max(payload, facts_.max_control)) {
  facts_.local_path = false;
  facts_.copies_on_write = true;
}

EndpointCounters EmulatedLinkEndpoint::counters() const {
  EndpointCounters counters = inner_->counters();
  counters.packets_sent = taken_.load(std::memory_order_relaxed);  // the inner one has seen only what came through
  counters.dropped_by_link += dropped_by_link_.load(std::memory_order_relaxed);
  counters.dropped_by_host += dropped_by_host_.load(std::memory_order_relaxed);
  return counters;
}

Result<void> EmulatedLinkEndpoint::connect(std::span<const std::byte> remote_info) {
  Result<void> connected = inner_->connect(remote_info);
  connected_ = connected_ || connected.ok();
  return connected;
}

std::size_t EmulatedLinkEndpoint::write(std::span<const Packet> packets, TimePoint now) {
  if (!connected_) return 0;
  flush(now);
  std::size_t taken = 0;
  for (const Packet& packet : packets) {
    if (full()) break;
    const Item item{.immediate = packet.immediate,
                    .buffer = BufferPool::kNone,
                    .length = packet.length,
                    .generation = packet.generation.value,
                    .channel = packet.channel.value,
                    .control = false,
                    .aimed = packet.aim != nullptr && aim_room_ != 0};
    carry(item, packet.local, packet.aim, now);
    taken++;
  }
  count(taken_, taken);
  if (queue_.next() <= now) flush(now);  // a link without delay
  return taken;
}

bool EmulatedLinkEndpoint::send_control(std::span<const std::byte> datagram, TimePoint now) {
  if (!connected_ || datagram.size() > facts_.max_control) return false;
  flush(now);
  if (full()) return false;
  const Item item{.immediate = 0,
                  .buffer = BufferPool::kNone,
                  .length = static_cast<std::uint16_t>(datagram.size()),
                  .generation = 0,
                  .channel = 0,
                  .control = true,
                  .aimed = false};
  carry(item, datagram.data(), nullptr, now);
  if (queue_.next() <= now) flush(now);
  return true;
}

std::optional<std::size_t> EmulatedLinkEndpoint::receive_control(std::span<std::byte> into, TimePoint now) {
  flush(now);
  return inner_->receive_control(into, now);
}

void EmulatedLinkEndpoint::advance(TimePoint now) {
  inner_->advance(now);
  flush(now);
}

TimePoint EmulatedLinkEndpoint::next_event() const {
  // Leftovers of a batch were due and refused.
  const TimePoint ours = batch_begin_ != batch_end_ ? retry_at_ : queue_.next();
  return std::min(ours, inner_->next_event());
}

void EmulatedLinkEndpoint::carry(Item item, const std::byte* bytes, const Aim* aim, TimePoint now) {
  const simulation::Fate fate = model_.carry(std::uint32_t{item.length} + facts_.packet_overhead, now);
  if (fate.copies == 0) {
    count(dropped_by_link_);
    return;
  }
  enqueue(item, bytes, aim, fate.arrival[0], fate.late);
  if (fate.copies == 2) enqueue(item, bytes, aim, fate.arrival[1], true);
}

void EmulatedLinkEndpoint::enqueue(Item item, const std::byte* bytes, const Aim* aim, TimePoint at, bool late) {
  if (item.length != 0 || item.aimed) {
    item.buffer = pool_.take();
    std::byte* const into = pool_.data(item.buffer);
    if (item.aimed) std::memcpy(into, aim, sizeof *aim);
    if (item.length != 0) std::memcpy(into + aim_room_, bytes, item.length);
  }
  wire_bytes_ += std::uint64_t{item.length} + facts_.packet_overhead;
  if (late) {
    queue_.push_late(at, item);
  } else {
    queue_.push(at, item);
  }
}

bool EmulatedLinkEndpoint::full() const {
  return wire_bytes_ >= capacity_ || pool_.bytes_in_use() >= kMost;
}

void EmulatedLinkEndpoint::flush(TimePoint now) {
  reclaim();
  while (true) {
    if (batch_begin_ == batch_end_) refill(now);
    if (batch_begin_ == batch_end_) return;
    if (batch_[batch_begin_].control) {
      hand_over_control(now);
    } else if (hand_over_packets(now) == 0) {
      retry_at_ = now + kRetry;
      return;
    }
  }
}

void EmulatedLinkEndpoint::refill(TimePoint now) {
  batch_begin_ = batch_end_ = 0;
  while (batch_end_ < kBatch) {
    const Item* due = queue_.due(now);
    if (due == nullptr) return;
    batch_[batch_end_++] = *due;
    queue_.pop();
  }
}

// The run of data packets at the front of the batch; returns how many the inner endpoint took.
std::size_t EmulatedLinkEndpoint::hand_over_packets(TimePoint now) {
  std::array<Packet, kBatch> run;
  std::size_t size = 0;
  for (std::size_t i = batch_begin_; i < batch_end_ && !batch_[i].control; ++i) {
    const Item& item = batch_[i];
    const std::byte* const buffer = item.buffer == BufferPool::kNone ? nullptr : pool_.data(item.buffer);
    run[size++] = {.local = item.length == 0 ? nullptr : buffer + aim_room_,
                   .immediate = item.immediate,
                   .length = item.length,
                   .generation = core::Generation(item.generation),
                   .channel = core::ChannelIndex(item.channel),
                   .aim = item.aimed ? reinterpret_cast<const Aim*>(buffer) : nullptr};
  }
  const std::size_t taken = inner_->write(std::span(run).first(size), now);
  const bool copied = inner_->facts().copies_on_write;
  for (std::size_t i = 0; i < taken; ++i) {
    const Item& item = batch_[batch_begin_++];
    leave(item);
    if (copied) {
      pool_.give_back(item.buffer);
    } else {
      being_read_.push(TimePoint{}, item.buffer);
    }
  }
  return taken;
}

// What the inner endpoint cannot queue is lost, as the contract has it.
void EmulatedLinkEndpoint::hand_over_control(TimePoint now) {
  const Item& item = batch_[batch_begin_++];
  const std::byte* const bytes = item.buffer == BufferPool::kNone ? nullptr : pool_.data(item.buffer) + aim_room_;
  if (!inner_->send_control({bytes, item.length}, now)) count(dropped_by_host_);
  pool_.give_back(item.buffer);
  leave(item);
}

void EmulatedLinkEndpoint::leave(const Item& item) {
  wire_bytes_ -= std::uint64_t{item.length} + facts_.packet_overhead;
}

void EmulatedLinkEndpoint::reclaim() {
  if (being_read_.empty()) return;
  for (const std::uint64_t finished = inner_->writes_finished(); reclaimed_ < finished; ++reclaimed_) {
    const Handle* const buffer = being_read_.due(TimePoint{});
    if (buffer == nullptr) return;
    pool_.give_back(*buffer);
    being_read_.pop();
  }
}

}  // namespace sdr::transport

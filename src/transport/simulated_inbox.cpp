#include "transport/simulated_inbox.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>

namespace sdr::transport {

using simulation::BufferPool;

SimulatedInbox::SimulatedInbox(const EndpointOptions& options, bool carry_payload, std::uint16_t max_control)
    : options_(options),
      carry_payload_(carry_payload),
      slots_(options.slots),
      channels_(options.channels),
      payloads_(options.payload),
      datagrams_(max_control) {}

void SimulatedInbox::deliver(const Packet& packet, std::uint64_t token, TimePoint at, bool late, bool marked) {
  if (closed_) return;
  Arrival arrival{.immediate = packet.immediate,
                  .bytes = BufferPool::kNone,
                  .length = packet.length,
                  .generation = packet.generation.value,
                  .channel = packet.channel.value,
                  .ours = token == options_.token,
                  .marked = marked};
  // A forged length beyond the MTU is refused when it arrives; its bytes need no place.
  if (carry_payload_ && packet.length != 0 && packet.length <= options_.payload) {
    arrival.bytes = payloads_.take();
    std::memcpy(payloads_.data(arrival.bytes), packet.local, packet.length);
  }
  // A channel that does not exist has no queue; the packet waits in the first one to be refused.
  auto& queue = channels_[packet.channel.value < channels_.size() ? packet.channel.value : 0];
  if (late) {
    queue.push_late(at, arrival);
  } else {
    queue.push(at, arrival);
  }
}

void SimulatedInbox::deliver_control(std::span<const std::byte> datagram, std::uint64_t token, TimePoint at, bool late,
                                     bool marked) {
  if (closed_) return;
  const Arrival arrival{.bytes = datagrams_.take(),
                        .length = static_cast<std::uint16_t>(datagram.size()),
                        .ours = token == options_.token,
                        .marked = marked};
  if (!datagram.empty()) std::memcpy(datagrams_.data(arrival.bytes), datagram.data(), datagram.size());
  if (late) {
    control_.push_late(at, arrival);
  } else {
    control_.push(at, arrival);
  }
}

void SimulatedInbox::expose(core::SlotIndex slot, core::Generation generation, std::span<std::byte> buffer) {
  assert(slot.value < slots_.size());
  slots_[slot.value] = {.base = buffer.data(), .size = buffer.size(), .generation = generation.value, .exposed = true};
}

void SimulatedInbox::retract(core::SlotIndex slot) {
  assert(slot.value < slots_.size());
  slots_[slot.value] = {};
}

std::size_t SimulatedInbox::poll(core::ChannelIndex channel, std::span<core::Completion> out, TimePoint now) {
  if (channel.value >= channels_.size()) return 0;
  auto& queue = channels_[channel.value];
  std::size_t count = 0;
  while (count < out.size()) {
    const Arrival* due = queue.due(now);
    if (due == nullptr) break;
    const Arrival arrival = *due;
    queue.pop();
    counters_.congestion_marks += arrival.ours && arrival.marked ? 1U : 0U;
    if (place(arrival)) {
      out[count++] = {.immediate = arrival.immediate,
                      .length = arrival.length,
                      .generation = arrival.generation,
                      .channel = arrival.channel};
      counters_.bytes_received += arrival.length;
    }
    payloads_.give_back(arrival.bytes);
  }
  counters_.packets_received += count;
  return count;
}

// Source: paper section 3.2; the order of the checks is that of the counters' meaning, the stranger first.
bool SimulatedInbox::place(const Arrival& arrival) {
  const auto refuse = [](std::uint64_t& counter) {
    counter++;
    return false;
  };
  if (!arrival.ours) return refuse(counters_.dropped_wrong_token);
  const core::Immediate where = options_.layout.decode(arrival.immediate);
  if (arrival.channel >= channels_.size() || where.slot.value >= slots_.size() || arrival.length > options_.payload) {
    return refuse(counters_.dropped_out_of_range);
  }
  const Exposure& slot = slots_[where.slot.value];
  if (!slot.exposed || slot.generation != arrival.generation) return refuse(counters_.dropped_not_exposed);
  if (arrival.length == 0) return true;  // carries its immediate only, even past the buffer
  const std::size_t at = std::size_t{where.offset.value} * options_.payload;
  if (at >= slot.size || arrival.length > slot.size - at) return refuse(counters_.dropped_out_of_range);
  if (carry_payload_) std::memcpy(slot.base + at, payloads_.data(arrival.bytes), arrival.length);
  return true;
}

std::optional<std::size_t> SimulatedInbox::receive_control(std::span<std::byte> into, TimePoint now) {
  while (const Arrival* due = control_.due(now)) {
    const Arrival arrival = *due;
    control_.pop();
    const std::size_t size = std::min<std::size_t>(arrival.length, into.size());
    if (arrival.ours && size != 0) std::memcpy(into.data(), datagrams_.data(arrival.bytes), size);
    datagrams_.give_back(arrival.bytes);
    if (arrival.ours) {
      counters_.congestion_marks += arrival.marked ? 1U : 0U;
      return size;
    }
    counters_.dropped_wrong_token++;
  }
  return std::nullopt;
}

TimePoint SimulatedInbox::next_event() const {
  TimePoint first = control_.next();
  for (const auto& channel : channels_) first = std::min(first, channel.next());
  return first;
}

std::size_t SimulatedInbox::in_flight() const {
  std::size_t count = control_.size();
  for (const auto& channel : channels_) count += channel.size();
  return count;
}

}  // namespace sdr::transport

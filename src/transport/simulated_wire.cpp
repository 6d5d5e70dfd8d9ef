#include "transport/simulated_wire.hpp"

#include <cassert>
#include <utility>

namespace sdr::transport {

PacketView SimulatedWire::view_of(const Packet& packet, TimePoint now) const {
  return {.kind = PacketView::Kind::Data,
          .immediate = packet.immediate,
          .generation = packet.generation,
          .channel = packet.channel,
          .length = packet.length,
          .bytes = {packet.local, carry_payload_ ? packet.length : std::size_t{0}},
          .now = now};
}

bool SimulatedWire::send(const Packet& packet, std::uint64_t token, SimulatedInbox& to, bool ecn_capable,
                         TimePoint now) {
  if (filter_) [[unlikely]] {
    bool lost = false;
    if (intercepted(view_of(packet, now), packet, token, to, lost)) return !lost;
  }
  if (crossing_)
    return crossing_->send(packet, token, to, std::uint32_t{packet.length} + packet_overhead_, ecn_capable, now);
  const simulation::Fate fate = model_.carry(std::uint32_t{packet.length} + packet_overhead_, now);
  if (observer_) [[unlikely]]
    observer_(view_of(packet, now), fate);
  if (fate.copies == 0) return false;
  to.deliver(packet, token, fate.arrival[0], fate.late);
  if (fate.copies == 2) to.deliver(packet, token, fate.arrival[1], true);
  return true;
}

bool SimulatedWire::send_control(std::span<const std::byte> datagram, std::uint64_t token, SimulatedInbox& to,
                                 bool ecn_capable, TimePoint now) {
  const PacketView view{.kind = PacketView::Kind::Control,
                        .length = static_cast<std::uint16_t>(datagram.size()),
                        .bytes = datagram,
                        .now = now};
  if (filter_) [[unlikely]] {
    bool lost = false;
    if (intercepted(view, {}, token, to, lost)) return !lost;
  }
  const std::uint32_t wire_bytes = static_cast<std::uint32_t>(datagram.size()) + packet_overhead_;
  if (crossing_) return crossing_->send_control(datagram, token, to, wire_bytes, ecn_capable, now);
  const simulation::Fate fate = model_.carry(wire_bytes, now);
  if (observer_) [[unlikely]]
    observer_(view, fate);
  if (fate.copies == 0) return false;
  to.deliver_control(datagram, token, fate.arrival[0], fate.late);
  if (fate.copies == 2) to.deliver_control(datagram, token, fate.arrival[1], true);
  return true;
}

void SimulatedWire::share(simulation::SharedWay& way, Duration further) {
  assert(!carry_payload_);
  crossing_ = std::make_unique<SimulatedCrossing>(way, further);
}

bool SimulatedWire::intercepted(const PacketView& view, const Packet& packet, std::uint64_t token, SimulatedInbox& to,
                                bool& lost) {
  const Verdict verdict = filter_(view);
  if (verdict == Verdict::Pass) return false;
  lost = verdict == Verdict::Drop;
  if (verdict == Verdict::Hold) {
    held_.push_back({.control = view.kind == PacketView::Kind::Control,
                     .packet = packet,
                     .bytes = {view.bytes.begin(), view.bytes.end()},
                     .token = token,
                     .to = to.weak_from_this()});
  }
  return true;
}

void SimulatedWire::release(std::size_t index, TimePoint at) {
  assert(index < held_.size());
  Held held = std::move(held_[index]);
  held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(index));
  const std::shared_ptr<SimulatedInbox> to = held.to.lock();
  if (!to) return;
  if (held.control) {
    to->deliver_control(held.bytes, held.token, at, true);
  } else {
    held.packet.local = held.bytes.data();
    to->deliver(held.packet, held.token, at, true);
  }
}

}  // namespace sdr::transport

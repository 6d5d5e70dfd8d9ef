#include "transport/simulated_crossing.hpp"

namespace sdr::transport {

bool SimulatedCrossing::send(const Packet& packet, std::uint64_t token, SimulatedInbox& to, std::uint32_t wire_bytes,
                             bool ecn_capable, TimePoint now) {
  const std::uint32_t number = take(token, to);
  cargo_[number].packet = packet;
  cargo_[number].packet.aim = nullptr;  // the caller's, and of no use to an inbox
  cargo_[number].control = false;
  const bool accepted = way_.offer(flow_, number, wire_bytes, ecn_capable, now);
  if (!accepted) free_.push_back(number);
  return accepted;
}

bool SimulatedCrossing::send_control(std::span<const std::byte> datagram, std::uint64_t token, SimulatedInbox& to,
                                     std::uint32_t wire_bytes, bool ecn_capable, TimePoint now) {
  const std::uint32_t number = take(token, to);
  cargo_[number].datagram.assign(datagram.begin(), datagram.end());
  cargo_[number].control = true;
  const bool accepted = way_.offer(flow_, number, wire_bytes, ecn_capable, now);
  if (!accepted) free_.push_back(number);
  return accepted;
}

void SimulatedCrossing::arrive(std::uint32_t cargo, TimePoint at, bool marked, bool last) {
  const Cargo& carried = cargo_[cargo];
  SimulatedInbox& to = *inboxes_[carried.to];
  if (carried.control) {
    to.deliver_control(carried.datagram, carried.token, at, false, marked);
  } else {
    to.deliver(carried.packet, carried.token, at, false, marked);
  }
  if (last) free_.push_back(cargo);
}

void SimulatedCrossing::perish(std::uint32_t cargo) {
  free_.push_back(cargo);
}

std::uint32_t SimulatedCrossing::take(std::uint64_t token, SimulatedInbox& to) {
  if (free_.empty()) {
    free_.push_back(static_cast<std::uint32_t>(cargo_.size()));
    cargo_.emplace_back();
  }
  const std::uint32_t number = free_.back();
  free_.pop_back();
  cargo_[number].token = token;
  cargo_[number].to = number_of(to);
  return number;
}

std::uint32_t SimulatedCrossing::number_of(SimulatedInbox& to) {
  for (std::uint32_t i = 0; i < inboxes_.size(); ++i) {
    if (inboxes_[i].get() == &to) return i;
  }
  inboxes_.push_back(to.shared_from_this());
  return static_cast<std::uint32_t>(inboxes_.size() - 1);
}

}  // namespace sdr::transport

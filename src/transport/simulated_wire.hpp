// SimulatedWire: one direction of a simulated link, from the endpoints of one site to those of the other.
//
// Whatever is handed over first passes the filter, if a test has set one, then the link model, which says when it
// arrives. Packets that the filter holds wait outside of time until they are released: that is how a test stages a
// packet of an old generation, or a CTS that comes too late.
//
// An observer sees everything that passes the link model, and what becomes of it.
//
// A wire may lead over a way that it shares with others instead (simulation/shared_way.hpp): then that way, not the
// link model, says what becomes of each packet, and nobody observes.
//
// Threads: one, the one that drives the whole simulated network.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "simulation/link_model.hpp"
#include "transport/simulated_crossing.hpp"
#include "transport/simulated_inbox.hpp"

namespace sdr::transport {

// What a filter gets to see of a packet or a control datagram.
struct PacketView {
  enum class Kind : std::uint8_t { Data, Control };

  Kind kind = Kind::Data;
  std::uint32_t immediate = 0;  // this and the next two: of data packets
  core::Generation generation;
  core::ChannelIndex channel;
  std::uint16_t length = 0;
  std::span<const std::byte> bytes;  // empty for the data packets of a network that carries no payload
  TimePoint now;
};

enum class Verdict : std::uint8_t { Pass, Drop, Hold };
using PacketFilter = std::function<Verdict(const PacketView&)>;
using PacketObserver = std::function<void(const PacketView&, const simulation::Fate&)>;

class SimulatedWire {
 public:
  SimulatedWire(const simulation::LinkModel& model, std::uint16_t packet_overhead, bool carry_payload)
      : model_(model), packet_overhead_(packet_overhead), carry_payload_(carry_payload) {}

  // False when the link loses it. Only shared ways ask whether it is ECN-capable.
  bool send(const Packet& packet, std::uint64_t token, SimulatedInbox& to, bool ecn_capable, TimePoint now);
  bool send_control(std::span<const std::byte> datagram, std::uint64_t token, SimulatedInbox& to, bool ecn_capable,
                    TimePoint now);

  void set_filter(PacketFilter filter) { filter_ = std::move(filter); }
  void set_observer(PacketObserver observer) { observer_ = std::move(observer); }
  // A link of another kind from now on; what is under way arrives as it would have.
  void set_model(const simulation::LinkModel& model) { model_ = model; }
  // Over a shared way from now on, `further` away than that is long. Without payload only.
  void share(simulation::SharedWay& way, Duration further);
  [[nodiscard]] const SimulatedCrossing* crossing() const { return crossing_.get(); }
  [[nodiscard]] std::size_t held() const { return held_.size(); }
  // The held one at `index`, counted in the order in which they were handed over, arrives at `at`; the ones after it
  // move up. It does not pass the link model: nothing happens to it any more.
  void release(std::size_t index, TimePoint at);

  [[nodiscard]] const simulation::LinkModel& model() const { return model_; }

 private:
  struct Held {
    bool control;
    Packet packet;
    std::vector<std::byte> bytes;
    std::uint64_t token;
    std::weak_ptr<SimulatedInbox> to;
  };

  [[nodiscard]] PacketView view_of(const Packet& packet, TimePoint now) const;
  // Asks the filter; true when there is nothing more to do, `lost` saying how it ended.
  bool intercepted(const PacketView& view, const Packet& packet, std::uint64_t token, SimulatedInbox& to, bool& lost);

  simulation::LinkModel model_;
  std::uint16_t packet_overhead_;
  bool carry_payload_;
  std::unique_ptr<SimulatedCrossing> crossing_;  // null: the link model
  PacketFilter filter_;
  PacketObserver observer_;
  std::vector<Held> held_;
};

}  // namespace sdr::transport

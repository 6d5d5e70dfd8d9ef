// SimulatedNetwork: two sites joined by one link each way, in virtual time.
//
// It is the transport under which the protocol floors are proved: a packet written at `now` arrives in the other site's
// poll() once the caller's time has reached what the link model computed, and every run repeats from its seed. The
// driver jumps from next_event() to next_event(). Data and control share the link, its rate and its losses.
//
//   SimulatedNetwork network({.link = spec});
//   auto sender = network.device(Site::A).create_endpoint(options);    // any number of pairs share the link
//   auto receiver = network.device(Site::B).create_endpoint(options);
//
// For tests: filters, held packets and forged packets (see simulated_wire.hpp).
//
// Threads: one drives the network, its devices and all endpoints, poll() included. Times must not go back.
// Lifetime: the network outlives its endpoints.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "simulation/link_spec.hpp"
#include "transport/simulated_wire.hpp"
#include "transport/transport.hpp"

namespace sdr::transport {

enum class Site : std::uint8_t { A, B };

[[nodiscard]] constexpr Site other(Site site) {
  return site == Site::A ? Site::B : Site::A;
}

struct SimulatedOptions {
  simulation::LinkSpec link;
  std::optional<simulation::LinkSpec> way_back;  // from B to A, where it differs from `link`
  // Without payload no byte is copied or looked at (Packet::local and exposed memory may be null): packets only
  // complete. For simulations of long links at full speed.
  bool carry_payload = true;
  std::uint16_t packet_overhead = 44;  // IPv4, UDP and our header; control datagrams pay it too
  std::uint16_t max_control = 1232;
};

class SimulatedNetwork;

class SimulatedEndpoint final : public Endpoint {
 public:
  SimulatedEndpoint(SimulatedNetwork& network, Site site, std::uint32_t number, const EndpointOptions& options);
  ~SimulatedEndpoint() override;
  SimulatedEndpoint(const SimulatedEndpoint&) = delete;
  SimulatedEndpoint& operator=(const SimulatedEndpoint&) = delete;

  // For tests: a packet or datagram out of nowhere arrives here at `at`, with any token, slot, offset or generation.
  void inject(const Packet& packet, std::uint64_t token, TimePoint at);
  void inject_control(std::span<const std::byte> datagram, std::uint64_t token, TimePoint at);
  [[nodiscard]] std::uint64_t token() const { return inbox_->token(); }
  // Packets and datagrams under way to this endpoint, or waiting to be polled.
  [[nodiscard]] std::size_t in_flight() const { return inbox_->in_flight(); }

  [[nodiscard]] const EndpointFacts& facts() const override { return facts_; }
  [[nodiscard]] EndpointCounters counters() const override;
  [[nodiscard]] std::vector<std::byte> info() const override;
  Result<void> connect(std::span<const std::byte> remote_info) override;
  [[nodiscard]] std::string peer_name() const override;

  Result<Aim> expose(core::SlotIndex slot, core::Generation generation, std::span<std::byte> buffer) override;
  void retract(core::SlotIndex slot) override { inbox_->retract(slot); }
  std::size_t poll(core::ChannelIndex channel, std::span<core::Completion> out, TimePoint now) override {
    return inbox_->poll(channel, out, now);
  }

  std::size_t write(std::span<const Packet> packets, TimePoint now) override;
  [[nodiscard]] std::uint64_t writes_finished() const override { return packets_sent_; }
  bool send_control(std::span<const std::byte> datagram, TimePoint now) override;
  std::optional<std::size_t> receive_control(std::span<std::byte> into, TimePoint now) override {
    return inbox_->receive_control(into, now);
  }

  void advance(TimePoint) override {}
  [[nodiscard]] int channel_fd(core::ChannelIndex) const override { return -1; }
  [[nodiscard]] int control_fd() const override { return -1; }
  [[nodiscard]] TimePoint next_event() const override { return inbox_->next_event(); }

 private:
  SimulatedNetwork& network_;
  Site site_;
  std::uint32_t number_;  // among the endpoints of its site
  EndpointFacts facts_;
  bool ecn_;
  std::shared_ptr<SimulatedInbox> inbox_;
  std::shared_ptr<SimulatedInbox> peer_;  // null until connected
  std::string peer_name_ = "nobody yet";
  std::uint64_t packets_sent_ = 0;
  std::uint64_t dropped_by_link_ = 0;
};

class SimulatedDevice final : public Device {
 public:
  SimulatedDevice(SimulatedNetwork& network, Site site) : network_(network), site_(site) {}

  [[nodiscard]] std::string name() const override;
  [[nodiscard]] Result<std::uint16_t> max_payload(const std::string& remote) const override;
  Result<std::unique_ptr<Endpoint>> create_endpoint(const EndpointOptions& options) override;

 private:
  SimulatedNetwork& network_;
  Site site_;
};

class SimulatedNetwork {
 public:
  explicit SimulatedNetwork(const SimulatedOptions& options);
  SimulatedNetwork(const SimulatedNetwork&) = delete;
  SimulatedNetwork& operator=(const SimulatedNetwork&) = delete;

  [[nodiscard]] SimulatedDevice& device(Site site) { return site == Site::A ? device_a_ : device_b_; }
  [[nodiscard]] const SimulatedOptions& options() const { return options_; }
  // The n-th endpoint made at a site; null once it is gone.
  [[nodiscard]] SimulatedEndpoint* endpoint(Site site, std::uint32_t number = 0) const;
  // When something arrives at any endpoint.
  [[nodiscard]] TimePoint next_event() const;

  // What leaves a site goes over that site's wire.
  void set_filter(Site from, PacketFilter filter) { wire(from).set_filter(std::move(filter)); }
  void set_observer(Site from, PacketObserver observer) { wire(from).set_observer(std::move(observer)); }
  // Both ways become `link`, begun anew: counts, losses, outages. What is under way arrives as it would have. Sizes of
  // packets are held against the link that there was when the endpoints were made.
  void set_link(const simulation::LinkSpec& link);
  // Both ways lead over ways that others cross, too, each `further` away than those are long. Once, before anything is
  // sent, and for a network that carries no payload. Whoever advances the ways does it up to the time of each call
  // here; next_event() knows nothing of what is still on them.
  void share(simulation::SharedWay& forward, simulation::SharedWay& backward, Duration further);
  // The number by which a shared way knows what leaves a site.
  [[nodiscard]] std::uint32_t flow(Site from) const { return wires_[index(from)].crossing()->flow(); }
  [[nodiscard]] std::size_t held(Site from) const { return wires_[index(from)].held(); }
  void release(Site from, std::size_t which, TimePoint at) { wire(from).release(which, at); }
  void release_all(Site from, TimePoint at);
  [[nodiscard]] const simulation::LinkCounts& counts(Site from) const { return wires_[index(from)].model().counts(); }

 private:
  friend class SimulatedEndpoint;
  friend class SimulatedDevice;

  static constexpr std::size_t index(Site site) { return static_cast<std::size_t>(site); }
  [[nodiscard]] SimulatedWire& wire(Site from) { return wires_[index(from)]; }

  SimulatedOptions options_;
  std::array<SimulatedWire, 2> wires_;
  SimulatedDevice device_a_;
  SimulatedDevice device_b_;
  std::array<std::vector<SimulatedEndpoint*>, 2> endpoints_;
};

}  // namespace sdr::transport

// SimulatedCrossing: how what leaves a simulated wire crosses a way that several flows share.
//
// It keeps what a packet is, payload excepted, while a number for it is under way, and hands it to the inbox that it
// was sent to when the way says that it arrives. Control datagrams are copied.
//
// Memory grows to the most that was ever under way and then stays. Threads: one. Lifetime: the way does not outlive it
// and goes on being advanced.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "simulation/shared_way.hpp"
#include "transport/simulated_inbox.hpp"

namespace sdr::transport {

class SimulatedCrossing final : public simulation::SharedWay::Traveller {
 public:
  SimulatedCrossing(simulation::SharedWay& way, Duration further) : way_(way), flow_(way.add_flow(*this, further)) {}
  SimulatedCrossing(const SimulatedCrossing&) = delete;
  SimulatedCrossing& operator=(const SimulatedCrossing&) = delete;

  // False when it was dropped at once.
  bool send(const Packet& packet, std::uint64_t token, SimulatedInbox& to, std::uint32_t wire_bytes, bool ecn_capable,
            TimePoint now);
  bool send_control(std::span<const std::byte> datagram, std::uint64_t token, SimulatedInbox& to,
                    std::uint32_t wire_bytes, bool ecn_capable, TimePoint now);
  [[nodiscard]] std::uint32_t flow() const { return flow_; }

  void arrive(std::uint32_t cargo, TimePoint at, bool marked, bool last) override;
  void perish(std::uint32_t cargo) override;

 private:
  struct Cargo {
    Packet packet;
    std::uint64_t token = 0;
    std::uint32_t to = 0;
    std::vector<std::byte> datagram;  // keeps its memory from one use to the next
    bool control = false;
  };

  [[nodiscard]] std::uint32_t take(std::uint64_t token, SimulatedInbox& to);
  [[nodiscard]] std::uint32_t number_of(SimulatedInbox& to);

  simulation::SharedWay& way_;
  std::uint32_t flow_;
  std::vector<std::shared_ptr<SimulatedInbox>> inboxes_;
  std::vector<Cargo> cargo_;
  std::vector<std::uint32_t> free_;
};

}  // namespace sdr::transport

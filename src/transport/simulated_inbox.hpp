// SimulatedInbox: the receiving half of a simulated endpoint: what is under way to it, and the memory it exposes.
//
// It behaves like a NIC: a packet is judged when it arrives, by what is exposed then, not when it was sent. Each
// channel and the control path has its own queue by arrival time, so that polling one never passes over another's
// packets.
//
// The way's copies of payloads live in pooled buffers until they are placed. Without `carry_payload` bytes are neither
// carried nor touched; packets only complete, and exposed buffers are sizes.
//
// Threads: one, the one that drives the whole simulated network.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "simulation/arrival_queue.hpp"
#include "simulation/buffer_pool.hpp"
#include "transport/transport.hpp"

namespace sdr::transport {

class SimulatedInbox : public std::enable_shared_from_this<SimulatedInbox> {
 public:
  SimulatedInbox(const EndpointOptions& options, bool carry_payload, std::uint16_t max_control);

  // The sender's side: comes in at `at`. `late` ones do not hold up those sent after them; `marked` ones bear ECN's
  // "congestion experienced".
  void deliver(const Packet& packet, std::uint64_t token, TimePoint at, bool late, bool marked = false);
  void deliver_control(std::span<const std::byte> datagram, std::uint64_t token, TimePoint at, bool late,
                       bool marked = false);
  // Nothing arrives any more: the endpoint is gone.
  void close() { closed_ = true; }

  // The receiver's side, as in the contract.
  void expose(core::SlotIndex slot, core::Generation generation, std::span<std::byte> buffer);
  void retract(core::SlotIndex slot);
  std::size_t poll(core::ChannelIndex channel, std::span<core::Completion> out, TimePoint now);
  std::optional<std::size_t> receive_control(std::span<std::byte> into, TimePoint now);
  [[nodiscard]] TimePoint next_event() const;

  [[nodiscard]] const EndpointCounters& counters() const { return counters_; }
  [[nodiscard]] std::uint64_t token() const { return options_.token; }
  [[nodiscard]] bool closed() const { return closed_; }
  // Packets and datagrams under way or waiting to be polled.
  [[nodiscard]] std::size_t in_flight() const;

 private:
  struct Arrival {
    std::uint32_t immediate;
    simulation::BufferPool::Handle bytes;
    std::uint16_t length;
    std::uint8_t generation;
    std::uint8_t channel;
    bool ours;    // it carries our token
    bool marked;  // by a queue on the way
  };
  struct Exposure {
    std::byte* base = nullptr;
    std::size_t size = 0;
    std::uint8_t generation = 0;
    bool exposed = false;
  };

  bool place(const Arrival& arrival);

  EndpointOptions options_;
  bool carry_payload_;
  bool closed_ = false;
  std::vector<Exposure> slots_;
  std::vector<simulation::ArrivalQueue<Arrival>> channels_;
  simulation::ArrivalQueue<Arrival> control_;
  simulation::BufferPool payloads_;
  simulation::BufferPool datagrams_;
  EndpointCounters counters_;
};

}  // namespace sdr::transport

// Timeline: everything that crossed the link in one run: when each packet and datagram left and arrived, and what it
// was.
//
// Which transfer a packet is of, and whether it is parity, follows from the order of the messages of a connection that
// had none before: one a transfer, with parity two in turn. Where the transfer lies in the Write its offers say. A data
// packet whose bytes had been sent before is a repair.
//
// Memory: one record a packet. Threads: the one that drives the network.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/immediate.hpp"
#include "sdr/units.hpp"
#include "transport/simulated.hpp"

namespace sdr::experiment {

enum class Cargo : std::uint8_t {
  Data,
  Repair,
  Parity,
  Offer,   // "this is what I send", and whether all of it is sent
  Report,  // "this is what I hold": nothing missing
  Nack,    // a report that names missing chunks
  Done,    // a report that a transfer is complete
  Grant,   // clear to send, and what is said about it
  Ping,    // and its answer
};

struct Passage {
  TimePoint sent{};
  TimePoint departed{};        // from the bottleneck; `sent` when it was dropped before
  TimePoint arrived{};         // kNever: lost
  std::uint64_t position = 0;  // data and repairs: bytes into the Write; parity: into the parity of its transfer
  std::uint32_t transfer = 0;  // data, repairs and parity
  std::uint32_t bytes = 0;     // payload, or the datagram's
  Cargo cargo = Cargo::Data;
  bool backward = false;  // from the receiver to the sender
  bool duplicate = false;
};

// How the immediates of packets are to be read.
struct MessageMap {
  core::ImmediateLayout layout;
  std::uint32_t slots = 0;
  std::uint32_t generations = 0;
  std::uint32_t mtu = 0;
  bool coded = false;
};

class Timeline {
 public:
  // Watches both ways of `network` from now on; it must not outlive this.
  void watch(transport::SimulatedNetwork& network, const MessageMap& map, TimePoint begin);
  // The Write is complete: nothing more is recorded.
  void complete(TimePoint at);

  [[nodiscard]] const std::vector<Passage>& passages() const { return passages_; }
  [[nodiscard]] TimePoint begin() const { return begin_; }
  [[nodiscard]] TimePoint completed() const { return completed_; }

 private:
  // What is known of a transfer from what passed.
  struct Seen {
    std::uint64_t offset = 0;  // in the Write
    std::uint64_t reach = 0;   // one past the last byte that was sent
  };

  void note(const transport::PacketView& view, const simulation::Fate& fate, bool backward);
  void note_packet(const transport::PacketView& view, Passage& passage);
  void note_datagram(const transport::PacketView& view, Passage& passage);
  void note_upper(std::span<const std::byte> body, Passage& passage);
  [[nodiscard]] std::uint64_t message_of(std::uint32_t slot, std::uint8_t generation);
  [[nodiscard]] Seen& transfer(std::uint64_t number);

  MessageMap map_;
  std::vector<Passage> passages_;
  std::vector<Seen> transfers_;
  TimePoint begin_{};
  TimePoint completed_ = kNever;
  std::uint64_t latest_message_ = 0;
  std::uint64_t completed_below_ = 0;  // by the receiver's latest word
};

}  // namespace sdr::experiment

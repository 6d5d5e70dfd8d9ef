// Endpoint and Device: the one contract under which libsdr moves packets.
//
// Model: an unreliable network card. The receiver exposes memory under (slot, generation); the sender writes single
// packets with an immediate into it; packets may be lost, duplicated, delayed and reordered, one never voids another.
// A packet whose slot or generation is not exposed touches nothing. Beside it runs a control path of small datagrams
// with the same losses.
//
// Threads: poll(channel) may run on one thread per channel at a time, and beside all other calls. Every other call
// comes from one thread at a time (the one that drives the QP). Nothing here blocks, allocates after connect(), reads
// a clock or draws a random number.
//
// Late packets: retract() makes the memory unreachable for packets that the endpoint has not yet begun to place. A
// poll() that runs meanwhile may still be placing one; the caller waits for it (sdk/quiescence.hpp) before it reuses
// the memory.
//
// Not chosen: placing by callback (a NIC has none), a byte stream under the packets (head-of-line blocking).
// Source: paper section 3; the conformance suite in tests/transport/ is this contract in executable form.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/completion.hpp"
#include "core/immediate.hpp"
#include "core/indices.hpp"
#include "sdr/result.hpp"
#include "sdr/units.hpp"

namespace sdr::transport {

// What a sender must know, beyond slot and offset, to hit an exposed buffer (an rkey, say). Opaque above the
// transport; rides in the CTS. Empty for transports that address by slot alone.
struct Aim {
  static constexpr std::size_t kCapacity = 16;
  std::uint8_t size = 0;
  std::array<std::byte, kCapacity> bytes{};
};

// A handle to registered memory (an lkey, say). Zero where a transport needs no registration.
using MemoryKey = core::Index<struct MemoryKeyTag, std::uint32_t>;

// One single-packet Write with immediate.
struct Packet {
  const std::byte* local = nullptr;  // payload; may be null when length is 0
  std::uint32_t immediate = 0;
  std::uint16_t length = 0;  // at most EndpointOptions::payload
  core::Generation generation;
  core::ChannelIndex channel;
  const Aim* aim = nullptr;  // of the slot; null when the transport's aims are empty
  MemoryKey memory_key;      // of the region that holds `local`
};

struct EndpointOptions {
  std::uint64_t token = 0;  // random: packets that do not carry it are not ours
  core::ImmediateLayout layout;
  std::uint32_t slots = 64;  // at most layout.max_slots()
  std::uint8_t channels = 1;
  std::uint8_t generations = 8;  // 2 to 255
  std::uint16_t payload = 0;     // MTU in bytes: the largest packet payload; offset o lands at o * payload
  bool ecn = false;              // packets and datagrams are sent as ECN-capable, where the network knows of it
};

// The smallest packet payload in bytes.
inline constexpr std::uint16_t kMinPayload = 64;

// What every transport asks of the options; `max_payload` is its own limit, a multiple of 8. InvalidArgument names the
// field, the value and the range.
Result<void> check(const EndpointOptions& options, std::uint16_t max_payload);

// Facts about an endpoint that do not change after creation.
struct EndpointFacts {
  std::uint16_t packet_overhead = 0;  // bytes on the wire beside the payload, IP headers included
  std::uint16_t max_control = 0;      // the largest control datagram in bytes
  std::uint8_t aim_size = 0;          // of every Aim that expose() returns
  bool local_path = false;            // both ends on this machine: no rate of a link, but a socket buffer to respect
  std::uint32_t receive_buffer =
      0;                    // bytes that may wait unread in this endpoint before packets are dropped; 0: no limit
  std::uint16_t burst = 1;  // packets that go out cheapest when they stay on one channel in a row
  // Payload buffers may be reused as soon as write() returns; otherwise when writes_finished() has counted them.
  bool copies_on_write = true;
  // False: payload is neither read nor written, only counted (a simulation); who would compute it need not.
  bool carries_payload = true;
};

// Why packets were dropped or not sent, by name. Read from any thread.
struct EndpointCounters {
  std::uint64_t packets_sent = 0;
  std::uint64_t packets_received = 0;      // data packets that reached a completion
  std::uint64_t bytes_received = 0;        // payload of those
  std::uint64_t dropped_wrong_token = 0;   // stray or forged
  std::uint64_t dropped_malformed = 0;     // too short, unknown kind or version, length field disagrees
  std::uint64_t dropped_out_of_range = 0;  // slot, offset or length beyond what is exposed
  std::uint64_t dropped_not_exposed = 0;   // late: slot retracted or of another generation
  std::uint64_t bytes_dropped = 0;         // payload of the last two, where the transport sees it
  std::uint64_t dropped_by_host = 0;       // the kernel dropped it for want of socket buffer
  std::uint64_t dropped_by_link = 0;       // an emulated or simulated link lost it on the way out
  std::uint64_t congestion_marks = 0;      // packets and datagrams that came in with ECN's "congestion experienced"
  std::uint64_t send_calls = 0;            // system calls that sent
  std::uint64_t receive_calls = 0;         // system calls that received
};

class Endpoint {
 public:
  virtual ~Endpoint() = default;

  [[nodiscard]] virtual const EndpointFacts& facts() const = 0;
  [[nodiscard]] virtual EndpointCounters counters() const = 0;

  // Connection. info() is what the peer's connect() needs, opaque, to be carried by the application.
  [[nodiscard]] virtual std::vector<std::byte> info() const = 0;
  virtual Result<void> connect(std::span<const std::byte> remote_info) = 0;
  // "192.0.2.7:5201": for messages to a person.
  [[nodiscard]] virtual std::string peer_name() const = 0;

  // Receiver. expose() aims (slot, generation) at `buffer`; what was exposed there before must be retracted and quiet.
  // The buffer may be empty: zero-length packets still complete. An error (no memory can be registered) leaves the slot
  // retracted.
  virtual Result<Aim> expose(core::SlotIndex slot, core::Generation generation, std::span<std::byte> buffer) = 0;
  virtual void retract(core::SlotIndex slot) = 0;
  // Fills `out` with completions of packets whose payload is placed and visible to this thread; returns how many.
  // Needs room for at least kPollBatch; 0 means nothing is waiting. Bytes beyond a packet's length are untouched.
  static constexpr std::size_t kPollBatch = 512;
  virtual std::size_t poll(core::ChannelIndex channel, std::span<core::Completion> out, TimePoint now) = 0;

  // Sender. Takes packets from the front of `packets`, returns how many (0: queue full, try after writable_fd or
  // next_event). A packet once taken is the endpoint's to deliver or lose.
  virtual std::size_t write(std::span<const Packet> packets, TimePoint now) = 0;
  // How many of the packets taken so far have finished with their local bytes; meaningful without copies_on_write.
  [[nodiscard]] virtual std::uint64_t writes_finished() const = 0;

  // Control path: one unreliable datagram. False when it could not be queued (the caller treats it as lost).
  virtual bool send_control(std::span<const std::byte> datagram, TimePoint now) = 0;
  // The next waiting control datagram, copied into `into` (at least max_control bytes); its size, or nothing.
  virtual std::optional<std::size_t> receive_control(std::span<std::byte> into, TimePoint now) = 0;

  // Moves on whatever is due by `now` (an emulated link's queue); called on every drive of the QP.
  virtual void advance(TimePoint now) = 0;
  // Sleeping. A descriptor that is readable when poll(channel) has something (-1: none), one for control datagrams,
  // and the time at which advance() or poll() will have something to do by itself.
  [[nodiscard]] virtual int channel_fd(core::ChannelIndex channel) const = 0;
  [[nodiscard]] virtual int control_fd() const = 0;
  [[nodiscard]] virtual TimePoint next_event() const = 0;
};

// A door to one kind of network: makes endpoints. Lives longer than they do.
class Device {
 public:
  virtual ~Device() = default;
  [[nodiscard]] virtual std::string name() const = 0;
  // The largest payload (multiple of 8) that a packet can carry unfragmented towards `remote` ("" when unknown).
  [[nodiscard]] virtual Result<std::uint16_t> max_payload(const std::string& remote) const = 0;
  // Memory that packets are sent from or land in. Transports that read it with the CPU need no registration.
  virtual Result<MemoryKey> register_memory(std::span<std::byte> /*region*/) { return MemoryKey(); }
  virtual void deregister_memory(MemoryKey /*key*/) {}
  // InvalidArgument for options beyond what the transport can do; System when it cannot be had.
  virtual Result<std::unique_ptr<Endpoint>> create_endpoint(const EndpointOptions& options) = 0;
};

}  // namespace sdr::transport

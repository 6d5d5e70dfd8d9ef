// SendQueue: posted sends in order, and the packets they become (paper section 3.1, "packetisation").
//
// Model: a send is a message number and, while it is open, any number of extents (first packet, bytes). Extents wait in
// one ring in the order given and are cut into packets only when pace, window and transport take them, in batches on
// the stack. Packets go round-robin over the channels, in bursts as long as the transport likes them.
//
// Zero-length packets at the end of an extent carry two things: the end of a message whose last chunk is not full, and
// those fragments of a user immediate that none of the message's packets carried (it has too few, or a stream left some
// out). They are offsets past the last packet, which the receiver knows to carry no data.
//
// Threads: the thread that drives the QueuePair. Bounded: sends by the slots, extents by the ring (Retry when full).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/immediate.hpp"
#include "core/scratch.hpp"
#include "sdk/clear_to_send.hpp"
#include "sdk/landing_window.hpp"
#include "sdk/offload.hpp"
#include "sdk/pacer.hpp"
#include "sdr/queue_pair.hpp"
#include "transport/transport.hpp"

namespace sdr::sdk {

struct SendGeometry {
  core::ImmediateLayout layout;
  std::uint32_t mtu = 0;
  std::uint32_t packets_per_chunk = 1;
  std::uint32_t slots = 0;
  std::uint8_t generations = 0;
  std::uint8_t channels = 1;
};

class SendQueue {
 public:
  // Packets that pump() hands over at once: several of a transport's bursts, and whole ones, since what is left over of
  // one would be a system call by itself.
  static std::uint64_t packets_at_once(std::uint64_t burst) { return burst < kBatch ? kBatch / burst * burst : kBatch; }

  // With an engine that sends, the engine cuts extents into packets.
  explicit SendQueue(const SendGeometry& geometry, OffloadEngine* engine = nullptr);

  // Takes the next message number. `grant` is its announcement.
  Result<SendHandle> start(std::optional<std::uint32_t> user_immediate, const Announcement& grant,
                           const transport::Endpoint& endpoint);
  // Queues bytes from packet `first` on; `end_marker` adds a zero-length packet behind them where the last chunk would
  // otherwise not complete, and the slot has an offset left.
  Result<void> extend(SendHandle handle, std::uint32_t first, std::span<const std::byte> data, bool end_marker);
  Result<void> end(SendHandle handle);
  // Whether no immediate can name this packet: its number belongs to the next slot.
  [[nodiscard]] bool is_past_the_slot(std::uint32_t packet) const { return packet >= geometry_.layout.max_packets(); }
  [[nodiscard]] bool finished(SendHandle handle, const transport::Endpoint& endpoint) const;
  // Whether the slot of the next send has been ended and emptied, and its data released.
  [[nodiscard]] bool next_slot_free(const transport::Endpoint& endpoint) const;
  // A one-shot send may take two extents: its data, and the fragments of its immediate that the data cannot carry.
  [[nodiscard]] bool has_room(std::size_t extents = 1) const { return count_ + extents <= extents_.size(); }

  // Injects what pace, window and transport take. True when the transport was full.
  bool pump(transport::Endpoint& endpoint, Pacer& pacer, LandingWindow& window, std::uint64_t overhead_per_packet,
            TimePoint now);

  // No packet goes out once so many have; what waits then does so for nothing but a higher limit.
  void set_limit(std::uint64_t packets) { limit_ = packets; }
  [[nodiscard]] bool limited() const { return packets_sent_ >= limit_; }

  [[nodiscard]] std::uint64_t next_number() const { return next_; }
  [[nodiscard]] std::uint64_t backlog() const { return backlog_; }
  [[nodiscard]] bool empty() const { return count_ == 0; }
  [[nodiscard]] std::uint64_t packets_sent() const { return packets_sent_; }
  [[nodiscard]] std::uint64_t bytes_sent() const { return bytes_sent_; }
  [[nodiscard]] std::uint64_t state_bytes() const {
    return sizeof(*this) + sends_.size() * sizeof(Send) + extents_.size() * sizeof(Extent);
  }

 private:
  static constexpr std::size_t kBatch = 192;

  struct Send {
    std::uint64_t number = 0;
    std::uint64_t last_packet_id = 0;  // writes_finished() that frees the data
    std::uint32_t user_immediate = 0;
    std::uint32_t extents = 0;            // queued and not injected
    std::uint32_t packets_reached = 0;    // past the highest packet ever queued
    std::uint32_t fragments_carried = 0;  // of the user immediate, one bit each, by the packets queued so far
    transport::Aim aim;
    bool has_immediate = false;
    bool open = false;
    bool used = false;
  };
  struct Extent {
    const std::byte* data = nullptr;
    std::uint64_t bytes = 0;
    std::uint64_t number = 0;
    std::uint32_t next_packet = 0;  // offset of the next packet to inject
    std::uint32_t trailing = 0;     // zero-length packets after the data
  };

  Send* find(SendHandle handle);
  [[nodiscard]] const Send* find(SendHandle handle) const;
  Result<void> push(Send& send, std::uint32_t first, std::span<const std::byte> data, std::uint32_t trailing);
  void note_fragments(Send& send, std::uint32_t first, std::uint32_t packets) const;
  // How many zero-length packets behind the last one bring the fragments that are still missing.
  [[nodiscard]] std::uint32_t missing_tail(const Send& send) const;
  // Whether the transport has finished with the bytes of all packets injected for `send`.
  static bool released(const Send& send, const transport::Endpoint& endpoint);
  // Cuts packets off the extents at the front of the ring, as far as `paced` and `window` bytes go, without taking
  // them.
  std::size_t cut(std::span<transport::Packet> batch, std::uint64_t paced, std::uint64_t window,
                  std::uint64_t overhead) const;
  // The same, of packets that the engine has made so far.
  std::size_t fetch(std::span<transport::Packet> batch, std::uint64_t paced, std::uint64_t window,
                    std::uint64_t overhead);
  void submit();
  // Packets at the front of what was cut have gone; their payload.
  std::uint64_t take(std::span<const transport::Packet> packets);
  // Bursts go over the channels by turns; each hand-over begins a new one.
  [[nodiscard]] std::uint8_t channel_after(std::uint8_t channel) const {
    return channel + 1 == geometry_.channels ? 0 : static_cast<std::uint8_t>(channel + 1);
  }
  [[nodiscard]] core::SlotIndex slot_of(const Extent& extent) const;
  [[nodiscard]] core::Generation generation_of(const Extent& extent) const;

  SendGeometry geometry_;
  OffloadEngine* engine_;
  std::size_t submitted_ = 0;    // of the extents that wait, the ones that the engine has
  std::vector<Send> sends_;      // by number modulo slots
  std::vector<Extent> extents_;  // ring
  std::size_t head_ = 0;
  std::size_t count_ = 0;
  std::uint64_t next_ = 0;
  std::uint64_t backlog_ = 0;
  std::uint64_t packets_sent_ = 0;
  std::uint64_t bytes_sent_ = 0;
  std::uint64_t burst_ = 1;
  std::uint8_t next_channel_ = 0;
  std::uint64_t limit_ = UINT64_MAX;
};

}  // namespace sdr::sdk

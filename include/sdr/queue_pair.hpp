// QueuePair: messages of packets over an unreliable transport, with partial completion (paper sections 2 and 3).
//
// Model: the n-th send fills the n-th posted receive. The receiver polls a bitmap with a bit a chunk, over its own
// buffer, while the message is arriving; what to do about the chunks that are missing is the caller's affair. A
// reliability layer (sdr/connection.hpp is ours) is built from this class and its control datagrams alone.
//
// Time: nothing here reads a clock. Every call that needs the time takes it; progress(now) does what is due and says
// when it wants to be called next.
//
// Threads: one thread at a time calls into a QueuePair, except poll_channel(c), which may run beside everything else
// on one thread a channel, and the bitmap, which anybody may read. Handles are values; a handle that outlived its
// message answers with ErrorCode::Closed.
//
// Source: paper section 3; docs/wire-format.md for what goes over the wire.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sdr/device.hpp"
#include "sdr/result.hpp"
#include "sdr/units.hpp"

namespace sdr {

namespace sdk {
class Offload;
}
using OffloadPtr = std::shared_ptr<sdk::Offload>;  // sdr/offload.hpp opens one

struct QueuePairOptions {
  Bytes mtu{0};        // payload of a full packet: a multiple of 8 from 64 on; 0: what the path carries
  std::string remote;  // address the path leads to, for mtu 0; may be empty
  std::uint32_t packets_per_chunk = 1;  // a power of two
  Bytes max_message = 64_MiB;           // the largest message, rounded down to whole chunks
  std::uint32_t slots = 64;             // messages in flight, a power of two
  std::uint8_t channels = 1;
  std::uint8_t generations = 8;       // a packet up to generations - 1 reuses of its slot late is told apart
  std::uint8_t message_id_bits = 10;  // the split of the immediate; the three add up to 32
  std::uint8_t packet_offset_bits = 18;
  std::uint8_t user_bits = 4;        // 0, 1, 2, 4 or 8
  Bandwidth rate{};                  // sending pace; zero: as fast as the transport takes it
  bool rate_counts_overhead = true;  // whether `rate` is of whole packets on the wire, or of payload alone
  Duration initial_rtt = std::chrono::milliseconds(10);  // until set_rtt(): how often an unanswered CTS is repeated
  OffloadPtr offload;                                    // sdr/offload.hpp; null: every packet is this process's work
  bool ecn = false;                                      // packets say that ECN marks are heeded
  std::uint64_t token = 0;                               // random, from the caller: packets without it are dropped
};

// What was agreed and derived when the QueuePair was made.
struct QueuePairGeometry {
  std::uint32_t mtu = 0;
  std::uint32_t packets_per_chunk = 0;
  std::uint32_t chunk_bytes = 0;
  std::uint64_t max_message = 0;
  std::uint32_t slots = 0;
  std::uint8_t channels = 0;
  std::uint8_t generations = 0;
  std::uint16_t packet_overhead = 0;  // bytes on the wire beside the payload
  std::uint32_t injection_bytes = 0;  // payload that inject() hands to the transport at once, in whole bursts of it
  std::uint64_t state_bytes = 0;      // of this QueuePair, bitmaps not counted
  std::uint64_t bitmap_bytes = 0;     // reserved for bitmaps; touched only as far as messages reach
};

struct QueuePairCounters {
  std::uint64_t packets_sent = 0;
  std::uint64_t payload_bytes_sent = 0;
  std::uint64_t packets_received = 0;  // set a bit
  std::uint64_t duplicate_packets = 0;
  std::uint64_t late_packets = 0;  // of an earlier use of their slot; dropped
  std::uint64_t out_of_range_packets = 0;
  std::uint64_t rejected_packets = 0;   // wrong token, malformed
  std::uint64_t host_drops = 0;         // by this host, for want of socket buffer
  std::uint64_t link_drops = 0;         // by an emulated or simulated link on the way out
  std::uint64_t peer_drops = 0;         // on a local path: for which the peer's socket had no room, by its word; about
  std::uint64_t controls_received = 0;  // well-formed ones, of all layers
  std::uint64_t malformed_controls = 0;
  std::uint64_t send_calls = 0;  // system calls
  std::uint64_t receive_calls = 0;
  std::uint64_t congestion_marks = 0;  // packets that came in marked (ECN)
};

// A posted receive or send, by its number in order of posting.
struct RecvHandle {
  std::uint64_t number = 0;
};
struct SendHandle {
  std::uint64_t number = 0;
};

// What the receiver has announced for a message (in its CTS).
struct Grant {
  std::uint64_t max_length = 0;
  std::uint64_t tag = 0;  // as given to post_receive(): free for the layer above
};

// The reader's side of a posted receive: a bit a chunk, least significant bit first. Bits are set with release order;
// load with acquire and the chunk's bytes are there. Valid until complete().
using ChunkBitmap = std::span<const std::atomic<std::uint64_t>>;

class QueuePair {
 public:
  // Errors: InvalidArgument names the option, its value and the limit; System when the device cannot provide it.
  static Result<std::unique_ptr<QueuePair>> create(DevicePtr device, const QueuePairOptions& options);
  ~QueuePair();
  QueuePair(const QueuePair&) = delete;
  QueuePair& operator=(const QueuePair&) = delete;

  [[nodiscard]] const QueuePairGeometry& geometry() const;
  [[nodiscard]] QueuePairCounters counters() const;
  [[nodiscard]] std::string peer_name() const;
  // Why the offload device was left, if it was: which device, which process, what happened to it. Nothing is lost by
  // it.
  [[nodiscard]] std::optional<Error> offload_failure() const;

  // The application carries info() to the peer's connect(). Mismatch names the field and both values.
  [[nodiscard]] std::vector<std::byte> info() const;
  Result<void> connect(std::span<const std::byte> remote_info);

  // --- receive ---
  // Retry: no free slot. InvalidArgument: larger than max_message. The buffer must live until complete().
  Result<RecvHandle> post_receive(std::span<std::byte> buffer, std::uint64_t tag = 0);
  // A chunk that is there may be read; write to it only after complete(): a packet that comes twice is placed twice,
  // the same bytes, as by a NIC.
  [[nodiscard]] Result<ChunkBitmap> chunk_bitmap(RecvHandle handle) const;
  // The packets of one chunk that have arrived, from its first packet on (bit 0), up to 64 of them from `from` on.
  // Packets past the end of the posted buffer, or of a message known to be shorter, count as arrived.
  [[nodiscard]] Result<std::uint64_t> chunk_packets(RecvHandle handle, std::uint32_t chunk,
                                                    std::uint32_t from = 0) const;
  // Retry until all fragments have arrived.
  [[nodiscard]] Result<std::uint32_t> user_immediate(RecvHandle handle) const;
  // True when at least one packet of the message has arrived.
  [[nodiscard]] bool touched(RecvHandle handle) const;
  // Tells the QueuePair how long the message really is, so that its short last chunk can complete although the packet
  // that marks the end was lost.
  Result<void> set_length(RecvHandle handle, Bytes length);
  // Ends the receive, chunks missing or not. When it returns no packet touches buffer or bitmap any more.
  Result<void> complete(RecvHandle handle);

  // --- send ---
  // Retry: no CTS yet, or no room. InvalidArgument: longer than the receive it would fill. `data` must live until
  // sent() is true. The bytes land from `first_chunk` of the receive on.
  Result<SendHandle> post_send(std::span<const std::byte> data, std::optional<std::uint32_t> user_immediate,
                               std::uint32_t first_chunk = 0);
  // A streaming send stays open: extents go to any chunk, in any order, more than once.
  Result<SendHandle> start_stream(std::optional<std::uint32_t> user_immediate);
  Result<void> continue_stream(SendHandle handle, std::uint32_t chunk, std::span<const std::byte> data);
  // Ends it: sends what is left of the user immediate. Nothing more can be sent into this message.
  Result<void> end_stream(SendHandle handle);
  // True when every packet has been injected and the data may be reused.
  [[nodiscard]] bool sent(SendHandle handle) const;

  // For layers above: packets [first, first + n) of an open stream, where `data` holds them (only the last of the
  // message may be short). No end marker is added unless `ends_message`.
  Result<void> send_packets(SendHandle handle, std::uint32_t first_packet, std::span<const std::byte> data,
                            bool ends_message);
  // What the next start_stream()/post_send() would fill, if its CTS is here.
  [[nodiscard]] std::optional<Grant> next_grant() const;
  // Asks the peer for CTS at the pace of the RTT as long as none is here.
  void want_grant();
  // Payload bytes accepted and not yet injected.
  [[nodiscard]] std::uint64_t backlog() const;

  // --- control path: unreliable datagrams for the layer above ---
  [[nodiscard]] std::size_t max_control() const;
  bool send_control(std::span<const std::byte> datagram, TimePoint now);
  // The next datagram that had come by the last progress(); the span is valid until the next call. Fetch them after
  // each progress(): the next one drops the datagram that it finds unfetched.
  std::optional<std::span<const std::byte>> receive_control();

  // --- driving ---
  // Polls all channels that no worker polls, handles control datagrams and timers, injects what pace and window allow.
  // Returns when it wants to be called again (at once if <= now), kNever if only a packet can change something.
  TimePoint progress(TimePoint now);
  // Injects what pace and window allow, nothing else; same return value, for senders only.
  TimePoint inject(TimePoint now);
  // When progress() wants to be called by what has been posted since: for layers that post after it.
  [[nodiscard]] TimePoint next_timeout() const;
  // One batch of one channel; returns how many packets it had. For worker threads, after own_channels(false).
  std::size_t poll_channel(std::uint8_t channel, TimePoint now);
  // Whether progress() has to be called soon after a poll_channel() that brought packets: on a local path the sender
  // waits for the report of them, and a device that takes them (QueuePairOptions::offload) is looked after there. Does
  // not change once connected; any thread.
  [[nodiscard]] bool wants_progress_after_poll() const;
  void own_channels(bool owned_by_progress);
  // Descriptors that become readable when there is something to do.
  [[nodiscard]] int control_fd() const;
  [[nodiscard]] int channel_fd(std::uint8_t channel) const;
  void set_rtt(Duration rtt);
  void set_rate(Bandwidth rate);
  [[nodiscard]] Bandwidth rate() const;
  // Counts bytes on the wire that went otherwise (control datagrams, say) against the rate.
  void charge(Bytes bytes);
  // No packet is injected once packets_sent has come to `packets`: a window, in the words of the layer above.
  void set_send_limit(std::uint64_t packets);
  // Whether the last progress() left nothing waiting in this end's data sockets. Control overtakes what waits there: of
  // what was sent before a datagram, only then all has been looked for.
  [[nodiscard]] bool drained() const;
  // True when both ends are on this machine: no --rate is needed there.
  [[nodiscard]] bool local_path() const;
  // False on a simulated network that counts payload bytes and does not move them: buffers are never touched.
  [[nodiscard]] bool carries_payload() const;

 private:
  class Impl;
  explicit QueuePair(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace sdr

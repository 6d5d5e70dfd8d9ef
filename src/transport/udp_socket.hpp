// UdpSocket: one non-blocking UDP socket, set up as the UDP transport wants it.
//
// Datagrams are never fragmented, drops for want of buffer space are reported, buffers are asked to be 4 MiB (out)
// and 64 MiB (in).
// Path-MTU policy is PROBE (do not fragment, ignore what ICMP claims): the payload is fixed for the life of a
// connection, so an ICMP message, true or forged, could only stop the sender; a path that has become too narrow loses
// the packets either way and shows as an unreachable peer (as in RFC 9000 section 14.2.1).
//
// Threads: sends from one thread and receives from one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "sdr/result.hpp"
#include "transport/udp_address.hpp"

namespace sdr::transport {

// Equal datagrams (the last may be shorter) that lie one after the other in `bytes`.
struct SegmentBatch {
  std::span<std::byte> bytes;
  std::size_t segment = 0;  // size of each
  std::size_t count = 0;
};

class UdpSocket {
 public:
  // What one UDP_SEGMENT call may carry: the kernel's oldest limit on segments, and an IPv4 datagram's on bytes.
  static constexpr std::size_t kMaxSegments = 64;
  static constexpr std::size_t kMaxBatchBytes = 65507;

  struct Offload {
    bool segmentation = true;  // UDP_SEGMENT, where the kernel has it
    bool coalescing = true;    // UDP_GRO, where the kernel has it
    bool ecn = false;          // send as ECN-capable, and count the marks of what comes in
  };

  UdpSocket() = default;
  UdpSocket(UdpSocket&& other) noexcept { *this = std::move(other); }
  UdpSocket& operator=(UdpSocket&& other) noexcept {
    std::swap(fd_, other.fd_);
    std::swap(offload_, other.offload_);
    std::swap(runs_, other.runs_);
    return *this;
  }
  ~UdpSocket();

  // Bound to `local`; System error that names the port when that is taken.
  static Result<UdpSocket> open(const SocketAddress& local, Offload offload);
  Result<void> connect(const SocketAddress& peer);

  [[nodiscard]] int fd() const { return fd_; }
  [[nodiscard]] Offload offload() const { return offload_; }
  [[nodiscard]] SocketAddress local() const;
  // Of the path to the connected peer, IP header included.
  [[nodiscard]] Result<std::uint32_t> path_mtu() const;
  // Bytes that the kernel lets wait here, its own bookkeeping of each datagram included.
  [[nodiscard]] std::uint32_t receive_buffer() const;

  struct Sent {
    std::size_t taken = 0;  // from the front of the batch: do not offer these again
    std::size_t lost = 0;   // of those, refused by the host or the path
    std::size_t calls = 0;
  };
  Sent send(const SegmentBatch& batch);
  // Several batches by one call, which measures faster than one each (docs/decisions/0006-udp-data-path.md). At most
  // kMaxBatches, in order: those behind one that found the queue full are not sent.
  static constexpr std::size_t kMaxBatches = 4;
  Sent send(std::span<const SegmentBatch> batches);
  // One datagram in two parts. False when the kernel refused it.
  bool send(std::span<const std::byte> header, std::span<const std::byte> body);

  // Datagrams that receive() can bring at most: what the kernel coalesces, with room to spare, kMaxBatches times.
  static constexpr std::size_t kMaxCoalesced = 128;
  static constexpr std::size_t kMaxReceived = kMaxCoalesced * kMaxBatches;
  // Room for one batch of datagrams. One that is longer than any can be still fits, and is refused by the kernel.
  static constexpr std::size_t kBatchRoom = 65536 + 64;
  struct Received {
    std::size_t count = 0;      // 0: nothing is waiting, or an error of the path was reported
    std::size_t overflow = 0;   // datagrams beyond kMaxCoalesced of one batch, lost
    std::size_t marked = 0;     // of them, "congestion experienced" on the way (ECN)
    std::uint32_t dropped = 0;  // at this socket for want of buffer since it was opened; 0 when not told
    // Not worth another look at once: nothing is left, or what comes comes one by one, and looking for more would be a
    // system call a datagram more.
    bool drained = false;
  };
  // One system call. Fills `datagrams` with parts of `buffer`, which has kBatchRoom for each kMaxCoalesced of them.
  // Datagrams beyond `largest` bytes come with more than `largest` bytes, but perhaps cut off.
  Received receive(std::span<std::byte> buffer, std::size_t largest, std::span<std::span<const std::byte>> datagrams);
  // One datagram, its first bytes into `header`, the rest into `body`; its size, or nothing when none is waiting.
  // A size beyond both means that it was cut off.
  std::optional<std::size_t> receive(std::span<std::byte> header, std::span<std::byte> body);

 private:
  Sent send_one(const SegmentBatch& batch);
  Sent send_segmented(const SegmentBatch& batch);
  Sent send_each(const SegmentBatch& batch);
  Received receive_coalesced(std::span<std::byte> buffer, std::span<std::span<const std::byte>> datagrams);
  Received receive_each(std::span<std::byte> buffer, std::size_t largest,
                        std::span<std::span<const std::byte>> datagrams);

  int fd_ = -1;
  Offload offload_;
  bool runs_ = false;  // the last receive_coalesced() brought more than one datagram
};

}  // namespace sdr::transport

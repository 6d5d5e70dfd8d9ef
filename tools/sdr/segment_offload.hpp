// Segmentation offload as a TUN device speaks it: what the kernel hands over in one piece cut into the packets that a
// wire would carry, and packets that arrive together put into one piece again.
//
// A piece is a struct virtio_net_hdr and one IP packet longer than the MTU: TCP over IPv4 or IPv6, or UDP
// (UDP_SEGMENT). cut() makes packets of it as the kernel's own software segmentation does; a Train gathers packets that
// are neighbours in one flow, as its receive offload does. In between each packet has its own fate. Checksums of the
// layer above IP are not computed: a packet says where one is to be filled in (struct PartialChecksum), and whoever
// receives it in this machine's kernel does without, as for packets that never leave a machine.
//
// Plain bytes, no I/O. Source: virtio 1.2, 5.1.6 (the header); Documentation/networking/segmentation-offloads of Linux;
// RFC 9293 (TCP), RFC 768 (UDP).
#pragma once

#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace sdr::cli {

// struct virtio_net_hdr, whose own header is not for C++ (a member is named `class`). In the machine's byte order.
struct VirtioHeader {
  static constexpr std::uint8_t kNeedsChecksum = 1;
  static constexpr std::uint8_t kWhole = 0;
  static constexpr std::uint8_t kTcpOverIpv4 = 1;
  static constexpr std::uint8_t kTcpOverIpv6 = 4;
  static constexpr std::uint8_t kUdp = 5;
  static constexpr std::uint8_t kWithCwr = 0x80;  // beside one of TCP's

  std::uint8_t flags = 0;
  std::uint8_t segments = kWhole;  // what the piece is cut into
  std::uint16_t headers = 0;       // bytes, IP's and those above
  std::uint16_t segment = 0;       // payload of each packet but the last
  std::uint16_t checksum_start = 0;
  std::uint16_t checksum_offset = 0;
};
static_assert(sizeof(VirtioHeader) == 10);

// Where the checksum of a packet is yet to be computed: from `start` on, into `start` + `offset`. Zeros: nowhere.
struct PartialChecksum {
  std::uint16_t start = 0;
  std::uint16_t offset = 0;
  [[nodiscard]] bool needed() const { return start != 0; }
};

// Cuts pieces into packets, one next() after the other.
class SegmentCutter {
 public:
  // `piece` is one IP packet, as long as next() is called.
  SegmentCutter(const VirtioHeader& header, std::span<const std::byte> piece);

  // The next packet, written to the front of `into`; its length, 0 at the end, or when `into` is too small for it or
  // the piece makes no sense.
  std::size_t next(std::span<std::byte> into);
  [[nodiscard]] PartialChecksum checksum() const { return checksum_; }

 private:
  std::span<const std::byte> piece_;
  PartialChecksum checksum_;
  std::size_t headers_ = 0;  // bytes of IP and what is above it; 0: one packet, as it is
  std::size_t segment_ = 0;  // payload of each but the last
  std::size_t at_ = 0;       // of the payload
  std::uint16_t number_ = 0;
};

// Neighbouring packets of one flow on their way into a TUN device.
class Train {
 public:
  static constexpr std::size_t kMostPackets = 64;

  void clear() { count_ = 0; }
  [[nodiscard]] bool empty() const { return count_ == 0; }
  [[nodiscard]] std::size_t count() const { return count_; }
  // False: it is no neighbour of what is here, which goes first. The bytes must stay until the train has been sent.
  bool add(std::span<const std::byte> packet, PartialChecksum checksum);
  // What to write, in one call.
  [[nodiscard]] std::span<const iovec> parts();

 private:
  static constexpr std::size_t kMostHeaders = 128;

  [[nodiscard]] bool continues(std::span<const std::byte> packet, PartialChecksum checksum) const;
  void write_headers();

  std::array<std::span<const std::byte>, kMostPackets> packets_;
  std::size_t count_ = 0;
  PartialChecksum checksum_;
  std::size_t headers_ = 0;  // 0: of a packet that has no neighbours
  std::size_t segment_ = 0;
  std::size_t bytes_ = 0;  // of payload
  bool closed_ = false;    // by a short packet, or TCP's PSH or FIN
  VirtioHeader virtio_;
  std::array<std::byte, kMostHeaders> combined_;
  std::array<iovec, kMostPackets + 2> parts_;
};

}  // namespace sdr::cli

#include "sdr/segment_offload.hpp"

#include <algorithm>
#include <cstring>
#include <optional>

namespace sdr::cli {
namespace {

constexpr std::uint8_t kTcp = 6;
constexpr std::uint8_t kUdp = 17;
constexpr std::size_t kIpv6Header = 40;
constexpr std::size_t kUdpHeader = 8;
constexpr std::size_t kTcpLeastHeader = 20;
constexpr std::uint16_t kUdpChecksum = 6;
constexpr std::uint16_t kTcpChecksum = 16;
constexpr std::size_t kTcpFlags = 13;
constexpr std::uint8_t kFin = 0x01;
constexpr std::uint8_t kPush = 0x08;
constexpr std::uint8_t kCwr = 0x80;
constexpr std::size_t kMostBytes = 65535;  // of an IP packet

std::uint8_t byte(std::span<const std::byte> bytes, std::size_t at) {
  return std::to_integer<std::uint8_t>(bytes[at]);
}
std::uint16_t load16(std::span<const std::byte> bytes, std::size_t at) {
  return static_cast<std::uint16_t>(byte(bytes, at) << 8 | byte(bytes, at + 1));
}
void store16(std::span<std::byte> bytes, std::size_t at, std::uint32_t value) {
  bytes[at] = static_cast<std::byte>(value >> 8);
  bytes[at + 1] = static_cast<std::byte>(value);
}
std::uint32_t load32(std::span<const std::byte> bytes, std::size_t at) {
  return std::uint32_t{load16(bytes, at)} << 16 | load16(bytes, at + 2);
}
void store32(std::span<std::byte> bytes, std::size_t at, std::uint32_t value) {
  store16(bytes, at, value >> 16);
  store16(bytes, at + 2, value);
}

// RFC 1071: the sum of 16-bit words in ones' complement, not inverted.
std::uint32_t sum_of(std::span<const std::byte> bytes, std::uint32_t sum) {
  for (std::size_t i = 0; i + 1 < bytes.size(); i += 2) sum += load16(bytes, i);
  while (sum >> 16 != 0) sum = (sum & 0xffff) + (sum >> 16);
  return sum;
}

// The headers of a packet: where the one above IP begins, and how long both are.
struct Headers {
  std::uint8_t protocol = 0;
  std::size_t above = 0;
  std::size_t bytes = 0;
  [[nodiscard]] std::uint16_t checksum() const { return protocol == kTcp ? kTcpChecksum : kUdpChecksum; }
};

// Of TCP and UDP right above IP, without IPv6's extensions; nothing for anything else.
std::optional<Headers> headers_of(std::span<const std::byte> packet) {
  Headers found;
  if (packet.size() < 20) return std::nullopt;
  const unsigned version = byte(packet, 0) >> 4;
  if (version == 4) {
    found.above = std::size_t{byte(packet, 0) & 15U} * 4;
    found.protocol = byte(packet, 9);
    if (found.above < 20 || (load16(packet, 6) & 0x3fff) != 0) return std::nullopt;  // a fragment has no header above
  } else if (version == 6 && packet.size() >= kIpv6Header) {
    found.above = kIpv6Header;
    found.protocol = byte(packet, 6);
  } else {
    return std::nullopt;
  }
  if (found.protocol == kUdp) {
    found.bytes = found.above + kUdpHeader;
  } else if (found.protocol == kTcp && packet.size() >= found.above + kTcpLeastHeader) {
    found.bytes = found.above + static_cast<std::size_t>(byte(packet, found.above + 12) >> 4) * 4;
    if (found.bytes < found.above + kTcpLeastHeader) return std::nullopt;
  } else {
    return std::nullopt;
  }
  if (packet.size() < found.bytes) return std::nullopt;
  return found;
}

// Writes the lengths, IP's checksum, and the sum of the pseudo-header that belong to so many bytes of payload.
void fit(std::span<std::byte> packet, const Headers& headers, std::size_t payload) {
  const std::size_t above = headers.bytes - headers.above + payload;
  std::uint32_t sum = headers.protocol + static_cast<std::uint32_t>(above);
  if (byte(packet, 0) >> 4 == 4) {
    store16(packet, 2, static_cast<std::uint32_t>(headers.above + above));
    store16(packet, 10, 0);
    store16(packet, 10, ~sum_of(packet.first(headers.above), 0));
    sum = sum_of(packet.subspan(12, 8), sum);
  } else {
    store16(packet, 4, static_cast<std::uint32_t>(above));
    sum = sum_of(packet.subspan(8, 32), sum);
  }
  if (headers.protocol == kUdp) store16(packet, headers.above + 4, static_cast<std::uint32_t>(above));
  store16(packet, headers.above + headers.checksum(), sum);
}

}  // namespace

SegmentCutter::SegmentCutter(const VirtioHeader& header, std::span<const std::byte> piece) : piece_(piece) {
  if ((header.flags & VirtioHeader::kNeedsChecksum) != 0) checksum_ = {header.checksum_start, header.checksum_offset};
  if ((header.segments & ~VirtioHeader::kWithCwr) == VirtioHeader::kWhole) return;
  const auto headers = headers_of(piece);
  if (!headers || header.segment == 0) {
    piece_ = {};
    return;
  }
  headers_ = headers->bytes;
  segment_ = header.segment;
  checksum_ = {static_cast<std::uint16_t>(headers->above), headers->checksum()};
}

std::size_t SegmentCutter::next(std::span<std::byte> into) {
  if (piece_.empty()) return 0;
  if (headers_ == 0) {
    const std::size_t bytes = piece_.size();
    if (bytes > into.size()) return 0;
    std::memcpy(into.data(), piece_.data(), bytes);
    piece_ = {};
    return bytes;
  }
  const std::size_t left = piece_.size() - headers_ - at_;
  const std::size_t payload = std::min(segment_, left);
  const bool last = payload == left;
  if (payload == 0 || headers_ + payload > into.size()) return 0;
  std::memcpy(into.data(), piece_.data(), headers_);
  std::memcpy(into.data() + headers_, piece_.data() + headers_ + at_, payload);
  const std::span<std::byte> packet = into.first(headers_ + payload);
  const Headers headers = *headers_of(packet);
  if (byte(packet, 0) >> 4 == 4) store16(packet, 4, std::uint32_t{load16(packet, 4)} + number_);
  if (headers.protocol == kTcp) {
    store32(packet, headers.above + 4, load32(packet, headers.above + 4) + static_cast<std::uint32_t>(at_));
    std::uint8_t flags = byte(packet, headers.above + kTcpFlags);
    if (!last) flags = static_cast<std::uint8_t>(flags & ~(kFin | kPush));
    if (number_ != 0) flags = static_cast<std::uint8_t>(flags & ~kCwr);
    packet[headers.above + kTcpFlags] = std::byte{flags};
  }
  fit(packet, headers, payload);
  at_ += payload;
  ++number_;
  if (last) piece_ = {};
  return packet.size();
}

bool Train::add(std::span<const std::byte> packet, PartialChecksum checksum) {
  if (count_ != 0) {
    if (!continues(packet, checksum)) return false;
    const std::size_t payload = packet.size() - headers_;
    const std::uint8_t flags = checksum.offset == kTcpChecksum ? byte(packet, checksum.start + kTcpFlags) : 0;
    closed_ = payload < segment_ || (flags & (kFin | kPush)) != 0;
    packets_[count_++] = packet;
    bytes_ += payload;
    return true;
  }
  packets_[count_++] = packet;
  checksum_ = checksum;
  headers_ = 0;
  closed_ = true;
  const auto headers = headers_of(packet);
  if (!headers || !checksum.needed() || checksum.start != headers->above || checksum.offset != headers->checksum() ||
      headers->bytes > kMostHeaders || packet.size() == headers->bytes) {
    return true;
  }
  headers_ = headers->bytes;
  segment_ = bytes_ = packet.size() - headers_;
  // SYN, RST, URG and what ends a burst have no successors.
  constexpr std::uint8_t kAckOnly = 0x10 | kCwr | 0x40;
  closed_ = headers->protocol == kTcp && (byte(packet, headers->above + kTcpFlags) & ~kAckOnly) != 0;
  return true;
}

bool Train::continues(std::span<const std::byte> packet, PartialChecksum checksum) const {
  if (closed_ || count_ == kMostPackets || checksum.start != checksum_.start || checksum.offset != checksum_.offset)
    return false;
  const std::span<const std::byte> first = packets_[0];
  if (packet.size() <= headers_ || packet.size() > headers_ + segment_ || packet.size() + bytes_ > kMostBytes)
    return false;
  const auto headers = headers_of(packet);
  if (!headers || headers->bytes != headers_) return false;
  // All of the headers but what differs from packet to packet.
  const auto same = [&](std::size_t from, std::size_t to) {
    return std::memcmp(packet.data() + from, first.data() + from, to - from) == 0;
  };
  const std::size_t above = checksum_.start;
  const bool ip =
      byte(packet, 0) >> 4 == 4 ? same(0, 2) && same(6, 10) && same(12, above) : same(0, 4) && same(6, above);
  if (!ip) return false;
  if (checksum.offset == kUdpChecksum) return same(above, above + 4);
  constexpr std::uint8_t kMayEnd = kFin | kPush;
  const std::uint8_t flags = byte(packet, above + kTcpFlags);
  return same(above, above + 4) && same(above + 8, above + kTcpFlags) && same(above + 14, above + kTcpChecksum) &&
         same(above + 18, headers_) &&
         load32(packet, above + 4) == load32(first, above + 4) + static_cast<std::uint32_t>(bytes_) &&
         (flags & ~kMayEnd) == (byte(first, above + kTcpFlags) & ~kCwr);
}

void Train::write_headers() {
  const std::span<std::byte> combined(combined_.data(), headers_);
  std::memcpy(combined.data(), packets_[0].data(), headers_);
  const Headers headers = *headers_of(packets_[0]);
  if (headers.protocol == kTcp) {
    const std::uint8_t flags = static_cast<std::uint8_t>(byte(packets_[0], headers.above + kTcpFlags) |
                                                         byte(packets_[count_ - 1], headers.above + kTcpFlags));
    combined[headers.above + kTcpFlags] = std::byte{flags};
  }
  fit(combined, headers, bytes_);
  virtio_.segments = VirtioHeader::kUdp;
  if (headers.protocol == kTcp) {
    const bool ipv4 = byte(combined, 0) >> 4 == 4;
    const bool cwr = (byte(combined, headers.above + kTcpFlags) & kCwr) != 0;
    virtio_.segments = static_cast<std::uint8_t>((ipv4 ? VirtioHeader::kTcpOverIpv4 : VirtioHeader::kTcpOverIpv6) |
                                                 (cwr ? VirtioHeader::kWithCwr : 0));
  }
  virtio_.headers = static_cast<std::uint16_t>(headers_);
  virtio_.segment = static_cast<std::uint16_t>(segment_);
}

std::span<const iovec> Train::parts() {
  const auto part = [](const void* at, std::size_t bytes) {
    return iovec{.iov_base = const_cast<void*>(at), .iov_len = bytes};
  };
  virtio_ = {};
  if (checksum_.needed()) {
    virtio_.flags = VirtioHeader::kNeedsChecksum;
    virtio_.checksum_start = checksum_.start;
    virtio_.checksum_offset = checksum_.offset;
  }
  std::size_t used = 0;
  parts_[used++] = part(&virtio_, sizeof virtio_);
  if (count_ == 1) {
    parts_[used++] = part(packets_[0].data(), packets_[0].size());
  } else {
    write_headers();
    parts_[used++] = part(combined_.data(), headers_);
    for (const std::span<const std::byte> packet : std::span(packets_).first(count_))
      parts_[used++] = part(packet.data() + headers_, packet.size() - headers_);
  }
  return std::span(parts_).first(used);
}

}  // namespace sdr::cli

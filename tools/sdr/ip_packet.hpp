// What a path must know of the IP packets that it carries: whether they are for the other end, and their ECN bits
// (RFC 3168). IPv4 and IPv6, plain bytes, no I/O.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace sdr::cli {

class IpPacket {
 public:
  // At least a header of its version, or it is none.
  explicit IpPacket(std::span<std::byte> bytes) : bytes_(bytes) {}

  [[nodiscard]] unsigned version() const { return bytes_.size() < 20 ? 0 : at(0) >> 4; }
  [[nodiscard]] bool valid() const { return version() == 4 || (version() == 6 && bytes_.size() >= 40); }

  // What a router would pass on: no multicast or broadcast, nothing of link-local scope (neighbour and multicast
  // listener discovery).
  [[nodiscard]] bool routable() const {
    if (!valid()) return false;
    if (version() == 4) return at(16) < 224;
    return at(24) != 0xff && !link_local(8) && !link_local(24);
  }

  // The sender's end understands ECN: ECT(0), ECT(1), or marked before.
  [[nodiscard]] bool ecn_capable() const { return ecn() != 0; }

  // Congestion experienced. Only of a packet that is ECN-capable.
  void mark() {
    if (version() == 6) {
      set(1, at(1) | 0x30);
      return;
    }
    const unsigned before = word(0);
    set(1, at(1) | 0x03);
    // RFC 1624: the checksum follows the one word that changed.
    unsigned sum = (~word(10) & 0xffffU) + (~before & 0xffffU) + word(0);
    sum = (sum & 0xffffU) + (sum >> 16);
    sum = (sum & 0xffffU) + (sum >> 16);
    const unsigned checksum = ~sum & 0xffffU;
    set(10, checksum >> 8);
    set(11, checksum & 0xffU);
  }

  [[nodiscard]] unsigned ecn() const { return version() == 4 ? at(1) & 3U : (at(1) >> 4) & 3U; }

 private:
  [[nodiscard]] unsigned at(std::size_t i) const { return std::to_integer<unsigned>(bytes_[i]); }
  [[nodiscard]] unsigned word(std::size_t i) const { return at(i) << 8 | at(i + 1); }
  void set(std::size_t i, unsigned value) { bytes_[i] = static_cast<std::byte>(value); }
  [[nodiscard]] bool link_local(std::size_t i) const { return at(i) == 0xfe && (at(i + 1) & 0xc0) == 0x80; }

  std::span<std::byte> bytes_;
};

}  // namespace sdr::cli

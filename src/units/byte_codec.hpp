// ByteWriter and ByteReader: control messages and info blobs, field by field, in network byte order.
//
// Both stop at the end of their span and remember it in ok(): a message is built or parsed straight through and judged
// once at the end. Nothing is read or written outside the span.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace sdr {

class ByteWriter {
 public:
  explicit ByteWriter(std::span<std::byte> into) : into_(into) {}

  void u8(std::uint8_t v) { integer(v, 1); }
  void u16(std::uint16_t v) { integer(v, 2); }
  void u32(std::uint32_t v) { integer(v, 4); }
  void u64(std::uint64_t v) { integer(v, 8); }
  // LEB128: seven bits a byte, least significant first.
  void varint(std::uint64_t v) {
    while (v >= 0x80) {
      u8(static_cast<std::uint8_t>(v | 0x80));
      v >>= 7;
    }
    u8(static_cast<std::uint8_t>(v));
  }
  static constexpr std::size_t varint_bytes(std::uint64_t v) {
    std::size_t bytes = 1;
    for (; v >= 0x80; v >>= 7) ++bytes;
    return bytes;
  }
  void bytes(std::span<const std::byte> data) {
    if (!reserve(data.size())) return;
    if (!data.empty()) std::memcpy(into_.data() + size_, data.data(), data.size());
    size_ += data.size();
  }

  [[nodiscard]] bool ok() const { return ok_; }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] std::size_t room() const { return into_.size() - size_; }
  [[nodiscard]] std::span<const std::byte> written() const { return into_.first(size_); }

 private:
  bool reserve(std::size_t n) {
    ok_ = ok_ && n <= into_.size() - size_;
    return ok_;
  }
  void integer(std::uint64_t v, std::size_t n) {
    if (!reserve(n)) return;
    for (std::size_t i = 0; i < n; ++i) into_[size_ + i] = static_cast<std::byte>(v >> (8 * (n - 1 - i)));
    size_ += n;
  }

  std::span<std::byte> into_;
  std::size_t size_ = 0;
  bool ok_ = true;
};

class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> from) : from_(from) {}

  std::uint8_t u8() { return static_cast<std::uint8_t>(integer(1)); }
  std::uint16_t u16() { return static_cast<std::uint16_t>(integer(2)); }
  std::uint32_t u32() { return static_cast<std::uint32_t>(integer(4)); }
  std::uint64_t u64() { return integer(8); }
  std::uint64_t varint() {
    std::uint64_t v = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const std::uint8_t byte = u8();
      if (shift == 63 && byte > 1) break;
      v |= static_cast<std::uint64_t>(byte & 0x7F) << shift;
      if ((byte & 0x80) == 0) return v;
    }
    ok_ = false;
    return 0;
  }
  std::span<const std::byte> bytes(std::size_t n) {
    if (!reserve(n)) return {};
    at_ += n;
    return from_.subspan(at_ - n, n);
  }

  [[nodiscard]] bool ok() const { return ok_; }
  [[nodiscard]] std::size_t left() const { return from_.size() - at_; }

 private:
  bool reserve(std::size_t n) {
    ok_ = ok_ && n <= from_.size() - at_;
    return ok_;
  }
  std::uint64_t integer(std::size_t n) {
    if (!reserve(n)) return 0;
    std::uint64_t v = 0;
    for (std::size_t i = 0; i < n; ++i) v = v << 8 | static_cast<std::uint64_t>(from_[at_ + i]);
    at_ += n;
    return v;
  }

  std::span<const std::byte> from_;
  std::size_t at_ = 0;
  bool ok_ = true;
};

}  // namespace sdr

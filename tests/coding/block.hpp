// What the coding tests share: shards between canaries at odd addresses, and the codes written down a second time, as
// plainly as possible.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "coding/code.hpp"

namespace sdr::coding::test {

inline std::uint64_t test_seed() {
  if (const char* given = std::getenv("SDR_TEST_SEED")) return std::strtoull(given, nullptr, 0);
  return std::random_device{}();
}

// GF(2^8) with the polynomial x^8 + x^4 + x^3 + x^2 + 1, one bit at a time.
inline std::uint8_t slow_multiply(unsigned a, unsigned b) {
  unsigned product = 0;
  for (; b != 0; b >>= 1) {
    if ((b & 1) != 0) product ^= a;
    a <<= 1;
    if ((a & 0x100) != 0) a ^= 0x11d;
  }
  return static_cast<std::uint8_t>(product);
}

// The same, looked up.
inline std::uint8_t multiply(unsigned a, unsigned b) {
  static const std::vector<std::uint8_t> products = [] {
    std::vector<std::uint8_t> all;
    for (unsigned i = 0; i < 256 * 256; ++i) all.push_back(slow_multiply(i / 256, i % 256));
    return all;
  }();
  return products[a * 256 + b];
}

inline std::uint8_t slow_inverse(unsigned a) {
  for (unsigned b = 1; b < 256; ++b) {
    if (slow_multiply(a, b) == 1) return static_cast<std::uint8_t>(b);
  }
  return 0;
}

inline std::uint8_t reference_coefficient(const CodeShape& shape, unsigned row, unsigned column) {
  if (shape.kind == CodeKind::Xor) return column % shape.m == row ? 1 : 0;
  return slow_inverse((shape.k + row) ^ column);
}

// A buffer at an address that is `offset` off alignment, with random bytes around it. Code that reads across the edge
// computes nonsense, code that writes across it is found out.
class Guarded {
 public:
  static constexpr std::size_t kGuard = 128;

  Guarded(std::size_t size, std::size_t offset, std::mt19937_64& random) : size_(size), at_(kGuard + offset % 64) {
    memory_.resize(at_ + size + kGuard);
    for (auto& byte : memory_) byte = static_cast<std::byte>(random());
    untouched_ = memory_;
  }

  [[nodiscard]] std::byte* data() { return memory_.data() + at_; }
  [[nodiscard]] const std::byte* data() const { return memory_.data() + at_; }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] std::byte byte(std::size_t i) const { return i < size_ ? memory_[at_ + i] : std::byte{}; }
  [[nodiscard]] std::vector<std::byte> content() const { return {data(), data() + size_}; }

  void scribble(std::mt19937_64& random) {
    for (std::size_t i = 0; i < size_; ++i) memory_[at_ + i] = static_cast<std::byte>(random());
  }
  [[nodiscard]] bool canaries_alive() const {
    for (std::size_t i = 0; i < memory_.size(); ++i) {
      if ((i < at_ || i >= at_ + size_) && memory_[i] != untouched_[i]) return false;
    }
    return true;
  }

 private:
  std::size_t size_;
  std::size_t at_;
  std::vector<std::byte> memory_;
  std::vector<std::byte> untouched_;
};

// One block of random data and room for all parity of the shape.
struct Block {
  Block(const CodeShape& code_shape, unsigned data_shards, ShardLength shard_length, std::mt19937_64& random)
      : shape(code_shape), length(shard_length) {
    for (unsigned j = 0; j < data_shards; ++j) {
      data.emplace_back(j + 1 == data_shards ? length.last : length.full, random(), random);
    }
    for (unsigned i = 0; i < shape.m; ++i) parity.emplace_back(length.full, random(), random);
    remember();
  }

  void remember() {
    original.clear();
    for (const auto& shard : data) original.push_back(shard.content());
  }

  std::vector<const std::byte*> data_pointers() const {
    std::vector<const std::byte*> pointers;
    for (const auto& shard : data) pointers.push_back(shard.data());
    return pointers;
  }
  std::vector<std::byte*> writable_data_pointers() {
    std::vector<std::byte*> pointers;
    for (auto& shard : data) pointers.push_back(shard.data());
    return pointers;
  }
  std::vector<std::byte*> parity_pointers() {
    std::vector<std::byte*> pointers;
    for (auto& shard : parity) pointers.push_back(shard.data());
    return pointers;
  }

  void encode(const ErasureCode& code) {
    const auto done = code.encode(data_pointers(), parity_pointers(), length);
    ASSERT_TRUE(done.ok()) << done.error().message;
  }

  // Absent parity is handed in as null, as a caller would.
  Result<void> decode(const ErasureCode& code, const ShardSet& data_present, const ShardSet& parity_present) {
    std::vector<const std::byte*> held;
    for (std::size_t i = 0; i < parity.size(); ++i) held.push_back(parity_present[i] ? parity[i].data() : nullptr);
    return code.decode(writable_data_pointers(), data_present, held, parity_present, length);
  }

  void lose(const ShardSet& data_present, std::mt19937_64& random) {
    for (std::size_t j = 0; j < data.size(); ++j) {
      if (!data_present[j]) data[j].scribble(random);
    }
  }

  void expect_parity_as_reference() const {
    for (unsigned i = 0; i < shape.m; ++i) {
      std::vector<std::byte> expected(length.full);
      for (unsigned j = 0; j < data.size(); ++j) {
        const std::uint8_t coefficient = reference_coefficient(shape, i, j);
        if (coefficient == 0) continue;
        for (std::size_t at = 0; at < data[j].size(); ++at) {
          expected[at] ^= std::byte{multiply(coefficient, std::to_integer<unsigned>(data[j].byte(at)))};
        }
      }
      ASSERT_EQ(parity[i].content(), expected) << "parity " << i;
    }
  }

  void expect_intact() const {
    for (std::size_t j = 0; j < data.size(); ++j) {
      ASSERT_EQ(data[j].content(), original[j]) << "data shard " << j;
      ASSERT_TRUE(data[j].canaries_alive()) << "around data shard " << j;
    }
    for (const auto& shard : parity) ASSERT_TRUE(shard.canaries_alive());
  }

  CodeShape shape;
  ShardLength length;
  std::vector<Guarded> data;
  std::vector<Guarded> parity;
  std::vector<std::vector<std::byte>> original;
};

// Which losses the definition of the code allows.
inline bool reference_can_decode(const CodeShape& shape, const ShardSet& data, const ShardSet& parity,
                                 unsigned shards) {
  if (shape.kind == CodeKind::ReedSolomon) return shards - data.count() <= parity.count();
  for (unsigned group = 0; group < shape.m; ++group) {
    unsigned missing = 0;
    for (unsigned j = group; j < shards; j += shape.m) missing += data[j] ? 0U : 1U;
    if (missing > (parity[group] ? 1U : 0U)) return false;
  }
  return true;
}

inline ErasureCode make_code(const CodeShape& shape) {
  auto code = ErasureCode::create(shape);
  EXPECT_TRUE(code.ok()) << code.error().message;
  return std::move(code).value();
}

}  // namespace sdr::coding::test

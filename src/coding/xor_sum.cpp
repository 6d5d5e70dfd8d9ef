#include "coding/xor_sum.hpp"

#include <array>
#include <cstdint>
#include <cstring>

namespace sdr::coding {
namespace {

// Sixteen bytes at any address, which every x86-64 and ARMv8 has instructions for.
using Vector = std::uint64_t __attribute__((vector_size(16)));

Vector load(const std::byte* from) {
  Vector value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

void store(std::byte* to, Vector value) {
  std::memcpy(to, &value, sizeof value);
}

// Four vectors are kept in registers while the sources go by, so that the destination is written once.
void apply(std::span<const std::byte* const> sources, std::byte* destination, std::size_t bytes, Stores) {
  constexpr std::size_t kVector = sizeof(Vector);
  std::size_t at = 0;
  for (; at + 4 * kVector <= bytes; at += 4 * kVector) {
    Vector a{}, b{}, c{}, d{};
    for (const std::byte* source : sources) {
      a ^= load(source + at);
      b ^= load(source + at + kVector);
      c ^= load(source + at + 2 * kVector);
      d ^= load(source + at + 3 * kVector);
    }
    store(destination + at, a);
    store(destination + at + kVector, b);
    store(destination + at + 2 * kVector, c);
    store(destination + at + 3 * kVector, d);
  }
  for (; at < bytes; ++at) {
    std::byte value{};
    for (const std::byte* source : sources) value ^= source[at];
    destination[at] = value;
  }
}

struct Available {
  std::array<const XorSum*, 3> all{};
  std::size_t count = 0;

  Available() {
    for (const XorSum* one : {xor_sum_avx512(), xor_sum_avx2(), &xor_sum_portable()})
      if (one != nullptr) all[count++] = one;
  }
};

}  // namespace

const XorSum& xor_sum_portable() {
  static constexpr XorSum sum{"portable", apply};
  return sum;
}

std::span<const XorSum* const> xor_sums() {
  static const Available available;
  return {available.all.data(), available.count};
}

}  // namespace sdr::coding

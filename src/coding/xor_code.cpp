#include "coding/xor_code.hpp"

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

// Xor of all sources. ISA-L's xor_gen would do, but wants every buffer aligned to 32 bytes, which a user's is not.
// Four vectors are kept in registers while the sources go by, so that the destination is written once.
void xor_all(std::span<const std::byte* const> sources, std::byte* destination, std::size_t bytes) {
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

}  // namespace

bool XorCode::encode(std::span<const std::byte* const> data, std::span<std::byte* const> parity, ShardLength length,
                     unsigned first_parity) const {
  for_each_strip(length, [&](std::size_t offset, std::size_t bytes, bool beyond_last) {
    const std::size_t shards = beyond_last ? data.size() - 1 : data.size();
    for (std::size_t row = 0; row < parity.size(); ++row) {
      std::array<const std::byte*, kMaxShards> sources{};
      std::size_t count = 0;
      for (std::size_t j = first_parity + row; j < shards; j += m_) sources[count++] = data[j] + offset;
      xor_all({sources.data(), count}, parity[row] + offset, bytes);
    }
  });
  return true;
}

bool XorCode::decode(std::span<std::byte* const> data, const ShardSet& data_present,
                     std::span<const std::byte* const> parity, const ShardSet&, ShardLength length) const {
  const std::size_t last = data.size() - 1;
  for_each_strip(length, [&](std::size_t offset, std::size_t bytes, bool beyond_last) {
    for (std::size_t missing = 0; missing < data.size(); ++missing) {
      if (data_present[missing] || (beyond_last && missing == last)) continue;
      const std::size_t group = missing % m_;
      std::array<const std::byte*, kMaxShards> sources{};
      std::size_t count = 0;
      sources[count++] = parity[group] + offset;
      for (std::size_t j = group; j < data.size(); j += m_) {
        if (j != missing && !(beyond_last && j == last)) sources[count++] = data[j] + offset;
      }
      xor_all({sources.data(), count}, data[missing] + offset, bytes);
    }
  });
  return true;
}

ShardSet XorCode::needed(const ShardSet& missing, const ShardSet& parity_present) const {
  ShardSet wanted = missing;
  for (std::size_t group = 0; group < m_; ++group) {
    if (!parity_present[group]) continue;
    for (std::size_t j = group; j < kMaxShards; j += m_) {
      if (!missing[j]) continue;
      wanted.reset(j);  // the parity restores this one, once the others of the group are here
      break;
    }
  }
  return wanted;
}

}  // namespace sdr::coding

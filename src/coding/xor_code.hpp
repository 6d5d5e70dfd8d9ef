// XorCode: parity i is the xor of the data shards j with j mod m == i. The arithmetic behind ErasureCode, which has
// checked the arguments.
#pragma once

#include <cstddef>
#include <span>

#include "coding/shards.hpp"
#include "coding/xor_sum.hpp"

namespace sdr::coding {

class XorCode {
 public:
  XorCode(unsigned m, const XorSum& sum) : m_(m), sum_(sum) {}

  bool encode(std::span<const std::byte* const> data, std::span<std::byte* const> parity, ShardLength length,
              unsigned first_parity) const;
  // Only for blocks that can be decoded.
  bool decode(std::span<std::byte* const> data, const ShardSet& data_present, std::span<const std::byte* const> parity,
              const ShardSet& parity_present, ShardLength length) const;
  // A smallest set of missing data shards that must arrive: all but one of a group whose parity is held, else all.
  [[nodiscard]] ShardSet needed(const ShardSet& missing, const ShardSet& parity_present) const;

 private:
  // The data shards first, first + m, ..., but for one, and perhaps the parity.
  struct Group {
    std::size_t first;
    std::size_t without;
    const std::byte* parity;
  };
  void sum_up(const Group& group, std::span<const std::byte* const> data, std::byte* into, ShardLength length,
              Stores stores) const;

  unsigned m_;
  const XorSum& sum_;
};

}  // namespace sdr::coding

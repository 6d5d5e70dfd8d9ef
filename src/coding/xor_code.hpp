// XorCode: parity i is the xor of the data shards j with j mod m == i. The arithmetic behind ErasureCode, which has
// checked the arguments.
#pragma once

#include <cstddef>
#include <span>

#include "coding/shards.hpp"

namespace sdr::coding {

class XorCode {
 public:
  explicit XorCode(unsigned m) : m_(m) {}

  bool encode(std::span<const std::byte* const> data, std::span<std::byte* const> parity, ShardLength length,
              unsigned first_parity) const;
  // Only for blocks that can be decoded.
  bool decode(std::span<std::byte* const> data, const ShardSet& data_present, std::span<const std::byte* const> parity,
              const ShardSet& parity_present, ShardLength length) const;
  // A smallest set of missing data shards that must arrive: all but one of a group whose parity is held, else all.
  [[nodiscard]] ShardSet needed(const ShardSet& missing, const ShardSet& parity_present) const;

 private:
  unsigned m_;
};

}  // namespace sdr::coding

// Rival: the same parity by ISA-L, called on whole shards as its manual has it. What our own kernels are measured
// against, and nothing else.
//
// Immutable; any number of threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "coding/code.hpp"

namespace sdr::coding {

class Rival {
 public:
  // Of a shape that ErasureCode takes.
  explicit Rival(const CodeShape& shape);

  // All k and m shards, on addresses that are multiples of 32, as are `bytes`.
  void encode(std::span<const std::byte* const> data, std::span<std::byte* const> parity, std::size_t bytes) const;

 private:
  CodeShape shape_;
  std::vector<std::uint8_t> tables_;
};

}  // namespace sdr::coding

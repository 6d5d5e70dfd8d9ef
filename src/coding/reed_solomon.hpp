// ReedSolomon: the arithmetic behind ErasureCode, which has checked the arguments.
//
// Decoding never inverts the large matrix. With E the missing data shards (e of them) and R as many parity rows held,
//   data_E = inverse(C[R][E]) * (parity_R + C[R][present] * data_present),
// so only e x e elements are inverted, the two products are folded into one matrix of e rows, and one pass over what is
// there yields what is missing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "coding/galois_product.hpp"
#include "coding/shards.hpp"

namespace sdr::coding {

class ReedSolomon {
 public:
  ReedSolomon(unsigned k, unsigned m, const GaloisProduct& product);

  // False: no memory for this thread's scratch, nothing was written.
  bool encode(std::span<const std::byte* const> data, std::span<std::byte* const> parity, ShardLength length,
              unsigned first_parity) const;
  // Only for blocks that can be decoded.
  bool decode(std::span<std::byte* const> data, const ShardSet& data_present, std::span<const std::byte* const> parity,
              const ShardSet& parity_present, ShardLength length) const;

 private:
  [[nodiscard]] std::uint8_t coefficient(std::size_t row, std::size_t column) const {
    return matrix_[row * k_ + column];
  }

  // How far the shards are walked at once, for so many outputs.
  [[nodiscard]] std::size_t strip_for(std::size_t rows, ShardLength length) const {
    return rows <= product_.rows_at_once ? length.full : kStrip;
  }

  unsigned k_;
  const GaloisProduct& product_;
  std::vector<std::uint8_t> matrix_;  // m rows of k: the Cauchy matrix
  std::vector<std::uint8_t> tables_;  // of all of it, for blocks of k
};

}  // namespace sdr::coding

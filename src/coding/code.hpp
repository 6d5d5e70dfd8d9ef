// ErasureCode: parity shards from data shards, and lost data shards back from what arrived. Knows no protocol: buffers
// in, buffers out. The reliability floor maps chunks to shards.
//
// Model: a block of up to k data shards and up to m parity shards, all `length.full` bytes, but for the last data
// shard, which may be shorter ("the tail"): it counts as padded with zeros, and is neither read nor written past its
// end. A block may have fewer than k data shards: it is coded as if the others were all zeros, at no cost for them.
// - Reed-Solomon: parity i = sum over j of C[i][j] * data j in GF(2^8), polynomial 0x11d, with the Cauchy matrix
//   C[i][j] = 1 / ((k + i) xor j) (ISA-L's gf_gen_cauchy1_matrix). Any d shards of d data and their parity suffice.
//   That holds for every d <= k: to restore e data shards from e parities, the e x e submatrix of their columns and
//   rows must be invertible; a submatrix of a Cauchy matrix is one, and its determinant is a quotient of differences
//   of distinct elements, never 0. Dropping columns that a short block lacks leaves another Cauchy matrix. Row i does
//   not depend on m: a code with more parity continues one with less.
// - XOR: parity i = xor of the data shards j with j mod m == i. One loss a group is restored.
//
// Threads: immutable after create(), any number of threads at once. Scratch memory is per thread and grows to what the
// largest call needs: no allocation after the first calls. decode() writes the missing data shards and nothing else;
// when it refuses, it has written nothing. Data, parity and missing shards must not overlap.
// Source: paper section 4.1.2; what is written down about Cauchy matrices: Bloemer et al., ICSI TR-95-048.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "coding/galois_product.hpp"
#include "coding/shards.hpp"
#include "coding/xor_sum.hpp"
#include "sdr/result.hpp"

namespace sdr::coding {

class ReedSolomon;
class XorCode;

// What computes: the fastest that this processor has, unless a test or a benchmark chooses.
struct CodeKernels {
  const GaloisProduct* galois = &galois_product();
  const XorSum* sum = &xor_sum();
};

enum class CodeKind { Xor, ReedSolomon };

// Valid shapes: k >= 1, m >= 1, k + m <= 255, and m <= k for XOR (a parity of no data protects nothing).
struct CodeShape {
  CodeKind kind = CodeKind::ReedSolomon;
  unsigned k = 32;
  unsigned m = 8;

  friend bool operator==(const CodeShape&, const CodeShape&) = default;
};

// What a block that cannot be decoded still lacks.
struct Needed {
  unsigned count = 0;  // how many missing data shards must arrive until the parity held restores the others
  ShardSet shards;     // a smallest choice of them
  // Reed-Solomon: any `count` of the missing data shards, or of parity shards not held, do as well. XOR: only these,
  // or others of the same groups.
  bool any = false;
};

class ErasureCode {
 public:
  // InvalidArgument when the shape is not valid; System when there is no memory for the tables.
  static Result<ErasureCode> create(CodeShape shape, const CodeKernels& kernels = {});

  [[nodiscard]] const CodeShape& shape() const { return shape_; }

  // Writes the parity shards first_parity, first_parity + 1, ... of the block: as many as `parity` has.
  Result<void> encode(std::span<const std::byte* const> data, std::span<std::byte* const> parity, ShardLength length,
                      unsigned first_parity = 0) const;

  // Whether what is missing of the first `data_shards` can be restored. True when nothing is missing.
  [[nodiscard]] bool can_decode(const ShardSet& data_present, const ShardSet& parity_present,
                                unsigned data_shards) const;
  [[nodiscard]] Needed needed(const ShardSet& data_present, const ShardSet& parity_present, unsigned data_shards) const;

  // Restores the data shards that are not present, in place. `data` has the block's data shards, present ones only
  // read; `parity` those of parity shards 0, 1, ..., where absent ones may be null or beyond its end.
  Result<void> decode(std::span<std::byte* const> data, const ShardSet& data_present,
                      std::span<const std::byte* const> parity, const ShardSet& parity_present,
                      ShardLength length) const;

 private:
  ErasureCode(CodeShape shape, const XorSum* sum, std::shared_ptr<const ReedSolomon> reed_solomon);
  [[nodiscard]] XorCode xor_code() const;

  CodeShape shape_;
  const XorSum* sum_;
  std::shared_ptr<const ReedSolomon> reed_solomon_;  // null for XOR; shared, so that a copy of a code costs nothing
};

}  // namespace sdr::coding

// GaloisProduct: a matrix over GF(2^8) (polynomial 0x11d) times a column of buffers: out[r] = sum of M[r][c] * in[c].
// It is all the time that Reed-Solomon takes, hence in more than one implementation:
// - "avx512-gfni", "avx2-gfni": multiplication by a constant is one instruction (GF2P8AFFINEQB).
// - "avx2": by two look-ups of a nibble each (PSHUFB).
// - "isal": ISA-L, on any processor it knows.
// Those of our own read every input once for up to rows_at_once outputs, which stay in registers meanwhile, and can
// write past the caches; bench/coding_bench.cpp measures what that gains.
//
// A matrix is first turned into tables, in a form of the implementation's own; then the tables are applied to as many
// buffers as wanted. The tables of the first rows are a prefix of the tables of all. No state: any number of threads.
// All of them compute the same bytes: ends with different processors understand each other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "coding/stores.hpp"

namespace sdr::coding {

struct GaloisProduct {
  const char* name;
  // Room for the tables of one coefficient, at most.
  std::size_t table_bytes_each;
  // Outputs of one pass over the inputs. With more, the inputs are read again.
  std::size_t rows_at_once;
  // `matrix` has rows * columns coefficients, row by row.
  void (*make_tables)(std::size_t rows, std::size_t columns, std::span<const std::uint8_t> matrix,
                      std::span<std::uint8_t> tables);
  // Buffers at any address and of any length; out must not overlap in.
  void (*apply)(std::span<const std::uint8_t> tables, std::span<const std::byte* const> in,
                std::span<std::byte* const> out, std::size_t bytes, Stores stores);

  [[nodiscard]] std::size_t table_bytes(std::size_t rows, std::size_t columns) const {
    return rows * columns * table_bytes_each;
  }
};

// Those that this processor can run, the fastest first; never empty.
[[nodiscard]] std::span<const GaloisProduct* const> galois_products();

// The fastest.
[[nodiscard]] inline const GaloisProduct& galois_product() {
  return *galois_products().front();
}

[[nodiscard]] const GaloisProduct& galois_product_isal();
// Null where the processor, or the compiler's target, does not have it.
[[nodiscard]] const GaloisProduct* galois_product_avx512_gfni();
[[nodiscard]] const GaloisProduct* galois_product_avx2_gfni();
[[nodiscard]] const GaloisProduct* galois_product_avx2();

}  // namespace sdr::coding

// GaloisProduct: a matrix over GF(2^8) (polynomial 0x11d) times a column of buffers: out[r] = sum of M[r][c] * in[c].
// It is all the time that Reed-Solomon takes, hence in more than one implementation:
// - ISA-L: any processor it knows.
// - GFNI with AVX-512: reads every input once for up to eight outputs, which stay in registers meanwhile. About twice
//   as fast as the ISA-L 2.30 that distributions carry (bench/coding_bench.cpp).
//
// A matrix is first turned into tables, in a form of the implementation's own; then the tables are applied to as many
// buffers as wanted. The tables of the first rows are a prefix of the tables of all. No state: any number of threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace sdr::coding {

struct GaloisProduct {
  const char* name;
  // Room for the tables of one coefficient, at most.
  std::size_t table_bytes_each;
  // `matrix` has rows * columns coefficients, row by row.
  void (*make_tables)(std::size_t rows, std::size_t columns, std::span<const std::uint8_t> matrix,
                      std::span<std::uint8_t> tables);
  // Buffers at any address and of any length; out must not overlap in.
  void (*apply)(std::span<const std::uint8_t> tables, std::span<const std::byte* const> in,
                std::span<std::byte* const> out, std::size_t bytes);

  [[nodiscard]] std::size_t table_bytes(std::size_t rows, std::size_t columns) const {
    return rows * columns * table_bytes_each;
  }
};

// The fastest that this processor can run.
[[nodiscard]] const GaloisProduct& galois_product();

[[nodiscard]] const GaloisProduct& galois_product_isal();
// Null where the processor, or the compiler's target, does not have it.
[[nodiscard]] const GaloisProduct* galois_product_gfni();

}  // namespace sdr::coding

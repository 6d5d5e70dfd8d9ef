// The GFNI implementation of GaloisProduct. Multiplication by a constant is linear over GF(2), so it is an 8 x 8 bit
// matrix, and GF2P8AFFINEQB applies one of those to 64 bytes at once; the polynomial goes into the bit matrix.
//
// The target attribute stays on functions that call nothing but intrinsics: an inline function compiled here for
// AVX-512 could be the copy that the linker keeps for everyone.
#include "coding/galois_product.hpp"

#if defined(__x86_64__) && defined(__GNUC__)

#include <immintrin.h>
#include <isa-l.h>

#include <array>
#include <cstring>

namespace sdr::coding {
namespace {

#define SDR_TARGET_GFNI __attribute__((target("avx512f,avx512bw,gfni")))

constexpr std::size_t kVector = 64;
constexpr std::size_t kRowsAtOnce = 8;  // twice as many accumulators, and the inputs, fit the 32 registers

// The bit matrix of x -> c * x. Row i, which makes bit i of the result, is byte 7 - i (Intel SDM, GF2P8AFFINEQB).
std::uint64_t bit_matrix(unsigned char c) {
  std::uint64_t matrix = 0;
  for (unsigned j = 0; j < 8; ++j) {
    const unsigned column = gf_mul(c, static_cast<unsigned char>(1U << j));
    for (unsigned i = 0; i < 8; ++i) {
      matrix |= static_cast<std::uint64_t>((column >> i) & 1) << (8 * (7 - i) + j);
    }
  }
  return matrix;
}

void make_tables(std::size_t rows, std::size_t columns, std::span<const std::uint8_t> matrix,
                 std::span<std::uint8_t> tables) {
  static const auto bit_matrices = [] {
    std::array<std::uint64_t, 256> all{};
    for (std::size_t c = 0; c < all.size(); ++c) all[c] = bit_matrix(static_cast<unsigned char>(c));
    return all;
  }();
  for (std::size_t i = 0; i < rows * columns; ++i) {
    std::memcpy(tables.data() + i * sizeof(std::uint64_t), &bit_matrices[matrix[i]], sizeof(std::uint64_t));
  }
}

SDR_TARGET_GFNI inline __m512i coefficient(const std::uint8_t* tables, std::size_t index) {
  std::uint64_t matrix;
  __builtin_memcpy(&matrix, tables + index * sizeof matrix, sizeof matrix);
  return _mm512_set1_epi64(static_cast<long long>(matrix));
}

// Rows outputs of all inputs, `bytes` of them, from `at` on in vectors of 64; the last one under a mask, which neither
// reads nor writes what it hides.
template <std::size_t Rows>
SDR_TARGET_GFNI void multiply_rows(const std::uint8_t* tables, const std::byte* const* in, std::size_t columns,
                                   std::byte* const* out, std::size_t bytes) {
  std::size_t at = 0;
  for (; at + 2 * kVector <= bytes; at += 2 * kVector) {
    __m512i low[Rows];
    __m512i high[Rows];
#pragma GCC unroll 8
    for (std::size_t r = 0; r < Rows; ++r) low[r] = high[r] = _mm512_setzero_si512();
    for (std::size_t c = 0; c < columns; ++c) {
      const __m512i a = _mm512_loadu_si512(in[c] + at);
      const __m512i b = _mm512_loadu_si512(in[c] + at + kVector);
#pragma GCC unroll 8
      for (std::size_t r = 0; r < Rows; ++r) {
        const __m512i m = coefficient(tables, r * columns + c);
        low[r] = _mm512_xor_si512(low[r], _mm512_gf2p8affine_epi64_epi8(a, m, 0));
        high[r] = _mm512_xor_si512(high[r], _mm512_gf2p8affine_epi64_epi8(b, m, 0));
      }
    }
#pragma GCC unroll 8
    for (std::size_t r = 0; r < Rows; ++r) {
      _mm512_storeu_si512(out[r] + at, low[r]);
      _mm512_storeu_si512(out[r] + at + kVector, high[r]);
    }
  }
  for (; at < bytes; at += kVector) {
    const std::size_t left = bytes - at;
    const __mmask64 mask = left >= kVector ? ~__mmask64{0} : (__mmask64{1} << left) - 1;
    __m512i sum[Rows];
#pragma GCC unroll 8
    for (std::size_t r = 0; r < Rows; ++r) sum[r] = _mm512_setzero_si512();
    for (std::size_t c = 0; c < columns; ++c) {
      const __m512i a = _mm512_maskz_loadu_epi8(mask, in[c] + at);
#pragma GCC unroll 8
      for (std::size_t r = 0; r < Rows; ++r) {
        const __m512i m = coefficient(tables, r * columns + c);
        sum[r] = _mm512_xor_si512(sum[r], _mm512_gf2p8affine_epi64_epi8(a, m, 0));
      }
    }
#pragma GCC unroll 8
    for (std::size_t r = 0; r < Rows; ++r) _mm512_mask_storeu_epi8(out[r] + at, mask, sum[r]);
  }
}

using MultiplyRows = void (*)(const std::uint8_t*, const std::byte* const*, std::size_t, std::byte* const*,
                              std::size_t);
constexpr MultiplyRows kMultiplyRows[kRowsAtOnce] = {multiply_rows<1>, multiply_rows<2>, multiply_rows<3>,
                                                     multiply_rows<4>, multiply_rows<5>, multiply_rows<6>,
                                                     multiply_rows<7>, multiply_rows<8>};

void apply(std::span<const std::uint8_t> tables, std::span<const std::byte* const> in, std::span<std::byte* const> out,
           std::size_t bytes) {
  const std::size_t row_bytes = in.size() * sizeof(std::uint64_t);
  for (std::size_t row = 0; row < out.size();) {
    const std::size_t rows = out.size() - row < kRowsAtOnce ? out.size() - row : kRowsAtOnce;
    kMultiplyRows[rows - 1](tables.data() + row * row_bytes, in.data(), in.size(), out.data() + row, bytes);
    row += rows;
  }
}

}  // namespace

const GaloisProduct* galois_product_gfni() {
  static constexpr GaloisProduct product{"gfni", sizeof(std::uint64_t), make_tables, apply};
  static const bool available =
      __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("gfni");
  return available ? &product : nullptr;
}

}  // namespace sdr::coding

#else

namespace sdr::coding {
const GaloisProduct* galois_product_gfni() {
  return nullptr;
}
}  // namespace sdr::coding

#endif

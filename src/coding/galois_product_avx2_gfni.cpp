// The AVX2 and GFNI implementation of GaloisProduct, for processors with GFNI and without AVX-512: eight outputs of 32
// bytes in registers.
#include "coding/galois_passes.hpp"
#include "coding/galois_product.hpp"

#if defined(__x86_64__) && defined(__GNUC__)

#include <immintrin.h>

#include <array>
#include <utility>

#include "coding/avx2_vector.hpp"

namespace sdr::coding {
namespace {

#define SDR_AVX2_GFNI __attribute__((target("avx2,gfni")))
#define SDR_AVX2_GFNI_INLINE __attribute__((target("avx2,gfni"), always_inline)) static inline

constexpr std::size_t kRowsAtOnce = 8;  // of 16 registers

SDR_AVX2_GFNI_INLINE __m256i coefficient(const std::uint8_t* tables, std::size_t index) {
  long long matrix;
  __builtin_memcpy(&matrix, tables + index * sizeof matrix, sizeof matrix);
  return _mm256_set1_epi64x(matrix);
}

template <std::size_t Rows, bool Streaming>
SDR_AVX2_GFNI_INLINE void one_vector(const GaloisPass& pass, std::size_t at, std::size_t bytes) {
  __m256i sum[Rows];
#pragma GCC unroll 8
  for (std::size_t r = 0; r < Rows; ++r) sum[r] = _mm256_setzero_si256();
  const std::size_t fetched = pass.fetched_at(at);
  for (std::size_t c = 0; c < pass.columns; ++c) {
    const __m256i data = load_vector(pass.in[c] + at, bytes);
    _mm_prefetch(reinterpret_cast<const char*>(pass.in[c] + fetched), _MM_HINT_T1);
#pragma GCC unroll 8
    for (std::size_t r = 0; r < Rows; ++r) {
      const __m256i m = coefficient(pass.tables, r * pass.columns + c);
      sum[r] = _mm256_xor_si256(sum[r], _mm256_gf2p8affine_epi64_epi8(data, m, 0));
    }
  }
#pragma GCC unroll 8
  for (std::size_t r = 0; r < Rows; ++r) store_vector<Streaming>(pass.out[r] + at, sum[r], bytes);
}

template <std::size_t Rows, bool Streaming>
SDR_AVX2_GFNI void multiply_rows(const GaloisPass& pass) {
  std::size_t at = pass.begin;
  for (; at + kAvx2Vector <= pass.end; at += kAvx2Vector) one_vector<Rows, Streaming>(pass, at, kAvx2Vector);
  if (at < pass.end) one_vector<Rows, false>(pass, at, pass.end - at);
  if constexpr (Streaming) _mm_sfence();
}

template <bool Streaming, std::size_t... Before>
constexpr std::array<GaloisKernel, sizeof...(Before)> kernels_of(std::index_sequence<Before...>) {
  return {multiply_rows<Before + 1, Streaming>...};
}
constexpr auto kCached = kernels_of<false>(std::make_index_sequence<kRowsAtOnce>());
constexpr auto kStreaming = kernels_of<true>(std::make_index_sequence<kRowsAtOnce>());

void apply(std::span<const std::uint8_t> tables, std::span<const std::byte* const> in, std::span<std::byte* const> out,
           std::size_t bytes, Stores stores) {
  static constexpr GaloisKernels kernels{kCached, kStreaming, kAvx2Vector, sizeof(std::uint64_t)};
  apply_in_passes(kernels, tables, in, out, bytes, stores);
}

}  // namespace

const GaloisProduct* galois_product_avx2_gfni() {
  static constexpr GaloisProduct product{"avx2-gfni", sizeof(std::uint64_t), kRowsAtOnce, make_bit_matrices, apply};
  static const bool available = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("gfni");
  return available ? &product : nullptr;
}

}  // namespace sdr::coding

#else

namespace sdr::coding {
const GaloisProduct* galois_product_avx2_gfni() {
  return nullptr;
}
}  // namespace sdr::coding

#endif

// The AVX-512 and GFNI implementation of GaloisProduct: up to 16 outputs of 64 bytes in registers, up to eight of 128.
#include "coding/galois_passes.hpp"
#include "coding/galois_product.hpp"

#if defined(__x86_64__) && defined(__GNUC__)

#include <immintrin.h>

#include <array>
#include <utility>

namespace sdr::coding {
namespace {

#define SDR_AVX512_GFNI __attribute__((target("avx512f,avx512bw,gfni")))
#define SDR_AVX512_GFNI_INLINE __attribute__((target("avx512f,avx512bw,gfni"), always_inline)) static inline

constexpr std::size_t kVector = 64;
constexpr std::size_t kRowsAtOnce = 16;  // of 32 registers; inputs and coefficients need some
constexpr std::size_t kRowsAtDouble = 8;

SDR_AVX512_GFNI_INLINE __m512i coefficient(const std::uint8_t* tables, std::size_t index) {
  std::uint64_t matrix;
  __builtin_memcpy(&matrix, tables + index * sizeof matrix, sizeof matrix);
  return _mm512_set1_epi64(static_cast<long long>(matrix));
}

template <bool Streaming>
SDR_AVX512_GFNI_INLINE void store(std::byte* to, __m512i value) {
  if constexpr (Streaming) {
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to), value);
  } else {
    _mm512_storeu_si512(to, value);
  }
}

// Vectors of 64 bytes next to each other share the loads of coefficients.
template <std::size_t Rows, std::size_t Vectors, bool Streaming>
SDR_AVX512_GFNI_INLINE std::size_t whole_vectors(const GaloisPass& pass, std::size_t at) {
  for (; at + Vectors * kVector <= pass.end; at += Vectors * kVector) {
    __m512i sum[Rows][Vectors];
#pragma GCC unroll 16
    for (std::size_t r = 0; r < Rows; ++r)
#pragma GCC unroll 2
      for (std::size_t v = 0; v < Vectors; ++v) sum[r][v] = _mm512_setzero_si512();
    const std::size_t fetched = pass.fetched_at(at);
    for (std::size_t c = 0; c < pass.columns; ++c) {
      __m512i data[Vectors];
#pragma GCC unroll 2
      for (std::size_t v = 0; v < Vectors; ++v) {
        data[v] = _mm512_loadu_si512(pass.in[c] + at + v * kVector);
        _mm_prefetch(reinterpret_cast<const char*>(pass.in[c] + fetched + v * kVector), _MM_HINT_T1);
      }
#pragma GCC unroll 16
      for (std::size_t r = 0; r < Rows; ++r) {
        const __m512i m = coefficient(pass.tables, r * pass.columns + c);
#pragma GCC unroll 2
        for (std::size_t v = 0; v < Vectors; ++v)
          sum[r][v] = _mm512_xor_si512(sum[r][v], _mm512_gf2p8affine_epi64_epi8(data[v], m, 0));
      }
    }
#pragma GCC unroll 16
    for (std::size_t r = 0; r < Rows; ++r)
#pragma GCC unroll 2
      for (std::size_t v = 0; v < Vectors; ++v) store<Streaming>(pass.out[r] + at + v * kVector, sum[r][v]);
  }
  return at;
}

// Less than a vector, under a mask that neither reads nor writes what it hides.
template <std::size_t Rows>
SDR_AVX512_GFNI_INLINE void partial_vector(const GaloisPass& pass, std::size_t at) {
  const __mmask64 mask = (__mmask64{1} << (pass.end - at)) - 1;
  __m512i sum[Rows];
#pragma GCC unroll 16
  for (std::size_t r = 0; r < Rows; ++r) sum[r] = _mm512_setzero_si512();
  for (std::size_t c = 0; c < pass.columns; ++c) {
    const __m512i data = _mm512_maskz_loadu_epi8(mask, pass.in[c] + at);
#pragma GCC unroll 16
    for (std::size_t r = 0; r < Rows; ++r) {
      const __m512i m = coefficient(pass.tables, r * pass.columns + c);
      sum[r] = _mm512_xor_si512(sum[r], _mm512_gf2p8affine_epi64_epi8(data, m, 0));
    }
  }
#pragma GCC unroll 16
  for (std::size_t r = 0; r < Rows; ++r) _mm512_mask_storeu_epi8(pass.out[r] + at, mask, sum[r]);
}

template <std::size_t Rows, bool Streaming>
SDR_AVX512_GFNI void multiply_rows(const GaloisPass& pass) {
  std::size_t at = pass.begin;
  if constexpr (Rows <= kRowsAtDouble) at = whole_vectors<Rows, 2, Streaming>(pass, at);
  at = whole_vectors<Rows, 1, Streaming>(pass, at);
  if (at < pass.end) partial_vector<Rows>(pass, at);
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
  static constexpr GaloisKernels kernels{kCached, kStreaming, kVector, sizeof(std::uint64_t)};
  apply_in_passes(kernels, tables, in, out, bytes, stores);
}

}  // namespace

const GaloisProduct* galois_product_avx512_gfni() {
  static constexpr GaloisProduct product{"avx512-gfni", sizeof(std::uint64_t), kRowsAtOnce, make_bit_matrices, apply};
  static const bool available =
      __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("gfni");
  return available ? &product : nullptr;
}

}  // namespace sdr::coding

#else

namespace sdr::coding {
const GaloisProduct* galois_product_avx512_gfni() {
  return nullptr;
}
}  // namespace sdr::coding

#endif

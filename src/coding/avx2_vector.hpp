// Vectors of 32 bytes as the AVX2 kernels load and store them. AVX2 has no masks for bytes: what is shorter than a
// vector goes through one on the stack.
//
// Only for files that compile kernels for AVX2, inside #if defined(__x86_64__). Each function is for AVX2 alone, and so
// may be inlined into kernels for that and more.
#pragma once

#include <immintrin.h>

#include <cstddef>

namespace sdr::coding {

#define SDR_AVX2 __attribute__((target("avx2")))
// Called with a length that is known when it is compiled, or nothing is gained.
#define SDR_AVX2_INLINE __attribute__((target("avx2"), always_inline)) static inline

inline constexpr std::size_t kAvx2Vector = 32;

SDR_AVX2_INLINE __m256i load_vector(const std::byte* from, std::size_t bytes) {
  if (bytes >= kAvx2Vector) return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
  alignas(kAvx2Vector) std::byte padded[kAvx2Vector] = {};
  __builtin_memcpy(padded, from, bytes);
  return _mm256_load_si256(reinterpret_cast<const __m256i*>(padded));
}

template <bool Streaming>
SDR_AVX2_INLINE void store_vector(std::byte* to, __m256i value, std::size_t bytes) {
  if (bytes < kAvx2Vector) {
    alignas(kAvx2Vector) std::byte padded[kAvx2Vector];
    _mm256_store_si256(reinterpret_cast<__m256i*>(padded), value);
    __builtin_memcpy(to, padded, bytes);
  } else if constexpr (Streaming) {
    _mm256_stream_si256(reinterpret_cast<__m256i*>(to), value);
  } else {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), value);
  }
}

}  // namespace sdr::coding

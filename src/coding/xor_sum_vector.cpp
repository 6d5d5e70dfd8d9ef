// XorSum in AVX-512 and in AVX2. Functions that are compiled for them call nothing but intrinsics: an inline function
// compiled there could be the copy that the linker keeps for everyone.
#include "coding/xor_sum.hpp"

#if defined(__x86_64__) && defined(__GNUC__)

#include <immintrin.h>

#include "coding/avx2_vector.hpp"

namespace sdr::coding {
namespace {

#define SDR_AVX512 __attribute__((target("avx512f,avx512bw")))

constexpr std::size_t kAvx512Vector = 64;

SDR_AVX512 inline __m512i xor_under(__mmask64 mask, const std::byte* const* sources, std::size_t count,
                                    std::size_t at) {
  __m512i sum = _mm512_maskz_loadu_epi8(mask, sources[0] + at);
  for (std::size_t s = 1; s < count; ++s) sum = _mm512_xor_si512(sum, _mm512_maskz_loadu_epi8(mask, sources[s] + at));
  return sum;
}

template <bool Streaming>
SDR_AVX512 void xor_avx512(const std::byte* const* sources, std::size_t count, std::byte* to, std::size_t begin,
                           std::size_t end) {
  constexpr std::size_t kVectors = 4;
  std::size_t at = begin;
  for (; at + kVectors * kAvx512Vector <= end; at += kVectors * kAvx512Vector) {
    __m512i sum[kVectors];
#pragma GCC unroll 4
    for (std::size_t v = 0; v < kVectors; ++v) sum[v] = _mm512_loadu_si512(sources[0] + at + v * kAvx512Vector);
    for (std::size_t s = 1; s < count; ++s) {
#pragma GCC unroll 4
      for (std::size_t v = 0; v < kVectors; ++v)
        sum[v] = _mm512_xor_si512(sum[v], _mm512_loadu_si512(sources[s] + at + v * kAvx512Vector));
    }
#pragma GCC unroll 4
    for (std::size_t v = 0; v < kVectors; ++v) {
      if constexpr (Streaming) {
        _mm512_stream_si512(reinterpret_cast<__m512i*>(to + at + v * kAvx512Vector), sum[v]);
      } else {
        _mm512_storeu_si512(to + at + v * kAvx512Vector, sum[v]);
      }
    }
  }
  for (; at < end; at += kAvx512Vector) {
    const std::size_t left = end - at;
    const __mmask64 mask = left >= kAvx512Vector ? ~__mmask64{0} : (__mmask64{1} << left) - 1;
    _mm512_mask_storeu_epi8(to + at, mask, xor_under(mask, sources, count, at));
  }
  if constexpr (Streaming) _mm_sfence();
}

template <bool Streaming>
SDR_AVX2 void xor_avx2(const std::byte* const* sources, std::size_t count, std::byte* to, std::size_t begin,
                       std::size_t end) {
  std::size_t at = begin;
  for (; end - at >= 2 * kAvx2Vector; at += 2 * kAvx2Vector) {
    __m256i first = load_vector(sources[0] + at, kAvx2Vector);
    __m256i second = load_vector(sources[0] + at + kAvx2Vector, kAvx2Vector);
    for (std::size_t s = 1; s < count; ++s) {
      first = _mm256_xor_si256(first, load_vector(sources[s] + at, kAvx2Vector));
      second = _mm256_xor_si256(second, load_vector(sources[s] + at + kAvx2Vector, kAvx2Vector));
    }
    store_vector<Streaming>(to + at, first, kAvx2Vector);
    store_vector<Streaming>(to + at + kAvx2Vector, second, kAvx2Vector);
  }
  while (at != end) {
    const std::size_t bytes = end - at < kAvx2Vector ? end - at : kAvx2Vector;
    __m256i sum = load_vector(sources[0] + at, bytes);
    for (std::size_t s = 1; s < count; ++s) sum = _mm256_xor_si256(sum, load_vector(sources[s] + at, bytes));
    store_vector<false>(to + at, sum, bytes);
    at += bytes;
  }
  if constexpr (Streaming) _mm_sfence();
}

using XorRange = void (*)(const std::byte* const*, std::size_t, std::byte*, std::size_t, std::size_t);

template <XorRange cached, XorRange streaming, std::size_t vector>
void apply(std::span<const std::byte* const> sources, std::byte* destination, std::size_t bytes, Stores stores) {
  const std::size_t from = stores == Stores::Streaming ? streaming_from({&destination, 1}, bytes, vector) : bytes;
  cached(sources.data(), sources.size(), destination, 0, from);
  if (from < bytes) streaming(sources.data(), sources.size(), destination, from, bytes);
}

}  // namespace

const XorSum* xor_sum_avx512() {
  static constexpr XorSum sum{"avx512", apply<xor_avx512<false>, xor_avx512<true>, kAvx512Vector>};
  static const bool available = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw");
  return available ? &sum : nullptr;
}

const XorSum* xor_sum_avx2() {
  static constexpr XorSum sum{"avx2", apply<xor_avx2<false>, xor_avx2<true>, kAvx2Vector>};
  static const bool available = __builtin_cpu_supports("avx2") != 0;
  return available ? &sum : nullptr;
}

}  // namespace sdr::coding

#else

namespace sdr::coding {
const XorSum* xor_sum_avx512() {
  return nullptr;
}
const XorSum* xor_sum_avx2() {
  return nullptr;
}
}  // namespace sdr::coding

#endif

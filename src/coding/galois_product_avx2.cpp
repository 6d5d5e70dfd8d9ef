// The AVX2 implementation of GaloisProduct, for processors without GFNI: a product is the xor of two look-ups, one for
// each nibble; the inputs' nibbles are taken apart once for all rows.
#include "coding/galois_passes.hpp"
#include "coding/galois_product.hpp"

#if defined(__x86_64__) && defined(__GNUC__)

#include <immintrin.h>

#include <array>
#include <utility>

#include "coding/avx2_vector.hpp"

namespace sdr::coding {
namespace {

constexpr std::size_t kTable = 32;      // bytes of a coefficient's two tables
constexpr std::size_t kRowsAtOnce = 8;  // of 16 registers; three are the nibbles and their mask, two the tables

SDR_AVX2_INLINE __m256i in_both_lanes(const std::uint8_t* table) {
  return _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(table)));
}

template <std::size_t Rows, bool Streaming>
SDR_AVX2_INLINE void one_vector(const GaloisPass& pass, std::size_t at, std::size_t bytes) {
  const __m256i nibble = _mm256_set1_epi8(0x0f);
  __m256i sum[Rows];
#pragma GCC unroll 8
  for (std::size_t r = 0; r < Rows; ++r) sum[r] = _mm256_setzero_si256();
  for (std::size_t c = 0; c < pass.columns; ++c) {
    const __m256i data = load_vector(pass.in[c] + at, bytes);
    _mm_prefetch(reinterpret_cast<const char*>(pass.in[c] + pass.fetched_at(at)), _MM_HINT_T1);
    const __m256i low = _mm256_and_si256(data, nibble);
    const __m256i high = _mm256_and_si256(_mm256_srli_epi64(data, 4), nibble);
    const std::uint8_t* table = pass.tables + c * kTable;
#pragma GCC unroll 8
    for (std::size_t r = 0; r < Rows; ++r, table += pass.columns * kTable) {
      const __m256i of_low = _mm256_shuffle_epi8(in_both_lanes(table), low);
      const __m256i of_high = _mm256_shuffle_epi8(in_both_lanes(table + kTable / 2), high);
      sum[r] = _mm256_xor_si256(sum[r], _mm256_xor_si256(of_low, of_high));
    }
  }
#pragma GCC unroll 8
  for (std::size_t r = 0; r < Rows; ++r) store_vector<Streaming>(pass.out[r] + at, sum[r], bytes);
}

template <std::size_t Rows, bool Streaming>
SDR_AVX2 void multiply_rows(const GaloisPass& pass) {
  std::size_t at = pass.begin;
  for (; pass.end - at >= kAvx2Vector; at += kAvx2Vector) one_vector<Rows, Streaming>(pass, at, kAvx2Vector);
  if (at != pass.end) one_vector<Rows, false>(pass, at, pass.end - at);
  if constexpr (Streaming) _mm_sfence();
}

template <bool Streaming, std::size_t... Before>
constexpr std::array<GaloisKernel, sizeof...(Before)> all_rows(std::index_sequence<Before...>) {
  return {multiply_rows<Before + 1, Streaming>...};
}

void apply(std::span<const std::uint8_t> tables, std::span<const std::byte* const> in, std::span<std::byte* const> out,
           std::size_t bytes, Stores stores) {
  static constexpr auto cached = all_rows<false>(std::make_index_sequence<kRowsAtOnce>());
  static constexpr auto streaming = all_rows<true>(std::make_index_sequence<kRowsAtOnce>());
  static constexpr GaloisKernels kernels{cached, streaming, kAvx2Vector, kTable};
  apply_in_passes(kernels, tables, in, out, bytes, stores);
}

}  // namespace

const GaloisProduct* galois_product_avx2() {
  static constexpr GaloisProduct product{"avx2", kTable, kRowsAtOnce, make_nibble_tables, apply};
  static const bool available = __builtin_cpu_supports("avx2") != 0;
  return available ? &product : nullptr;
}

}  // namespace sdr::coding

#else

namespace sdr::coding {
const GaloisProduct* galois_product_avx2() {
  return nullptr;
}
}  // namespace sdr::coding

#endif

#include "coding/galois_passes.hpp"

#include <isa-l.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace sdr::coding {
namespace {

// What is on its way from memory at a time, of all inputs together; and of each, within bounds. The processor's own
// prefetchers follow some streams, not 32 or hundreds. Kernels fetch into the second-level cache: chunks lie a power of
// two apart, so that the lines of one pass share a set of the first-level cache, which has no room for more of them.
constexpr std::size_t kAheadOfAll = std::size_t{8} << 10;
constexpr std::size_t kLine = 64;
constexpr std::size_t kLeastAhead = 2 * kLine;
constexpr std::size_t kMostAhead = 16 * kLine;

// Row i of the matrix, which makes bit i of the result, is byte 7 - i (Intel SDM, GF2P8AFFINEQB).
std::array<std::uint8_t, 8> bit_matrix(unsigned char c) {
  std::array<std::uint8_t, 8> rows{};
  for (unsigned j = 0; j < 8; ++j) {
    const unsigned column = gf_mul(c, static_cast<unsigned char>(1U << j));
    for (unsigned i = 0; i < 8; ++i) rows[7 - i] = static_cast<std::uint8_t>(rows[7 - i] | ((column >> i) & 1) << j);
  }
  return rows;
}

std::array<std::uint8_t, 32> nibble_table(unsigned char c) {
  std::array<std::uint8_t, 32> products{};
  for (unsigned x = 0; x < 16; ++x) {
    products[x] = gf_mul(c, static_cast<unsigned char>(x));
    products[16 + x] = gf_mul(c, static_cast<unsigned char>(x << 4));
  }
  return products;
}

// One table for each of the 256 constants, made once, and copied to where it is wanted.
template <auto table_of>
void copy_tables(std::size_t coefficients, std::span<const std::uint8_t> matrix, std::span<std::uint8_t> tables) {
  using Table = decltype(table_of(0));
  static const auto all = [] {
    std::array<Table, 256> made{};
    for (std::size_t c = 0; c < made.size(); ++c) made[c] = table_of(static_cast<unsigned char>(c));
    return made;
  }();
  for (std::size_t i = 0; i < coefficients; ++i)
    std::memcpy(tables.data() + i * sizeof(Table), &all[matrix[i]], sizeof(Table));
}

}  // namespace

void apply_in_passes(const GaloisKernels& kernels, std::span<const std::uint8_t> tables,
                     std::span<const std::byte* const> in, std::span<std::byte* const> out, std::size_t bytes,
                     Stores stores) {
  const std::size_t row_bytes = in.size() * kernels.table_bytes_each;
  const std::size_t ahead =
      std::clamp(kAheadOfAll / std::max<std::size_t>(in.size(), 1) / kLine * kLine, kLeastAhead, kMostAhead);
  for (std::size_t row = 0; row < out.size();) {
    const std::size_t rows = std::min(out.size() - row, kernels.cached.size());
    const auto rows_out = out.subspan(row, rows);
    const std::size_t from = stores == Stores::Streaming ? streaming_from(rows_out, bytes, kernels.vector) : bytes;
    GaloisPass pass{tables.data() + row * row_bytes, in.data(), in.size(), rows_out.data(), 0, from, ahead};
    if (from > 0) kernels.cached[rows - 1](pass);
    pass.begin = from;
    pass.end = bytes;
    if (from < bytes) kernels.streaming[rows - 1](pass);
    row += rows;
  }
}

void make_bit_matrices(std::size_t rows, std::size_t columns, std::span<const std::uint8_t> matrix,
                       std::span<std::uint8_t> tables) {
  copy_tables<bit_matrix>(rows * columns, matrix, tables);
}

void make_nibble_tables(std::size_t rows, std::size_t columns, std::span<const std::uint8_t> matrix,
                        std::span<std::uint8_t> tables) {
  copy_tables<nibble_table>(rows * columns, matrix, tables);
}

}  // namespace sdr::coding

#include "coding/reed_solomon.hpp"

#include <isa-l.h>

#include <algorithm>
#include <array>
#include <memory>
#include <new>

namespace sdr::coding {
namespace {

// This thread's memory for matrices and tables; keeps what the largest call so far needed. Empty without memory.
std::span<std::uint8_t> scratch(std::size_t bytes) {
  struct Scratch {
    std::unique_ptr<std::uint8_t[]> memory;
    std::size_t capacity = 0;
  };
  static thread_local Scratch mine;
  if (mine.capacity < bytes) {
    mine.memory.reset(new (std::nothrow) std::uint8_t[bytes]);
    mine.capacity = mine.memory == nullptr ? 0 : bytes;
    if (mine.capacity == 0) return {};
  }
  return {mine.memory.get(), bytes};
}

std::span<std::uint8_t> take(std::span<std::uint8_t>& from, std::size_t bytes) {
  const auto taken = from.first(bytes);
  from = from.subspan(bytes);
  return taken;
}

}  // namespace

ReedSolomon::ReedSolomon(unsigned k, unsigned m, const GaloisProduct& product) : k_(k), product_(product) {
  std::vector<std::uint8_t> with_identity(std::size_t{k + m} * k);
  gf_gen_cauchy1_matrix(with_identity.data(), static_cast<int>(k + m), static_cast<int>(k));
  matrix_.assign(with_identity.begin() + std::ptrdiff_t{k} * k, with_identity.end());
  tables_.resize(product_.table_bytes(m, k));
  product_.make_tables(m, k, matrix_, tables_);
}

bool ReedSolomon::encode(std::span<const std::byte* const> data, std::span<std::byte* const> parity, ShardLength length,
                         unsigned first_parity) const {
  const std::size_t columns = data.size();
  const std::size_t rows = parity.size();
  std::span<const std::uint8_t> tables = tables_;
  // Whole blocks from row 0 on, nearly all of them, use the tables made once. The others need a part of the matrix.
  if (columns != k_ || first_parity != 0) {
    std::span<std::uint8_t> free = scratch(rows * columns + product_.table_bytes(rows, columns));
    if (free.empty()) return false;
    const auto matrix = take(free, rows * columns);
    for (std::size_t row = 0; row < rows; ++row) {
      for (std::size_t j = 0; j < columns; ++j) matrix[row * columns + j] = coefficient(first_parity + row, j);
    }
    product_.make_tables(rows, columns, matrix, free);
    tables = free;
  }
  const Stores stores = stores_for(columns + rows, length.full);
  for_each_strip(length, strip_for(rows, length), [&](std::size_t offset, std::size_t bytes, bool beyond_last) {
    std::array<const std::byte*, kMaxShards> in;
    std::array<std::byte*, kMaxShards> out;
    for (std::size_t j = 0; j < columns; ++j) in[j] = data[j] + offset;
    if (beyond_last) in[columns - 1] = kZeros.data();
    for (std::size_t row = 0; row < rows; ++row) out[row] = parity[row] + offset;
    product_.apply(tables, {in.data(), columns}, {out.data(), rows}, bytes, stores);
  });
  return true;
}

bool ReedSolomon::decode(std::span<std::byte* const> data, const ShardSet& data_present,
                         std::span<const std::byte* const> parity, const ShardSet& parity_present,
                         ShardLength length) const {
  const std::size_t columns = data.size();
  std::array<std::uint8_t, kMaxShards> missing;  // data shards, and the parity rows that stand in for them
  std::array<std::uint8_t, kMaxShards> rows;
  std::size_t e = 0;
  for (std::size_t j = 0; j < columns; ++j) {
    if (!data_present[j]) missing[e++] = static_cast<std::uint8_t>(j);
  }
  if (e == 0) return true;
  for (std::size_t row = 0, found = 0; found < e; ++row) {
    if (parity_present[row]) rows[found++] = static_cast<std::uint8_t>(row);
  }

  std::span<std::uint8_t> free = scratch(2 * e * e + 2 * e * columns + product_.table_bytes(e, columns));
  if (free.empty()) return false;
  const auto square = take(free, e * e);
  const auto inverse = take(free, e * e);
  const auto matrix = take(free, e * columns);
  const auto ordered = take(free, e * columns);

  for (std::size_t r = 0; r < e; ++r) {
    for (std::size_t c = 0; c < e; ++c) square[r * e + c] = coefficient(rows[r], missing[c]);
  }
  // Cannot fail: every square submatrix of a Cauchy matrix inverts.
  if (gf_invert_matrix(square.data(), inverse.data(), static_cast<int>(e)) != 0) return false;

  // One matrix for everything: column j is data shard j where that is here, inverse * C[R][j], which is the same kind
  // of product as the shards' own; and where it is missing, the parity that stands in for it.
  std::array<const std::byte*, kMaxShards> from;
  std::array<std::byte*, kMaxShards> to;
  for (std::size_t a = 0; a < e; ++a) {
    from[a] = reinterpret_cast<const std::byte*>(matrix_.data() + rows[a] * std::size_t{k_});
    to[a] = reinterpret_cast<std::byte*>(matrix.data() + a * columns);
  }
  product_.make_tables(e, e, inverse, free);
  product_.apply(free, {from.data(), e}, {to.data(), e}, columns, Stores::Cached);
  for (std::size_t a = 0; a < e; ++a) {
    for (std::size_t c = 0; c < e; ++c) matrix[a * columns + missing[c]] = inverse[a * e + c];
  }
  // The data first, then the parity: inputs that lie in one row are fetched sooner than those of two rows by turns.
  std::array<std::uint8_t, kMaxShards> order;
  const std::size_t present = columns - e;
  for (std::size_t j = 0, c = 0; j < columns; ++j) {
    if (data_present[j]) order[c++] = static_cast<std::uint8_t>(j);
  }
  std::copy_n(missing.begin(), e, order.begin() + static_cast<std::ptrdiff_t>(present));
  for (std::size_t a = 0; a < e; ++a) {
    for (std::size_t c = 0; c < columns; ++c) ordered[a * columns + c] = matrix[a * columns + order[c]];
  }
  product_.make_tables(e, columns, ordered, free);

  const std::size_t last = columns - 1;
  const bool last_missing = missing[e - 1] == last;
  const Stores stores = stores_for(columns + e, length.full);
  for_each_strip(length, strip_for(e, length), [&](std::size_t offset, std::size_t bytes, bool beyond_last) {
    if (beyond_last && last_missing && e == 1) return;  // nothing there to restore
    std::array<const std::byte*, kMaxShards> in;
    std::array<std::byte*, kMaxShards> out;
    for (std::size_t c = 0; c < present; ++c) in[c] = data[order[c]] + offset;
    for (std::size_t a = 0; a < e; ++a) in[present + a] = parity[rows[a]] + offset;
    for (std::size_t a = 0; a < e; ++a) out[a] = data[missing[a]] + offset;
    if (beyond_last && last_missing) out[e - 1] = discarded_strip();
    if (beyond_last && !last_missing) in[present - 1] = kZeros.data();
    product_.apply(free, {in.data(), columns}, {out.data(), e}, bytes, stores);
  });
  return true;
}

}  // namespace sdr::coding

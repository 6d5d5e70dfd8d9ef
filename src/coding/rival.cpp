#include "coding/rival.hpp"

#include <isa-l.h>

#include <array>

#include "coding/galois_product.hpp"

namespace sdr::coding {

Rival::Rival(const CodeShape& shape) : shape_(shape) {
  if (shape.kind == CodeKind::Xor) return;
  std::vector<std::uint8_t> matrix(std::size_t{shape.k + shape.m} * shape.k);
  gf_gen_cauchy1_matrix(matrix.data(), static_cast<int>(shape.k + shape.m), static_cast<int>(shape.k));
  const GaloisProduct& isal = galois_product_isal();
  tables_.resize(isal.table_bytes(shape.m, shape.k));
  isal.make_tables(shape.m, shape.k, std::span(matrix).subspan(std::size_t{shape.k} * shape.k), tables_);
}

void Rival::encode(std::span<const std::byte* const> data, std::span<std::byte* const> parity,
                   std::size_t bytes) const {
  if (shape_.kind == CodeKind::ReedSolomon) {
    galois_product_isal().apply(tables_, data, parity, bytes, Stores::Cached);
    return;
  }
  for (std::size_t row = 0; row < parity.size(); ++row) {
    std::array<void*, kMaxShards + 1> all;  // ISA-L reads the first ones only
    std::size_t count = 0;
    for (std::size_t j = row; j < data.size(); j += shape_.m) all[count++] = const_cast<std::byte*>(data[j]);
    if (count == 1) all[count++] = all[0];  // it takes two at least
    all[count++] = parity[row];
    xor_gen(static_cast<int>(count), static_cast<int>(bytes), all.data());
  }
}

}  // namespace sdr::coding

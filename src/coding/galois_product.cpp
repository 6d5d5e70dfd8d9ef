#include "coding/galois_product.hpp"

#include <isa-l.h>

namespace sdr::coding {
namespace {

void make_tables(std::size_t rows, std::size_t columns, std::span<const std::uint8_t> matrix,
                 std::span<std::uint8_t> tables) {
  ec_init_tables(static_cast<int>(columns), static_cast<int>(rows), const_cast<std::uint8_t*>(matrix.data()),
                 tables.data());
}

// ISA-L's interface has no const; it reads `tables` and `in` only.
void apply(std::span<const std::uint8_t> tables, std::span<const std::byte* const> in, std::span<std::byte* const> out,
           std::size_t bytes) {
  auto** const from = reinterpret_cast<unsigned char**>(const_cast<std::byte**>(in.data()));
  auto** const to = reinterpret_cast<unsigned char**>(const_cast<std::byte**>(out.data()));
  ec_encode_data(static_cast<int>(bytes), static_cast<int>(in.size()), static_cast<int>(out.size()),
                 const_cast<std::uint8_t*>(tables.data()), from, to);
}

}  // namespace

const GaloisProduct& galois_product_isal() {
  // 32 bytes a coefficient; later versions use fewer on some processors, never more.
  static constexpr GaloisProduct product{"isal", 32, make_tables, apply};
  return product;
}

const GaloisProduct& galois_product() {
  const GaloisProduct* const gfni = galois_product_gfni();
  return gfni != nullptr ? *gfni : galois_product_isal();
}

}  // namespace sdr::coding

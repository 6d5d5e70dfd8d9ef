#include "coding/galois_product.hpp"

#include <isa-l.h>

#include <array>

namespace sdr::coding {
namespace {

void make_tables(std::size_t rows, std::size_t columns, std::span<const std::uint8_t> matrix,
                 std::span<std::uint8_t> tables) {
  ec_init_tables(static_cast<int>(columns), static_cast<int>(rows), const_cast<std::uint8_t*>(matrix.data()),
                 tables.data());
}

// ISA-L's interface has no const; it reads `tables` and `in` only. It has cached stores only.
void apply(std::span<const std::uint8_t> tables, std::span<const std::byte* const> in, std::span<std::byte* const> out,
           std::size_t bytes, Stores) {
  auto** const from = reinterpret_cast<unsigned char**>(const_cast<std::byte**>(in.data()));
  auto** const to = reinterpret_cast<unsigned char**>(const_cast<std::byte**>(out.data()));
  ec_encode_data(static_cast<int>(bytes), static_cast<int>(in.size()), static_cast<int>(out.size()),
                 const_cast<std::uint8_t*>(tables.data()), from, to);
}

// Without AVX-512 and GFNI, ISA-L and "avx2" do the same work in the same way; "avx2" does it for more rows at once.
struct Available {
  std::array<const GaloisProduct*, 4> all{};
  std::size_t count = 0;

  Available() {
    for (const GaloisProduct* one :
         {galois_product_avx512_gfni(), galois_product_avx2_gfni(), galois_product_avx2(), &galois_product_isal()})
      if (one != nullptr) all[count++] = one;
  }
};

}  // namespace

const GaloisProduct& galois_product_isal() {
  // 32 bytes a coefficient; later versions use fewer on some processors, never more. Versions differ in how many rows
  // they do at once: four at least.
  static constexpr GaloisProduct product{"isal", 32, 4, make_tables, apply};
  return product;
}

std::span<const GaloisProduct* const> galois_products() {
  static const Available available;
  return {available.all.data(), available.count};
}

}  // namespace sdr::coding

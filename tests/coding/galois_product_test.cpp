// Every implementation of GaloisProduct that this processor can run, against multiplication bit by bit.
#include "coding/galois_product.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "coding/reed_solomon.hpp"
#include "tests/coding/block.hpp"

namespace sdr::coding {
namespace {

using test::Guarded;
using test::multiply;
using test::slow_multiply;

std::vector<const GaloisProduct*> implementations() {
  std::vector<const GaloisProduct*> all = {&galois_product_isal()};
  if (galois_product_gfni() != nullptr) all.push_back(galois_product_gfni());
  return all;
}

void check(const GaloisProduct& product, std::size_t rows, std::size_t columns, std::size_t bytes,
           std::mt19937_64& random) {
  std::vector<std::uint8_t> matrix(rows * columns);
  for (auto& c : matrix) c = static_cast<std::uint8_t>(random());
  std::vector<std::uint8_t> tables(product.table_bytes(rows, columns));
  product.make_tables(rows, columns, matrix, tables);

  std::vector<Guarded> in;
  std::vector<Guarded> out;
  for (std::size_t c = 0; c < columns; ++c) in.emplace_back(bytes, random(), random);
  for (std::size_t r = 0; r < rows; ++r) out.emplace_back(bytes, random(), random);
  std::vector<const std::byte*> from;
  std::vector<std::byte*> to;
  for (const auto& buffer : in) from.push_back(buffer.data());
  for (auto& buffer : out) to.push_back(buffer.data());
  product.apply(tables, from, to, bytes);

  for (std::size_t r = 0; r < rows; ++r) {
    ASSERT_TRUE(out[r].canaries_alive());
    for (std::size_t at = 0; at < bytes; ++at) {
      unsigned expected = 0;
      for (std::size_t c = 0; c < columns; ++c) {
        expected ^= multiply(matrix[r * columns + c], std::to_integer<unsigned>(in[c].byte(at)));
      }
      ASSERT_EQ(std::to_integer<unsigned>(out[r].byte(at)), expected) << "row " << r << " byte " << at;
    }
  }
}

TEST(GaloisProduct, EveryPairOfBytes_IsMultipliedRight) {
  for (const GaloisProduct* product : implementations()) {
    SCOPED_TRACE(product->name);
    std::vector<std::byte> all(256);
    for (std::size_t i = 0; i < 256; ++i) all[i] = static_cast<std::byte>(i);
    for (unsigned c = 0; c < 256; ++c) {
      const std::vector<std::uint8_t> matrix = {static_cast<std::uint8_t>(c)};
      std::vector<std::uint8_t> tables(product->table_bytes(1, 1));
      product->make_tables(1, 1, matrix, tables);
      std::vector<std::byte> result(256);
      const std::vector<const std::byte*> from = {all.data()};
      const std::vector<std::byte*> to = {result.data()};
      product->apply(tables, from, to, 256);
      for (unsigned x = 0; x < 256; ++x) ASSERT_EQ(std::to_integer<unsigned>(result[x]), slow_multiply(c, x));
    }
  }
}

TEST(GaloisProduct, EveryLengthAndNumberOfRows_IsExactAndStaysInside) {
  const std::uint64_t seed = test::test_seed();
  SCOPED_TRACE("SDR_TEST_SEED=" + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (const GaloisProduct* product : implementations()) {
    SCOPED_TRACE(product->name);
    for (std::size_t bytes = 1; bytes <= 300; ++bytes) {
      check(*product, 1 + random() % 20, 1 + random() % 5, bytes, random);
      if (HasFatalFailure()) return;
    }
    for (std::size_t rows = 1; rows <= 33; ++rows) check(*product, rows, 3, 200, random);
  }
}

// A sender with one processor and a receiver with another must agree.
TEST(ReedSolomon, ParityOfOneImplementation_IsThatOfEveryOther) {
  std::mt19937_64 random(12);
  const CodeShape shape{CodeKind::ReedSolomon, 20, 12};
  test::Block block(shape, 17, ShardLength(5000, 4200), random);
  std::vector<std::vector<std::byte>> first;
  for (const GaloisProduct* product : implementations()) {
    SCOPED_TRACE(product->name);
    const ReedSolomon code(shape.k, shape.m, *product);
    ASSERT_TRUE(code.encode(block.data_pointers(), block.parity_pointers(), block.length, 0));
    std::vector<std::vector<std::byte>> parity;
    for (const auto& shard : block.parity) parity.push_back(shard.content());
    if (first.empty()) first = parity;
    EXPECT_EQ(parity, first);

    const ShardSet present = first_shards(17) & ~first_shards(12);
    block.lose(present, random);
    const auto pointers = block.parity_pointers();
    const std::vector<const std::byte*> held(pointers.begin(), pointers.end());
    ASSERT_TRUE(code.decode(block.writable_data_pointers(), present, held, first_shards(12), block.length));
    block.expect_intact();
  }
}

}  // namespace
}  // namespace sdr::coding

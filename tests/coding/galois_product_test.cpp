// Every implementation of GaloisProduct that this processor can run, against multiplication bit by bit.
#include "coding/galois_product.hpp"

#include <gtest/gtest.h>
#include <isa-l.h>

#include <algorithm>
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

void check(const GaloisProduct& product, Stores stores, std::size_t rows, std::size_t columns, std::size_t bytes,
           bool aligned_alike, std::mt19937_64& random) {
  std::vector<std::uint8_t> matrix(rows * columns);
  for (auto& c : matrix) c = static_cast<std::uint8_t>(random());
  std::vector<std::uint8_t> tables(product.table_bytes(rows, columns));
  product.make_tables(rows, columns, matrix, tables);

  std::vector<Guarded> in;
  std::vector<Guarded> out;
  for (std::size_t c = 0; c < columns; ++c) in.emplace_back(bytes, random(), random);
  const std::size_t common = random();
  for (std::size_t r = 0; r < rows; ++r) out.emplace_back(bytes, aligned_alike ? common : random(), random);
  std::vector<const std::byte*> from;
  std::vector<std::byte*> to;
  for (const auto& buffer : in) from.push_back(buffer.data());
  for (auto& buffer : out) to.push_back(buffer.data());
  product.apply(tables, from, to, bytes, stores);

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
  for (const GaloisProduct* product : galois_products()) {
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
      product->apply(tables, from, to, 256, Stores::Cached);
      for (unsigned x = 0; x < 256; ++x) ASSERT_EQ(std::to_integer<unsigned>(result[x]), slow_multiply(c, x));
    }
  }
}

TEST(GaloisProduct, EveryLengthAndNumberOfRows_IsExactAndStaysInside) {
  const std::uint64_t seed = test::test_seed();
  SCOPED_TRACE("SDR_TEST_SEED=" + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (const GaloisProduct* product : galois_products()) {
    for (const Stores stores : {Stores::Cached, Stores::Streaming}) {
      SCOPED_TRACE(std::string(product->name) + (stores == Stores::Cached ? ", cached" : ", streaming"));
      for (std::size_t bytes = 0; bytes <= 400; ++bytes) {
        check(*product, stores, 1 + random() % 20, 1 + random() % 5, bytes, bytes % 4 != 0, random);
        if (HasFatalFailure()) return;
      }
      for (std::size_t rows = 1; rows <= 40; ++rows) check(*product, stores, rows, 3, 300, true, random);
      // More columns than one pass takes, and longer than its stretch.
      for (const std::size_t columns : {31U, 32U, 33U, 70U, 254U}) {
        check(*product, stores, 1 + random() % 9, columns, 4500 + random() % 200, true, random);
        if (HasFatalFailure()) return;
      }
    }
  }
}

// ISA-L, and not what we have written down ourselves, says what Reed-Solomon parity is.
void check_against_isal(unsigned k, unsigned m, std::size_t bytes, std::mt19937_64& random) {
  std::vector<std::uint8_t> matrix(std::size_t{k + m} * k);
  gf_gen_cauchy1_matrix(matrix.data(), static_cast<int>(k + m), static_cast<int>(k));
  std::vector<std::uint8_t> tables(std::size_t{32} * k * m);
  ec_init_tables(static_cast<int>(k), static_cast<int>(m), matrix.data() + std::size_t{k} * k, tables.data());

  const CodeShape shape{CodeKind::ReedSolomon, k, m};
  test::Block block(shape, k, ShardLength(bytes), random);
  std::vector<unsigned char*> data;
  std::vector<unsigned char*> parity;
  std::vector<std::vector<unsigned char>> expected(m, std::vector<unsigned char>(bytes));
  for (auto& shard : block.data) data.push_back(reinterpret_cast<unsigned char*>(shard.data()));
  for (auto& shard : expected) parity.push_back(shard.data());
  ec_encode_data(static_cast<int>(bytes), static_cast<int>(k), static_cast<int>(m), tables.data(), data.data(),
                 parity.data());

  for (const GaloisProduct* product : galois_products()) {
    SCOPED_TRACE(std::string(product->name) + " (" + std::to_string(k) + "," + std::to_string(m) + ") of " +
                 std::to_string(bytes) + " bytes");
    auto code = ErasureCode::create(shape, {.galois = product});
    ASSERT_TRUE(code.ok());
    block.encode(*code);
    for (unsigned i = 0; i < m; ++i)
      ASSERT_TRUE(std::equal(expected[i].begin(), expected[i].end(),
                             reinterpret_cast<const unsigned char*>(block.parity[i].data())))
          << "parity " << i;
    // As many data shards lost as can be, restored from as many parity shards.
    ShardSet present = first_shards(k);
    ShardSet held = first_shards(m);
    for (unsigned lost = static_cast<unsigned>(1 + random() % std::min(k, m)); lost > 0; --lost)
      present.reset(static_cast<std::size_t>(random() % k));
    for (std::size_t spare = m - (k - present.count()); spare > 0; --spare)
      held.reset(static_cast<std::size_t>(random() % m));
    block.lose(present, random);
    ASSERT_TRUE(block.decode(*code, present, held).ok());
    block.expect_intact();
    if (::testing::Test::HasFatalFailure()) return;
  }
}

TEST(ReedSolomon, EveryShapeUpTo32And8_IsThatOfIsal) {
  const std::uint64_t seed = test::test_seed();
  SCOPED_TRACE("SDR_TEST_SEED=" + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (unsigned k = 1; k <= 32; ++k)
    for (unsigned m = 1; m <= 8; ++m) {
      // Shards of no bytes among them, in every run.
      check_against_isal(k, m, k == 7 ? 0 : static_cast<std::size_t>(random() % 400), random);
      if (HasFatalFailure()) return;
    }
}

// The adaptive scheme uses all of GF(2^8).
TEST(ReedSolomon, RandomShapesBeyond_AreThoseOfIsal) {
  const std::uint64_t seed = test::test_seed();
  SCOPED_TRACE("SDR_TEST_SEED=" + std::to_string(seed));
  std::mt19937_64 random(seed);
  check_against_isal(239, 16, 4096, random);
  check_against_isal(1, 254, 33, random);
  check_against_isal(254, 1, 65, random);
  check_against_isal(128, 127, 100, random);
  for (int round = 0; round < 40; ++round) {
    const auto k = static_cast<unsigned>(33 + random() % 222);
    const auto m = static_cast<unsigned>(1 + random() % (kMaxShards - k));
    check_against_isal(k, m, static_cast<std::size_t>(random() % 700), random);
    if (HasFatalFailure()) return;
  }
}

// Blocks as large as those whose results are streamed, of user buffers at odd addresses too.
TEST(ReedSolomon, LargeBlocks_AreThoseOfIsal) {
  const std::uint64_t seed = test::test_seed();
  SCOPED_TRACE("SDR_TEST_SEED=" + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (const std::size_t bytes : {kStreamFrom / 8, kStreamFrom / 8 + 77}) check_against_isal(8, 3, bytes, random);
}

// A sender with one processor and a receiver with another must agree.
TEST(ReedSolomon, ParityOfOneImplementation_IsThatOfEveryOther) {
  std::mt19937_64 random(12);
  const CodeShape shape{CodeKind::ReedSolomon, 20, 12};
  test::Block block(shape, 17, ShardLength(5000, 4200), random);
  std::vector<std::vector<std::byte>> first;
  for (const GaloisProduct* product : galois_products()) {
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

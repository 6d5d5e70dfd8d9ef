// Every implementation of XorSum that this processor can run, against byte by byte and against ISA-L; and the XOR code
// on each.
#include "coding/xor_sum.hpp"

#include <gtest/gtest.h>
#include <isa-l.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "tests/coding/block.hpp"

namespace sdr::coding {
namespace {

using test::Guarded;

void check(const XorSum& sum, Stores stores, std::size_t sources, std::size_t bytes, std::mt19937_64& random) {
  std::vector<Guarded> in;
  for (std::size_t s = 0; s < sources; ++s) in.emplace_back(bytes, random(), random);
  Guarded out(bytes, random(), random);
  std::vector<const std::byte*> from;
  for (const auto& buffer : in) from.push_back(buffer.data());
  sum.apply(from, out.data(), bytes, stores);
  ASSERT_TRUE(out.canaries_alive());
  for (std::size_t at = 0; at < bytes; ++at) {
    std::byte expected{};
    for (const auto& buffer : in) expected ^= buffer.byte(at);
    ASSERT_EQ(out.byte(at), expected) << "byte " << at << " of " << bytes << ", sources " << sources;
  }
}

TEST(XorSum, EveryLengthAndAddress_IsExactAndStaysInside) {
  const std::uint64_t seed = test::test_seed();
  SCOPED_TRACE("SDR_TEST_SEED=" + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (const XorSum* sum : xor_sums()) {
    for (const Stores stores : {Stores::Cached, Stores::Streaming}) {
      SCOPED_TRACE(std::string(sum->name) + (stores == Stores::Cached ? ", cached" : ", streaming"));
      for (std::size_t bytes = 0; bytes <= 700; ++bytes) {
        check(*sum, stores, 1 + random() % 6, bytes, random);
        if (HasFatalFailure()) return;
      }
      for (const std::size_t sources : {1U, 2U, 31U, 254U}) check(*sum, stores, sources, 1000, random);
    }
  }
}

TEST(XorSum, OfAlignedBuffers_IsThatOfIsal) {
  std::mt19937_64 random(3);
  for (const XorSum* sum : xor_sums()) {
    SCOPED_TRACE(sum->name);
    for (const std::size_t bytes : {32U, 64U, 96U, 1024U, 4096U, 65536U}) {
      constexpr std::size_t kSources = 4;
      constexpr std::size_t kMost = 65536;
      alignas(64) static std::byte memory[kSources + 2][kMost];
      std::vector<const std::byte*> from;
      std::vector<void*> for_isal;
      for (std::size_t s = 0; s < kSources; ++s) {
        for (std::byte& byte : memory[s]) byte = static_cast<std::byte>(random());
        from.push_back(memory[s]);
        for_isal.push_back(memory[s]);
      }
      for_isal.push_back(memory[kSources]);
      ASSERT_EQ(xor_gen(kSources + 1, static_cast<int>(bytes), for_isal.data()), 0);
      sum->apply(from, memory[kSources + 1], bytes, Stores::Streaming);
      EXPECT_EQ(std::memcmp(memory[kSources], memory[kSources + 1], bytes), 0) << bytes;
    }
  }
}

TEST(XorCode, OnEveryImplementation_IsAsItsDefinition) {
  const std::uint64_t seed = test::test_seed();
  SCOPED_TRACE("SDR_TEST_SEED=" + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (const XorSum* sum : xor_sums()) {
    SCOPED_TRACE(sum->name);
    for (unsigned k = 1; k <= 32; ++k)
      for (unsigned m = 1; m <= std::min(k, 8U); ++m) {
        const CodeShape shape{CodeKind::Xor, k, m};
        auto code = ErasureCode::create(shape, {.sum = sum});
        ASSERT_TRUE(code.ok());
        const auto full = static_cast<std::size_t>(random() % 400);
        const auto shards = static_cast<unsigned>(1 + random() % k);
        test::Block block(shape, shards, ShardLength(full, random() % (full + 1)), random);
        block.encode(*code);
        block.expect_parity_as_reference();
        ShardSet present = first_shards(shards);  // but one of every group that there is
        for (unsigned group = 0; group < std::min(m, shards); ++group)
          present.reset(group + m * (random() % ((shards - group + m - 1) / m)));
        block.lose(present, random);
        ASSERT_TRUE(block.decode(*code, present, first_shards(m)).ok()) << k << "," << m;
        block.expect_intact();
        if (HasFatalFailure()) return;
      }
  }
}

// A group that a short block has no shard of has a parity of zeros, however long.
TEST(XorCode, GroupsWithoutData_HaveParityOfZeros) {
  std::mt19937_64 random(4);
  const CodeShape shape{CodeKind::Xor, 8, 8};
  test::Block block(shape, 3, ShardLength(10'000, 5), random);
  block.encode(test::make_code(shape));
  block.expect_parity_as_reference();
}

}  // namespace
}  // namespace sdr::coding

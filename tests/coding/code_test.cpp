// ErasureCode against a plain reference: every loss pattern of the small shapes, random ones of the large, all lengths.
#include "coding/code.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <new>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/coding/block.hpp"

namespace {

thread_local std::size_t allocations = 0;

}  // namespace

// Counted, so that a test can say: none. Not inlined: GCC would compare malloc with delete and warn.
[[gnu::noinline]] void* operator new(std::size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  ++allocations;
  return std::malloc(size == 0 ? 1 : size);
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}

namespace sdr::coding {
namespace {

using test::Block;
using test::make_code;

constexpr CodeKind kBothKinds[] = {CodeKind::Xor, CodeKind::ReedSolomon};

ShardSet random_set(unsigned size, unsigned lost, std::mt19937_64& random) {
  ShardSet set = first_shards(size);
  for (unsigned i = 0; i < lost;) {
    const auto at = static_cast<std::size_t>(random() % size);
    if (set[at]) {
      set.reset(at);
      ++i;
    }
  }
  return set;
}

TEST(ErasureCode, ShapesOutsideTheLimits_AreRefusedByName) {
  const CodeShape refused[] = {{CodeKind::ReedSolomon, 0, 1},   {CodeKind::ReedSolomon, 1, 0},
                               {CodeKind::ReedSolomon, 248, 8}, {CodeKind::ReedSolomon, 4'294'967'295U, 2},
                               {CodeKind::Xor, 4, 5},           {CodeKind::Xor, 0, 0},
                               {CodeKind::Xor, 200, 100}};
  for (const auto& shape : refused) {
    const auto code = ErasureCode::create(shape);
    ASSERT_FALSE(code.ok()) << shape.k << "," << shape.m;
    EXPECT_EQ(code.error().code, ErrorCode::InvalidArgument);
    EXPECT_NE(code.error().message.find(std::to_string(shape.k)), std::string::npos) << code.error().message;
  }
  const CodeShape taken[] = {{CodeKind::ReedSolomon, 1, 1},   {CodeKind::ReedSolomon, 1, 254},
                             {CodeKind::ReedSolomon, 247, 8}, {CodeKind::Xor, 1, 1},
                             {CodeKind::Xor, 8, 8},           {CodeKind::Xor, 247, 8}};
  for (const auto& shape : taken) EXPECT_TRUE(ErasureCode::create(shape).ok()) << shape.k << "," << shape.m;
}

TEST(ErasureCode, BlocksOutsideTheLimits_AreRefused) {
  std::mt19937_64 random(1);
  const CodeShape shape{CodeKind::ReedSolomon, 4, 2};
  const ErasureCode code = make_code(shape);
  Block block(shape, 4, ShardLength(16), random);
  const auto data = block.data_pointers();
  const auto parity = block.parity_pointers();
  EXPECT_FALSE(code.encode({}, parity, ShardLength(16)).ok());
  EXPECT_FALSE(code.encode(std::vector<const std::byte*>(5, data[0]), parity, ShardLength(16)).ok());
  EXPECT_FALSE(code.encode(data, std::vector<std::byte*>(3, parity[0]), ShardLength(16)).ok());
  EXPECT_FALSE(code.encode(data, parity, ShardLength(16), 1).ok());
  EXPECT_FALSE(code.encode(data, parity, ShardLength(16), 3).ok());
  EXPECT_FALSE(code.encode(data, parity, ShardLength(15, 16)).ok());
  EXPECT_TRUE(code.encode(data, {}, ShardLength(16), 2).ok());
  block.expect_intact();
}

// All k <= 8, m <= 4, every number of data shards in the block, every set of shards that arrived.
TEST(ErasureCode, EveryLossPatternOfSmallShapes_IsRestoredOrRefusedUntouched) {
  const std::uint64_t seed = test::test_seed();
  SCOPED_TRACE("SDR_TEST_SEED=" + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (const CodeKind kind : kBothKinds) {
    for (unsigned k = 1; k <= 8; ++k) {
      for (unsigned m = 1; m <= (kind == CodeKind::Xor ? std::min(k, 4U) : 4U); ++m) {
        const CodeShape shape{kind, k, m};
        const ErasureCode code = make_code(shape);
        for (unsigned shards = 1; shards <= k; ++shards) {
          Block block(shape, shards, ShardLength(11, 1 + random() % 11), random);
          block.encode(code);
          block.expect_parity_as_reference();
          for (unsigned pattern = 0; pattern < 1U << (shards + m); ++pattern) {
            const ShardSet data_present(pattern & ((1U << shards) - 1));
            const ShardSet parity_present(pattern >> shards);
            SCOPED_TRACE("k " + std::to_string(k) + " m " + std::to_string(m) + " shards " + std::to_string(shards) +
                         " pattern " + std::to_string(pattern));
            const bool possible = test::reference_can_decode(shape, data_present, parity_present, shards);
            ASSERT_EQ(code.can_decode(data_present, parity_present, shards), possible);
            Block lossy = block;
            lossy.lose(data_present, random);
            if (!possible) lossy.remember();
            ASSERT_EQ(lossy.decode(code, data_present, parity_present).ok(), possible);
            lossy.expect_intact();
            if (HasFatalFailure()) return;
          }
        }
      }
    }
  }
}

void check_random_losses(const CodeShape& shape, const ErasureCode& code, ShardLength length, std::mt19937_64& random) {
  const auto shards = static_cast<unsigned>(1 + random() % shape.k);
  Block block(shape, random() % 2 == 0 ? shape.k : shards, length, random);
  const auto count = static_cast<unsigned>(block.data.size());
  block.encode(code);
  block.expect_parity_as_reference();
  const auto parity_lost = static_cast<unsigned>(random() % (shape.m + 1));
  const ShardSet parity_present = random_set(shape.m, parity_lost, random);
  const unsigned most = std::min(count, shape.m - parity_lost);
  ShardSet data_present = random_set(count, static_cast<unsigned>(random() % (most + 1)), random);
  if (shape.kind == CodeKind::Xor) data_present |= code.needed(data_present, parity_present, count).shards;
  block.lose(data_present, random);
  const auto done = block.decode(code, data_present, parity_present);
  ASSERT_TRUE(done.ok()) << done.error().message;
  block.expect_intact();
}

TEST(ErasureCode, AllLengthsFromZeroTo130_UnalignedWithAShortTail_AreExact) {
  const std::uint64_t seed = test::test_seed();
  SCOPED_TRACE("SDR_TEST_SEED=" + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (const CodeKind kind : kBothKinds) {
    const CodeShape shape{kind, 32, 8};
    const ErasureCode code = make_code(shape);
    for (std::size_t full = 0; full <= 130; ++full) {
      SCOPED_TRACE("length " + std::to_string(full));
      check_random_losses(shape, code, ShardLength(full), random);
      check_random_losses(shape, code, ShardLength(full, random() % (full + 1)), random);
      if (HasFatalFailure()) return;
    }
  }
}

TEST(ErasureCode, ShardsOfSeveralStrips_WithTailsAroundTheirEdges_AreExact) {
  const std::uint64_t seed = test::test_seed();
  SCOPED_TRACE("SDR_TEST_SEED=" + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (const CodeKind kind : kBothKinds) {
    for (const CodeShape shape : {CodeShape{kind, 6, 3}, CodeShape{kind, 20, 5}}) {
      const ErasureCode code = make_code(shape);
      const std::size_t full = 2 * kStrip + 77;
      for (const std::size_t last : {std::size_t{0}, std::size_t{1}, kStrip - 1, kStrip, kStrip + 1, full - 1, full}) {
        check_random_losses(shape, code, ShardLength(full, last), random);
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST(ErasureCode, LargestShapes_RestoreAsMuchAsTheyPromise) {
  const std::uint64_t seed = test::test_seed();
  SCOPED_TRACE("SDR_TEST_SEED=" + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (const CodeShape shape : {CodeShape{CodeKind::ReedSolomon, 128, 32}, CodeShape{CodeKind::ReedSolomon, 128, 127},
                                CodeShape{CodeKind::ReedSolomon, 247, 8}, CodeShape{CodeKind::ReedSolomon, 1, 254}}) {
    const ErasureCode code = make_code(shape);
    for (int round = 0; round < 3; ++round) {
      Block block(shape, shape.k, ShardLength(67, 40), random);
      block.encode(code);
      const ShardSet data_present = random_set(shape.k, std::min(shape.k, shape.m), random);
      const ShardSet parity_present = first_shards(shape.m);
      block.lose(data_present, random);
      ASSERT_TRUE(block.decode(code, data_present, parity_present).ok());
      block.expect_intact();
    }
  }
}

TEST(ErasureCode, ParityFromALaterRowOn_IsTheSameAsAllAtOnce) {
  std::mt19937_64 random(7);
  for (const CodeKind kind : kBothKinds) {
    const CodeShape shape{kind, 16, 8};
    const ErasureCode code = make_code(shape);
    Block block(shape, 13, ShardLength(100, 30), random);
    for (unsigned first = 0; first < 8; first += 3) {
      auto parity = block.parity_pointers();
      const std::span<std::byte* const> some(parity.data() + first, std::min(3U, 8 - first));
      ASSERT_TRUE(code.encode(block.data_pointers(), some, block.length, first).ok());
    }
    block.expect_parity_as_reference();
  }
}

// Fresh parity: a sender that has sent m parity shards goes on with those of a code with more.
TEST(ReedSolomon, CodeWithMoreParity_ContinuesTheOneWithLess) {
  std::mt19937_64 random(8);
  const CodeShape small{CodeKind::ReedSolomon, 10, 3};
  const CodeShape large{CodeKind::ReedSolomon, 10, 9};
  Block block(large, 10, ShardLength(50), random);
  block.encode(make_code(large));
  auto parity = block.parity_pointers();
  std::vector<std::vector<std::byte>> before;
  for (unsigned i = 0; i < 3; ++i) before.push_back(block.parity[i].content());
  ASSERT_TRUE(make_code(small).encode(block.data_pointers(), {parity.data(), 3}, block.length).ok());
  for (unsigned i = 0; i < 3; ++i) EXPECT_EQ(block.parity[i].content(), before[i]);
}

TEST(Needed, WhatItAsksFor_IsEnoughAndNotOneTooMany) {
  const std::uint64_t seed = test::test_seed();
  SCOPED_TRACE("SDR_TEST_SEED=" + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (const CodeKind kind : kBothKinds) {
    const CodeShape shape{kind, 32, 8};
    const ErasureCode code = make_code(shape);
    for (int round = 0; round < 2000; ++round) {
      const auto shards = static_cast<unsigned>(1 + random() % 32);
      const ShardSet data = random_set(shards, static_cast<unsigned>(random() % (shards + 1)), random);
      const ShardSet parity = random_set(8, static_cast<unsigned>(random() % 9), random);
      const Needed needed = code.needed(data, parity, shards);
      ASSERT_EQ(needed.count, needed.shards.count());
      ASSERT_TRUE((needed.shards & data).none());
      ASSERT_TRUE((needed.shards & ~first_shards(shards)).none());
      ASSERT_TRUE(test::reference_can_decode(shape, data | needed.shards, parity, shards));
      for (std::size_t j = 0; j < shards; ++j) {
        if (!needed.shards[j]) continue;
        ShardSet less = data | needed.shards;
        less.reset(j);
        ASSERT_FALSE(test::reference_can_decode(shape, less, parity, shards));
      }
      ASSERT_EQ(needed.any, kind == CodeKind::ReedSolomon);
    }
  }
}

TEST(ErasureCode, Refusal_SaysHowMuchIsMissing) {
  std::mt19937_64 random(9);
  const CodeShape shape{CodeKind::ReedSolomon, 8, 2};
  Block block(shape, 8, ShardLength(16), random);
  const auto refused = block.decode(make_code(shape), ShardSet(0b00011111), ShardSet(0b10));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().message,
            "Reed-Solomon(8,2): 3 of 8 data shards are missing, 2 more than the 1 parity shards held can restore");
}

TEST(ErasureCode, ParityBeyondWhatIsHandedIn_DoesNotCount) {
  std::mt19937_64 random(10);
  const CodeShape shape{CodeKind::ReedSolomon, 4, 2};
  const ErasureCode code = make_code(shape);
  Block block(shape, 4, ShardLength(16), random);
  EXPECT_FALSE(code.decode(block.writable_data_pointers(), ShardSet(0b0111), {}, ~ShardSet{}, block.length).ok());
  block.expect_intact();
}

TEST(ErasureCode, SteadyState_AllocatesNothing) {
  std::mt19937_64 random(11);
  for (const CodeShape shape : {CodeShape{CodeKind::ReedSolomon, 32, 8}, CodeShape{CodeKind::ReedSolomon, 128, 32},
                                CodeShape{CodeKind::Xor, 32, 8}}) {
    const ErasureCode code = make_code(shape);
    for (const unsigned shards : {shape.k, shape.k - 3}) {
      Block block(shape, shards, ShardLength(200, 100), random);
      const auto data = block.writable_data_pointers();
      const auto readable = block.data_pointers();
      const auto parity = block.parity_pointers();
      const std::vector<const std::byte*> held(parity.begin(), parity.end());
      ShardSet data_present = first_shards(shards);
      for (std::size_t j = 0; j < shape.m; ++j) data_present.reset(j);
      std::size_t before = 0;
      bool ok = true;
      for (int round = 0; round < 3; ++round) {
        if (round == 1) before = allocations;
        ok = ok && code.encode(readable, parity, block.length).ok();
        ok = ok && code.decode(data, data_present, held, first_shards(shape.m), block.length).ok();
      }
      EXPECT_TRUE(ok);
      EXPECT_EQ(allocations, before) << shape.k << "," << shape.m;
      block.expect_intact();
    }
  }
}

TEST(ErasureCode, OneCodeOnSeveralThreads_GivesEachItsOwn) {
  const CodeShape shape{CodeKind::ReedSolomon, 16, 4};
  const ErasureCode code = make_code(shape);
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937_64 random(t);
      for (int round = 0; round < 50; ++round) check_random_losses(shape, code, ShardLength(130, 33), random);
    });
  }
  for (auto& thread : threads) thread.join();
}

}  // namespace
}  // namespace sdr::coding

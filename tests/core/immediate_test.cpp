#include "core/immediate.hpp"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "core/chunk_fold.hpp"
#include "tests/core/seed.hpp"

namespace sdr::core {
namespace {

using testing_support::seed_trace;
using testing_support::test_seed;

std::vector<ImmediateLayout> every_valid_split() {
  std::vector<ImmediateLayout> splits;
  for (int id = 0; id <= 32; ++id) {
    for (int user = 0; user <= 32; ++user) {
      const ImmediateLayout layout{static_cast<std::uint8_t>(id), static_cast<std::uint8_t>(32 - id - user),
                                   static_cast<std::uint8_t>(user)};
      if (id + user <= 32 && layout.valid()) splits.push_back(layout);
    }
  }
  return splits;
}

TEST(Immediate, EveryValidSplit_IsOneOfSixteenIdsByFiveUserSizes) {
  EXPECT_EQ(every_valid_split().size(), 16U * 5U);
}

TEST(Immediate, EverySplit_RoundTripsAtAllBitBorders) {
  for (const ImmediateLayout& layout : every_valid_split()) {
    std::vector<std::uint32_t> slots{0, layout.max_slots() - 1};
    for (std::uint32_t bit = 1; bit < layout.max_slots(); bit <<= 1) slots.insert(slots.end(), {bit, bit - 1});
    std::vector<std::uint32_t> offsets{0, layout.max_packets() - 1};
    for (std::uint32_t bit = 1; bit < layout.max_packets(); bit <<= 1) offsets.insert(offsets.end(), {bit, bit - 1});
    for (const std::uint32_t slot : slots) {
      for (const std::uint32_t offset : offsets) {
        for (const std::uint32_t user : {0U, ~0U, 0xA5C3F019U}) {
          const Immediate back = layout.decode(layout.encode(SlotIndex(slot), PacketOffset(offset), user));
          ASSERT_EQ(back.slot.value, slot);
          ASSERT_EQ(back.offset.value, offset);
          ASSERT_LT(back.user_fragment, 1U << layout.user_bits);
        }
      }
    }
  }
}

TEST(Immediate, DefaultSplit_LaysTheFieldsOutAsDocumented) {
  const ImmediateLayout layout;
  EXPECT_EQ(layout.encode(SlotIndex(1023), PacketOffset(0), 0), 0xFFC00000U);
  EXPECT_EQ(layout.encode(SlotIndex(0), PacketOffset(0x3FFFF), 0), 0x003FFFF0U);
  EXPECT_EQ(layout.encode(SlotIndex(0), PacketOffset(0), 0x0000000FU), 0x0000000FU);
  EXPECT_EQ(layout.max_slots(), 1024U);
  EXPECT_EQ(layout.max_packets(), 1U << 18);
  EXPECT_EQ(layout.fragments(), 8U);
}

TEST(Immediate, UserImmediate_IsReassembledFromAnyRunOfPackets) {
  const std::uint64_t seed = test_seed(11);
  SCOPED_TRACE(seed_trace(seed));
  std::mt19937_64 random(seed);
  for (const ImmediateLayout& layout : every_valid_split()) {
    if (layout.user_bits == 0) {
      EXPECT_EQ(layout.fragments(), 0U);
      EXPECT_EQ(layout.decode(layout.encode(SlotIndex(1), PacketOffset(2), ~0U)).user_fragment, 0U);
      continue;
    }
    const auto user = static_cast<std::uint32_t>(random());
    const auto first = static_cast<std::uint32_t>(random() % (layout.max_packets() - layout.fragments()));
    std::uint32_t assembled = 0;
    for (std::uint32_t i = 0; i < layout.fragments(); ++i) {
      const Immediate packet = layout.decode(layout.encode(SlotIndex(0), PacketOffset(first + i), user));
      assembled |= packet.user_fragment << (packet.offset.value % layout.fragments() * layout.user_bits);
    }
    EXPECT_EQ(assembled, user);
  }
}

TEST(Immediate, InvalidSplits_AreRefused) {
  EXPECT_TRUE((ImmediateLayout{10, 18, 4}.valid()));
  EXPECT_TRUE((ImmediateLayout{8, 22, 2}.valid()));
  EXPECT_TRUE((ImmediateLayout{16, 16, 0}.valid()));
  EXPECT_FALSE((ImmediateLayout{10, 18, 3}.valid())) << "31 bits, and fragments that do not divide 32";
  EXPECT_FALSE((ImmediateLayout{10, 19, 4}.valid())) << "33 bits";
  EXPECT_FALSE((ImmediateLayout{0, 28, 4}.valid())) << "no message id";
  EXPECT_FALSE((ImmediateLayout{17, 15, 0}.valid())) << "more slots than a table has";
  EXPECT_FALSE((ImmediateLayout{10, 6, 16}.valid())) << "user bits beyond 8";
  EXPECT_FALSE((ImmediateLayout{255, 1, 32}.valid())) << "288 bits, 32 modulo 256";
}

TEST(ChunkFold, BitRange_CoversWhatItSays) {
  for (std::uint32_t from = 0; from <= 64; ++from) {
    for (std::uint32_t to = from; to <= 64; ++to) {
      std::uint64_t expected = 0;
      for (std::uint32_t bit = from; bit < to; ++bit) expected |= std::uint64_t{1} << bit;
      ASSERT_EQ(bit_range(from, to), expected) << from << " " << to;
    }
  }
  EXPECT_EQ(bit_range(3, 200), ~std::uint64_t{7}) << "past the word";
}

// Seven of eight bits set, so that whole chunks are.
std::uint64_t mostly_set(std::mt19937_64& random) {
  std::uint64_t word = 0;
  for (int draw = 0; draw < 3; ++draw) word |= random();
  return word;
}

TEST(ChunkFold, FullChunks_AgreeWithCounting) {
  const std::uint64_t seed = test_seed(12);
  SCOPED_TRACE(seed_trace(seed));
  std::mt19937_64 random(seed);
  for (int round = 0; round < 20000; ++round) {
    std::uint64_t word = mostly_set(random);
    if (round % 4 == 0) word |= mostly_set(random);
    if (round % 100 == 0) word = round % 200 == 0 ? 0 : ~std::uint64_t{0};
    for (std::uint32_t log = 0; log <= 6; ++log) {
      const std::uint32_t per_chunk = 1U << log;
      std::uint64_t expected = 0;
      for (std::uint32_t first = 0; first < 64; first += per_chunk) {
        const std::uint64_t chunk = bit_range(first, first + per_chunk);
        if ((word & chunk) == chunk) expected |= std::uint64_t{1} << (first + per_chunk - 1);
      }
      ASSERT_EQ(full_chunks(word, log), expected) << std::hex << word << " log " << log;
      std::uint64_t side_by_side = 0;
      for (std::uint32_t chunk = 0; chunk < 64U >> log; ++chunk)
        side_by_side |= (expected >> ((chunk << log) + per_chunk - 1) & 1) << chunk;
      ASSERT_EQ(gather_chunks(expected, log), side_by_side) << std::hex << word << " log " << log;
    }
  }
}

}  // namespace
}  // namespace sdr::core

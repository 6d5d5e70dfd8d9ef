// The entry is what an mlx5 device writes, to the byte.
#include "offload/completion_entry.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <map>
#include <random>
#include <utility>
#include <vector>

#include "offload/completion_ring.hpp"
#include "offload/entry_gather.hpp"

#if __has_include(<infiniband/mlx5dv.h>)
#include <infiniband/mlx5dv.h>
#define SDR_HAVE_MLX5DV
#endif

namespace sdr::offload {
namespace {

TEST(CompletionEntry, NumbersAreBigEndian) {
  CompletionEntry entries[2]{};
  for (CompletionEntry& entry : entries) entry.ownership = CompletionEntry::kInvalid | 1;
  RingRecord record{};
  RingProducer<> ring(entries, 1, &record);
  ASSERT_TRUE(ring.push({.immediate = 0x01020304, .length = 0x0506, .generation = 7, .channel = 8}));
  unsigned char bytes[64];
  std::memcpy(bytes, static_cast<const void*>(entries), 64);
  EXPECT_EQ(bytes[34], 8);
  EXPECT_EQ(bytes[35], 7);
  EXPECT_EQ(bytes[36], 1);
  EXPECT_EQ(bytes[39], 4);
  EXPECT_EQ(bytes[46], 5);
  EXPECT_EQ(bytes[47], 6);
  EXPECT_EQ(bytes[63], 0x10) << "RDMA Write with immediate, first lap";
}

// A batch that writes down what it was given.
struct Recorder {
  void take(const core::Completion& completion) { taken.push_back(completion); }
  void take_fragment(const core::Immediate&, std::uint8_t) { blocked &= ~released; }
  [[nodiscard]] std::uint64_t not_to_mark(core::SlotIndex, std::uint32_t, std::uint8_t) const { return blocked; }
  void mark_word(core::SlotIndex slot, std::uint32_t word, std::uint64_t mask) { words[{slot.value, word}] |= mask; }
  void count_marked(std::uint32_t packets) { marked += packets; }
  void count_duplicate() { ++duplicates; }
  std::uint64_t blocked = 0;
  std::uint64_t released = 0;  // of those, by a fragment
  std::vector<core::Completion> taken;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> words;
  std::uint32_t marked = 0;
  std::uint32_t duplicates = 0;
};

struct Ring {
  explicit Ring(std::uint32_t log)
      : entries(std::size_t{1} << log), producer(entries.data(), log, &record), consumer(entries.data(), log, &record) {
    for (CompletionEntry& entry : entries) entry.ownership = CompletionEntry::kInvalid | 1;
  }
  std::uint32_t take(Recorder& recorder) {
    const ReadyEntries ready = consumer.ready(64);
    const std::uint32_t errors = gather.take(ready, recorder);
    gather.finish(recorder);
    consumer.give_back(ready);
    return errors;
  }
  std::vector<CompletionEntry> entries;
  RingRecord record{};
  RingProducer<> producer;
  RingConsumer<> consumer;
  EntryGather gather{core::ImmediateLayout{}, 4096};
};

TEST(CompletionRing, FullRing_TakesNothingUntilItsEntriesAreGivenBack) {
  Ring ring(1);
  for (std::uint32_t lap = 0; lap < 5; ++lap) {
    EXPECT_TRUE(ring.consumer.ready(64).empty());
    ASSERT_TRUE(ring.producer.push({.immediate = 2 * lap, .length = 4096, .generation = 1}));
    ASSERT_TRUE(ring.producer.push({.immediate = 2 * lap + 1, .length = 17, .generation = 2}));
    EXPECT_FALSE(ring.producer.push({}));
    Recorder recorder;
    recorder.blocked = ~std::uint64_t{0};
    EXPECT_EQ(ring.take(recorder), 0U);
    ASSERT_EQ(recorder.taken.size(), 2U);
    EXPECT_EQ(recorder.taken[0].immediate, 2 * lap);
    EXPECT_EQ(recorder.taken[0].length, 4096);
    EXPECT_EQ(recorder.taken[1].immediate, 2 * lap + 1);
    EXPECT_EQ(recorder.taken[1].length, 17);
    EXPECT_EQ(recorder.taken[1].generation, 2);
    EXPECT_EQ(ring.producer.consumed(), 2 * lap + 2);
  }
}

TEST(CompletionRing, ErrorsAmongPackets_AreCountedAndPassedOver) {
  Ring ring(3);
  ASSERT_TRUE(ring.producer.push({.immediate = 1, .length = 4096}));
  ASSERT_TRUE(ring.producer.push_error());
  ASSERT_TRUE(ring.producer.push({.immediate = 2, .length = 4096}));
  Recorder recorder;
  EXPECT_EQ(ring.take(recorder), 1U);
  EXPECT_EQ(ring.take(recorder), 0U);
  EXPECT_EQ(recorder.marked, 2U);
  EXPECT_EQ(ring.producer.consumed(), 3U);
}

// At least half of what there is, never beyond the lap or what was asked for, and nothing is lost or seen twice.
TEST(CompletionRing, WhateverLiesReady_IsFoundInTurns) {
  for (std::uint32_t waiting = 1; waiting <= 32; ++waiting) {
    for (std::uint32_t begun = 0; begun < 32; ++begun) {
      Ring ring(5);
      for (std::uint32_t i = 0; i < begun; ++i) ASSERT_TRUE(ring.producer.push({.immediate = i}));
      for (std::uint32_t taken = 0; taken < begun;) {
        const ReadyEntries ready = ring.consumer.ready(64);
        taken += static_cast<std::uint32_t>(ready.end - ready.begin);
        ring.consumer.give_back(ready);
      }
      for (std::uint32_t i = 0; i < waiting; ++i) ASSERT_TRUE(ring.producer.push({.immediate = begun + i}));
      std::uint32_t seen = 0;
      for (ReadyEntries ready = ring.consumer.ready(20); !ready.empty(); ready = ring.consumer.ready(20)) {
        const auto found = static_cast<std::uint32_t>(ready.end - ready.begin);
        const std::uint32_t lap = std::min(waiting - seen, 32 - (begun + seen) % 32);
        ASSERT_LE(found, std::min(20U, lap));
        ASSERT_GE(2 * found, std::min(20U, lap)) << waiting << " from " << begun;
        for (std::uint32_t i = 0; i < found; ++i)
          ASSERT_EQ(swap_bytes(ready.begin[i].immediate_be), begun + seen + i) << waiting << " from " << begun;
        seen += found;
        ring.consumer.give_back(ready);
      }
      ASSERT_EQ(seen, waiting);
    }
  }
}

constexpr core::ImmediateLayout kLayout;
core::Completion packet(std::uint32_t slot, std::uint32_t offset, std::uint16_t length = 4096,
                        std::uint8_t generation = 1) {
  return {.immediate = kLayout.encode(core::SlotIndex(slot), core::PacketOffset(offset), 0x76543210),
          .length = length,
          .generation = generation};
}
constexpr std::uint64_t bit(std::uint32_t n) {
  return std::uint64_t{1} << n;
}

TEST(EntryGather, FullPackets_BecomeBitsOfTheirWordsWithoutALook) {
  Ring ring(5);
  for (const core::Completion& completion : {packet(3, 128), packet(3, 130), packet(4, 193), packet(3, 191),
                                             packet(3, 192), packet(1000, 0), packet(4, 194)})
    ASSERT_TRUE(ring.producer.push(completion));
  Recorder recorder;
  for (int i = 0; i < 5; ++i) ring.take(recorder);
  EXPECT_TRUE(recorder.taken.empty());
  EXPECT_EQ(recorder.marked, 7U);
  EXPECT_EQ((recorder.words[{3, 2}]), bit(0) | bit(2) | bit(63));
  EXPECT_EQ((recorder.words[{3, 3}]), bit(0));
  EXPECT_EQ((recorder.words[{4, 3}]), bit(1) | bit(2));
  EXPECT_EQ((recorder.words[{1000, 0}]), bit(0));
  EXPECT_EQ(recorder.words.size(), 4U);
}

TEST(EntryGather, ShortAndRefusedPackets_AreHandedOverAndDuplicatesCounted) {
  Ring ring(3);
  const std::vector<core::Completion> pushed = {packet(3, 5), packet(3, 6, 4000), packet(3, 7), packet(3, 5),
                                                packet(3, 8), packet(3, 9),       packet(3, 8), packet(3, 6)};
  for (const core::Completion& completion : pushed) ASSERT_TRUE(ring.producer.push(completion));
  Recorder recorder;
  recorder.blocked = bit(7);
  ring.take(recorder);
  ASSERT_EQ(recorder.taken.size(), 2U);
  EXPECT_EQ(recorder.taken[0].immediate, pushed[1].immediate);
  EXPECT_EQ(recorder.taken[0].length, 4000);
  EXPECT_EQ(recorder.taken[0].generation, 1);
  EXPECT_EQ(recorder.taken[1].immediate, pushed[2].immediate);
  EXPECT_EQ(recorder.marked, 6U);
  EXPECT_EQ(recorder.duplicates, 2U);
  EXPECT_EQ((recorder.words[{3, 0}]), bit(5) | bit(6) | bit(8) | bit(9));
}

TEST(EntryGather, WordHeldUpByAFragment_IsFreeOnceThatHasCome) {
  Ring ring(2);
  for (const std::uint32_t offset : {0U, 8U, 16U, 1U}) ASSERT_TRUE(ring.producer.push(packet(2, offset)));
  Recorder recorder;
  recorder.blocked = ~std::uint64_t{0};
  recorder.released = 0x0101'0101'0101'0101;
  ring.take(recorder);
  EXPECT_EQ((recorder.words[{2, 0}]), bit(0) | bit(8) | bit(16));
  EXPECT_EQ(recorder.marked, 3U);
  ASSERT_EQ(recorder.taken.size(), 1U);
}

// Names are bytes as they lie: every split of the immediate must come out as its decoder says.
TEST(EntryGather, EverySplitOfTheImmediate_GivesTheDecodersWordAndBit) {
  std::mt19937 random(7);
  for (const int user_bits : {0, 1, 2, 4, 8}) {
    for (int offset_bits = 1; offset_bits + user_bits < 32; ++offset_bits) {
      const int id_bits = 32 - offset_bits - user_bits;
      const core::ImmediateLayout layout{static_cast<std::uint8_t>(id_bits), static_cast<std::uint8_t>(offset_bits),
                                         static_cast<std::uint8_t>(user_bits)};
      if (!layout.valid()) continue;
      Ring ring(8);
      ring.gather = EntryGather(layout, 4096);
      std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> expected;
      for (int i = 0; i < 200; ++i) {
        const auto drawn = static_cast<std::uint32_t>(random());
        const std::uint32_t immediate = i % 2 == 0 ? drawn : drawn & 0x1FFF'FFFF >> (i % 29);
        const core::Immediate decoded = layout.decode(immediate);
        expected[{decoded.slot.value, decoded.offset.value / 64}] |= bit(decoded.offset.value % 64);
        ASSERT_TRUE(ring.producer.push({.immediate = immediate, .length = 4096, .generation = 3}));
      }
      Recorder recorder;
      for (int i = 0; i < 20; ++i) ring.take(recorder);
      if (offset_bits < 6) {
        EXPECT_EQ(recorder.taken.size(), 200U) << "slots of less than a word";
        continue;
      }
      EXPECT_EQ(recorder.words, expected) << id_bits << "+" << offset_bits << "+" << user_bits;
    }
  }
}

#ifdef SDR_HAVE_MLX5DV
TEST(CompletionEntry, LiesAsMlx5Defines) {
  static_assert(sizeof(CompletionEntry) == sizeof(mlx5_cqe64));
  EXPECT_EQ(offsetof(CompletionEntry, user_index), offsetof(mlx5_cqe64, srqn_uidx));
  EXPECT_EQ(offsetof(CompletionEntry, immediate_be), offsetof(mlx5_cqe64, imm_inval_pkey));
  EXPECT_EQ(offsetof(CompletionEntry, byte_count_be), offsetof(mlx5_cqe64, byte_cnt));
  EXPECT_EQ(offsetof(CompletionEntry, timestamp_be), offsetof(mlx5_cqe64, timestamp));
  EXPECT_EQ(offsetof(CompletionEntry, queue_pair_be), offsetof(mlx5_cqe64, sop_drop_qpn));
  EXPECT_EQ(offsetof(CompletionEntry, work_counter_be), offsetof(mlx5_cqe64, wqe_counter));
  EXPECT_EQ(offsetof(CompletionEntry, ownership), offsetof(mlx5_cqe64, op_own));
  EXPECT_EQ(CompletionEntry::kWriteWithImmediate, MLX5_CQE_RESP_WR_IMM << 4);
  EXPECT_EQ(CompletionEntry::kError, MLX5_CQE_RESP_ERR << 4);
  EXPECT_EQ(CompletionEntry::kInvalid, MLX5_CQE_INVALID << 4);
  EXPECT_EQ(MLX5_CQE_OWNER_MASK, 1);
}
#endif

}  // namespace
}  // namespace sdr::offload

// One thread's view of the message table: what completions, in any order, do to the bitmaps.
#include "core/receive_worker.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

#include "tests/core/seed.hpp"
#include "tests/core/table.hpp"

namespace sdr::core {
namespace {

using testing_support::seed_trace;
using testing_support::test_seed;

// Feeds `completions` in batches of random size.
void feed(ReceiveWorker& worker, std::span<const Completion> completions, std::mt19937_64& random) {
  while (!completions.empty()) {
    const std::size_t n = std::min<std::size_t>(completions.size(), 1 + random() % 40);
    worker.process(completions.first(n));
    completions = completions.subspan(n);
  }
}

class ChunkSizes : public testing::TestWithParam<int> {
 protected:
  [[nodiscard]] std::uint8_t log() const { return static_cast<std::uint8_t>(GetParam()); }
  [[nodiscard]] std::uint32_t per_chunk() const { return 1U << GetParam(); }
};
INSTANTIATE_TEST_SUITE_P(From1To256Packets, ChunkSizes, testing::Range(0, 9),
                         [](const auto& test) { return std::to_string(1 << test.param) + "Packets"; });

TEST_P(ChunkSizes, InOrder_EachChunkIsPublishedWithItsLastPacket) {
  const std::uint32_t packets = 3 * per_chunk() + (per_chunk() > 1 ? 1 : 0);
  TestTable t(TestTable::geometry(packets, log()));
  ReceiveWorker worker(t.table, kTestMtu);
  t.table.post(SlotIndex(2), Generation(5), packets);
  for (std::uint32_t p = 0; p < packets; ++p) {
    const std::uint32_t complete_before = p / per_chunk();
    ASSERT_EQ(t.chunks_set(2), complete_before) << "before packet " << p;
    const Completion completion = t.packet(2, p, kTestMtu, 5);
    worker.process({&completion, 1});
  }
  const std::uint32_t chunks = (packets + per_chunk() - 1) / per_chunk();
  EXPECT_EQ(t.chunks_set(2), chunks);
  for (std::uint32_t c = 0; c < chunks; ++c) EXPECT_TRUE(t.chunk(2, c));
  EXPECT_EQ(worker.counters().packets.get(), packets);
  EXPECT_EQ(worker.counters().duplicates.get() + worker.counters().late.get() + worker.counters().out_of_range.get(),
            0U);
}

TEST_P(ChunkSizes, ShuffledWithDuplicates_EachPacketCountsOnce) {
  const std::uint64_t seed = test_seed(21);
  SCOPED_TRACE(seed_trace(seed));
  std::mt19937_64 random(seed);
  const std::uint32_t packets = 700;
  TestTable t(TestTable::geometry(packets, log()));
  ReceiveWorker worker(t.table, kTestMtu);
  t.table.post(SlotIndex(1), Generation(0), packets);
  std::vector<Completion> completions;
  for (std::uint32_t p = 0; p < packets; ++p) completions.insert(completions.end(), 1 + p % 3, t.packet(1, p));
  std::shuffle(completions.begin(), completions.end(), random);
  feed(worker, completions, random);
  EXPECT_EQ(worker.counters().packets.get(), packets);
  EXPECT_EQ(worker.counters().duplicates.get(), completions.size() - packets);
  EXPECT_EQ(t.chunks_set(1), (packets + per_chunk() - 1) / per_chunk());
}

// More words than a batch keeps open (receive_batch.hpp), of four messages at once, and large batches.
TEST_P(ChunkSizes, BatchesOfSeveralMessagesAllOverThePlace_SetEachPacketOfEachOnce) {
  const std::uint64_t seed = test_seed(23);
  SCOPED_TRACE(seed_trace(seed));
  std::mt19937_64 random(seed);
  const std::uint32_t packets = 3001;  // 47 words each
  TestTable t(TestTable::geometry(packets, log()));
  ReceiveWorker worker(t.table, kTestMtu);
  std::vector<Completion> completions;
  for (std::uint32_t slot = 0; slot < 4; ++slot) {
    t.table.post(SlotIndex(slot), Generation(7), packets);
    for (std::uint32_t p = 0; p < packets; ++p) {
      const std::uint16_t length = p + 1 == packets ? 100 : kTestMtu;
      completions.insert(completions.end(), 1 + random() % 2, t.packet(slot, p, length, 7));
    }
    completions.push_back(t.packet(slot, 5, kTestMtu, 6));        // late
    completions.push_back(t.packet(slot, 200'000, kTestMtu, 7));  // out of range
  }
  std::shuffle(completions.begin(), completions.end(), random);
  std::span<const Completion> left(completions);
  while (!left.empty()) {
    const std::size_t n = std::min<std::size_t>(left.size(), 1 + random() % 256);
    worker.process(left.first(n));
    left = left.subspan(n);
  }
  EXPECT_EQ(worker.counters().packets.get(), 4 * packets);
  EXPECT_EQ(worker.counters().late.get(), 4U);
  EXPECT_EQ(worker.counters().out_of_range.get(), 4U);
  EXPECT_EQ(worker.counters().duplicates.get(), completions.size() - 8 - 4 * packets);
  for (std::uint32_t slot = 0; slot < 4; ++slot) {
    EXPECT_EQ(t.chunks_set(slot), (packets + per_chunk() - 1) / per_chunk());
    t.close_and_clean(slot);
  }
  EXPECT_TRUE(t.all_zero());
}

TEST_P(ChunkSizes, OneMissingPacket_HoldsBackItsChunkOnly) {
  const std::uint32_t packets = 3 * per_chunk();
  for (const std::uint32_t missing : {0U, per_chunk() - 1, per_chunk(), 2 * per_chunk() - 1, packets - 1}) {
    TestTable t(TestTable::geometry(packets, log()));
    ReceiveWorker worker(t.table, kTestMtu);
    t.table.post(SlotIndex(0), Generation(0), packets);
    std::vector<Completion> completions;
    for (std::uint32_t p = 0; p < packets; ++p)
      if (p != missing) completions.push_back(t.packet(0, p));
    worker.process(completions);
    for (std::uint32_t c = 0; c < 3; ++c) ASSERT_EQ(t.chunk(0, c), c != missing / per_chunk()) << "missing " << missing;
    const Completion late_comer = t.packet(0, missing);
    worker.process({&late_comer, 1});
    ASSERT_EQ(t.chunks_set(0), 3U);
  }
}

// A message shorter than the posted buffer ends with a short packet, or with a full one and a zero-length marker, and
// those come before, among or after the others.
TEST_P(ChunkSizes, ShortMessage_CompletesInAnyOrderAndNothingBehindItDoes) {
  const std::uint64_t seed = test_seed(22);
  SCOPED_TRACE(seed_trace(seed));
  std::mt19937_64 random(seed);
  const std::uint32_t capacity = 5 * per_chunk();
  for (int round = 0; round < 60; ++round) {
    TestTable t(TestTable::geometry(capacity, log()));
    ReceiveWorker worker(t.table, kTestMtu);
    t.table.post(SlotIndex(0), Generation(0), capacity);
    const auto packets = static_cast<std::uint32_t>(1 + random() % (capacity - 1));
    const bool short_last = round % 2 == 0;
    std::vector<Completion> completions;
    for (std::uint32_t p = 0; p < packets; ++p)
      completions.push_back(t.packet(0, p, short_last && p + 1 == packets ? 1 : kTestMtu));
    // The marker, and zero-length packets behind it that carry user fragments.
    if (!short_last)
      for (std::uint32_t extra = 0; extra < 1 + random() % 9; ++extra)
        completions.push_back(t.packet(0, packets + extra, 0));
    std::shuffle(completions.begin(), completions.end(), random);
    feed(worker, completions, random);
    const std::uint32_t chunks = (packets + per_chunk() - 1) / per_chunk();
    ASSERT_EQ(t.chunks_set(0), chunks) << packets << " packets, short last " << short_last;
    for (std::uint32_t c = 0; c < chunks; ++c) ASSERT_TRUE(t.chunk(0, c));
    ASSERT_EQ(worker.counters().packets.get(), packets);
    t.close_and_clean(0);
    ASSERT_TRUE(t.all_zero());
  }
}

TEST_P(ChunkSizes, LengthLearntOtherwise_CompletesTheShortLastChunk) {
  const std::uint32_t capacity = 3 * per_chunk();
  for (std::uint32_t packets = 1; packets <= capacity; ++packets) {
    for (const bool length_first : {false, true}) {
      TestTable t(TestTable::geometry(capacity, log()));
      ReceiveWorker worker(t.table, kTestMtu);
      t.table.post(SlotIndex(0), Generation(0), capacity);
      if (length_first) ReceiveWorker::apply_end(t.table, SlotIndex(0), packets);
      std::vector<Completion> completions;
      for (std::uint32_t p = 0; p < packets; ++p) completions.push_back(t.packet(0, p));
      worker.process(completions);
      if (!length_first) ReceiveWorker::apply_end(t.table, SlotIndex(0), packets);
      ASSERT_EQ(t.chunks_set(0), (packets + per_chunk() - 1) / per_chunk()) << packets;
      t.close_and_clean(0);
      ASSERT_TRUE(t.all_zero());
    }
  }
}

TEST_P(ChunkSizes, CleanedSlot_IsZeroAndServesTheNextGeneration) {
  const std::uint64_t seed = test_seed(23);
  SCOPED_TRACE(seed_trace(seed));
  std::mt19937_64 random(seed);
  const std::uint32_t capacity = 6 * per_chunk();
  TestTable t(TestTable::geometry(capacity, log()));
  ReceiveWorker worker(t.table, kTestMtu);
  for (std::uint32_t use = 0; use < 30; ++use) {
    const auto generation = static_cast<std::uint8_t>(use % 8);
    const auto packets = static_cast<std::uint32_t>(random() % (capacity + 1));
    t.table.post(SlotIndex(3), Generation(generation), packets);
    std::vector<Completion> completions;
    for (std::uint32_t p = 0; p < packets; ++p)
      if (random() % 4 != 0) completions.push_back(t.packet(3, p, kTestMtu, generation, 0xABCD1234));
    feed(worker, completions, random);
    t.close_and_clean(3);
    ASSERT_TRUE(t.all_zero()) << "use " << use << " of " << packets << " packets";
  }
}

TEST(ReceiveWorker, LatePacketOfAnotherGeneration_TouchesNothing) {
  TestTable t(TestTable::geometry(64, 2));
  ReceiveWorker worker(t.table, kTestMtu);
  t.table.post(SlotIndex(0), Generation(3), 64);
  std::vector<Completion> completions;
  for (std::uint8_t generation = 0; generation < 8; ++generation)
    if (generation != 3) completions.push_back(t.packet(0, generation, kTestMtu, generation, ~0U));
  completions.push_back(t.packet(0, 20, 0, 2, ~0U));
  worker.process(completions);
  EXPECT_EQ(worker.counters().late.get(), completions.size());
  EXPECT_FALSE(t.slots[0].arrived);
  EXPECT_EQ(t.slots[0].words_touched, 0U);
  EXPECT_EQ(t.slots[0].fragments_seen, 0U);
  t.close_and_clean(0);
  EXPECT_TRUE(t.all_zero());
}

TEST(ReceiveWorker, ClosedSlot_TakesNothing) {
  TestTable t(TestTable::geometry(64, 2));
  ReceiveWorker worker(t.table, kTestMtu);
  std::vector<Completion> completions{t.packet(0, 0), t.packet(1, 5, 7), t.packet(2, 6, 0)};
  worker.process(completions);
  t.table.post(SlotIndex(0), Generation(0), 64);
  t.close_and_clean(0);
  worker.process(completions);
  EXPECT_EQ(worker.counters().late.get(), 6U);
  EXPECT_TRUE(t.all_zero());
}

TEST(ReceiveWorker, OffsetsAndSlotsOutOfRange_TouchNothing) {
  TestTable t(TestTable::geometry(128, 2, 4));
  ReceiveWorker worker(t.table, kTestMtu);
  t.table.post(SlotIndex(3), Generation(0), 70);
  const std::uint64_t before = t.packet_bits[3 * 2 + 1];
  const std::vector<Completion> completions{t.packet(4, 0),   t.packet(1023, 0),      t.packet(3, 70),
                                            t.packet(3, 127), t.packet(3, 128, 1000), t.packet(3, (1U << 18) - 1)};
  worker.process(completions);
  EXPECT_EQ(worker.counters().out_of_range.get(), completions.size());
  EXPECT_EQ(worker.counters().packets.get(), 0U);
  EXPECT_EQ(t.packet_bits[3 * 2 + 1], before);
  EXPECT_FALSE(t.slots[3].arrived) << "nothing of the message has arrived";
  t.close_and_clean(3);
  EXPECT_TRUE(t.all_zero());
}

TEST(ReceiveWorker, EndMarkerFarPastTheTable_IsNotedAndHarmless) {
  TestTable t(TestTable::geometry(64, 2, 2));
  ReceiveWorker worker(t.table, kTestMtu);
  t.table.post(SlotIndex(0), Generation(0), 10);
  t.table.post(SlotIndex(1), Generation(0), 64);
  const Completion neighbour = t.packet(1, 7);
  worker.process({&neighbour, 1});
  for (const std::uint32_t offset : {63U, 64U, 65U, 4000U, (1U << 18) - 1}) {
    const Completion marker = t.packet(0, offset, 0);
    worker.process({&marker, 1});
  }
  EXPECT_TRUE(t.slots[0].arrived) << "a message of no bytes has been seen";
  EXPECT_EQ(t.chunks_set(0), 0U);
  t.close_and_clean(0);
  EXPECT_EQ(t.packet_bits[1], std::uint64_t{1} << 7) << "cleaning stays in its own slot";
  t.close_and_clean(1);
  EXPECT_TRUE(t.all_zero());
}

TEST(ReceiveWorker, Clean_CostsTheWordsThatWereTouched) {
  for (const std::uint8_t log : {std::uint8_t{0}, std::uint8_t{4}, std::uint8_t{8}}) {
    TestTable t(TestTable::geometry(64 * 1024, log, 1));
    ReceiveWorker worker(t.table, kTestMtu);
    t.table.post(SlotIndex(0), Generation(0), 64 * 1024);
    for (const std::uint32_t p : {0U, 1U, 300U}) {
      const Completion completion = t.packet(0, p);
      worker.process({&completion, 1});
    }
    EXPECT_EQ(t.slots[0].words_touched, 5U);
    // What clean() does not visit stays as it is.
    for (std::size_t w = 5; w < t.packet_bits.size(); ++w) t.packet_bits[w] = 0xDEAD;
    const std::size_t chunk_words = ((5U * 64) >> log) / 64 + 1;
    for (std::size_t w = chunk_words; w < t.chunk_bits.size(); ++w) t.chunk_bits[w] = 0xBEEF;
    t.close_and_clean(0);
    for (std::size_t w = 0; w < t.packet_bits.size(); ++w) ASSERT_EQ(t.packet_bits[w], w < 5 ? 0U : 0xDEADU) << w;
    for (std::size_t w = 0; w < t.chunk_bits.size(); ++w)
      ASSERT_EQ(t.chunk_bits[w], w < chunk_words ? 0U : 0xBEEFU) << w;
  }
}

TEST(ReceiveWorker, ShortPacketsOfSeveralChunksInOneBatch_EachCompleteTheirChunk) {
  TestTable t(TestTable::geometry(64, 2, 1));
  ReceiveWorker worker(t.table, kTestMtu);
  t.table.post(SlotIndex(0), Generation(0), 64);
  const std::vector<Completion> completions{t.packet(0, 20, 9), t.packet(0, 4, 9), t.packet(0, 40), t.packet(0, 41, 0)};
  worker.process(completions);
  EXPECT_TRUE(t.chunk(0, 1) && t.chunk(0, 5) && t.chunk(0, 10));
  EXPECT_EQ(t.chunks_set(0), 3U);
}

TEST(ReceiveWorker, UserImmediate_ArrivesForEveryUserBitsAndMessageSize) {
  const std::uint32_t user = 0x9B3C5A71;
  for (const int user_bits : {1, 2, 4, 8}) {
    const ImmediateLayout layout{8, static_cast<std::uint8_t>(24 - user_bits), static_cast<std::uint8_t>(user_bits)};
    ASSERT_TRUE(layout.valid());
    for (std::uint32_t packets = 0; packets <= 9; ++packets) {
      TestTable t(TestTable::geometry(64, 3, 2, layout));
      ReceiveWorker worker(t.table, kTestMtu);
      t.table.post(SlotIndex(1), Generation(0), packets);
      const std::uint32_t all = std::max(packets, layout.fragments());
      for (std::uint32_t p = all; p-- > 0;) {
        const std::uint64_t complete = (std::uint64_t{1} << layout.fragments()) - 1;
        if (all == layout.fragments()) {
          EXPECT_NE(t.slots[1].fragments_seen.load(), complete) << "before fragment " << p;
        }
        const Completion completion = t.packet(1, p, p < packets ? kTestMtu : 0, 0, user);
        worker.process({&completion, 1});
        worker.process({&completion, 1});
      }
      EXPECT_EQ(t.slots[1].fragments_seen.load(), (std::uint64_t{1} << layout.fragments()) - 1);
      EXPECT_EQ(t.slots[1].user_immediate.load(), user) << user_bits << " bits, " << packets << " packets";
      EXPECT_EQ(t.chunks_set(1), (packets + 7) / 8);
      t.close_and_clean(1);
      EXPECT_TRUE(t.all_zero());
    }
  }
}

// The naive model: a flag a packet, no words, no runs, no batches.
class NaiveSlot {
 public:
  void post(std::uint8_t generation, std::uint32_t packets) {
    *this = NaiveSlot();
    open_ = true;
    generation_ = generation;
    packets_ = packets;
  }
  void close() { open_ = false; }
  void take(const TableGeometry& geometry, std::uint32_t offset, std::uint16_t length, std::uint8_t generation) {
    if (!open_ || generation != generation_ || (length != 0 && offset >= packets_)) return;
    seen_.resize(geometry.packets_per_slot);
    if (length != 0) seen_[offset] = true;
    if (length == kTestMtu) return;
    const std::uint32_t per_chunk = 1U << geometry.log_packets_per_chunk;
    for (std::uint32_t p = length == 0 ? offset : offset + 1; p % per_chunk != 0 && p < seen_.size(); ++p)
      seen_[p] = true;
  }
  [[nodiscard]] bool chunk(const TableGeometry& geometry, std::uint32_t index) const {
    const std::uint32_t per_chunk = 1U << geometry.log_packets_per_chunk;
    if (index * per_chunk >= packets_) return false;
    for (std::uint32_t p = index * per_chunk; p < std::min(packets_, (index + 1) * per_chunk); ++p)
      if (p >= seen_.size() || !seen_[p]) return false;
    return true;
  }

 private:
  bool open_ = false;
  std::uint8_t generation_ = 0;
  std::uint32_t packets_ = 0;
  std::vector<bool> seen_;
};

TEST(ReceiveWorker, RandomCompletions_DoWhatTheNaiveModelDoes) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(seed_trace(seed));
  std::mt19937_64 random(seed);
  for (int round = 0; round < 150; ++round) {
    const auto log = static_cast<std::uint8_t>(random() % 9);
    const TableGeometry geometry = TestTable::geometry(static_cast<std::uint32_t>(1 + random() % 900), log, 4);
    TestTable t(geometry);
    ReceiveWorker worker(t.table, kTestMtu);
    std::vector<NaiveSlot> naive(geometry.slots);
    for (int step = 0; step < 60; ++step) {
      const auto s = static_cast<std::uint32_t>(random() % geometry.slots);
      if (random() % 8 == 0) {
        t.close_and_clean(s);
        const auto generation = static_cast<std::uint8_t>(random() % 3);
        const auto packets = static_cast<std::uint32_t>(random() % (geometry.packets_per_slot + 1));
        t.table.post(SlotIndex(s), Generation(generation), packets);
        naive[s].post(generation, packets);
      }
      // Runs of neighbours, as a network brings them, with jumps, repeats and strays.
      std::vector<Completion> batch;
      auto offset = static_cast<std::uint32_t>(random() % geometry.packets_per_slot);
      auto target = s;
      for (std::uint64_t n = 1 + random() % 200; n > 0; --n) {
        if (random() % 10 == 0) offset = static_cast<std::uint32_t>(random() % (geometry.packets_per_slot + 70));
        if (random() % 30 == 0) target = static_cast<std::uint32_t>(random() % (geometry.slots + 1));
        const std::uint64_t kind = random() % 24;
        const auto length = static_cast<std::uint16_t>(kind == 0 ? 0 : kind == 1 ? 17 : kTestMtu);
        const auto generation = static_cast<std::uint8_t>(random() % 3);
        batch.push_back(t.packet(target, offset, length, generation));
        if (target < geometry.slots) naive[target].take(geometry, offset, length, generation);
        ++offset;
      }
      worker.process(batch);
      for (std::uint32_t slot = 0; slot < geometry.slots; ++slot)
        for (std::uint32_t c = 0; c < geometry.chunks_per_slot(); ++c)
          ASSERT_EQ(t.chunk(slot, c), naive[slot].chunk(geometry, c))
              << "round " << round << " step " << step << " slot " << slot << " chunk " << c << " log " << int{log};
    }
    for (std::uint32_t slot = 0; slot < geometry.slots; ++slot) t.close_and_clean(slot);
    ASSERT_TRUE(t.all_zero());
  }
}

}  // namespace
}  // namespace sdr::core

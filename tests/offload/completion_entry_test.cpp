// The entry is what an mlx5 device writes, to the byte.
#include "offload/completion_entry.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <vector>

#include "offload/completion_ring.hpp"

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
  [[nodiscard]] std::uint64_t open_run(const core::Immediate&, std::uint8_t) const { return blocked; }
  void close_run(std::uint64_t bits, std::uint32_t packets) {
    run_bits |= bits & ~blocked;
    run_packets += packets;
  }
  std::uint64_t blocked = ~std::uint64_t{0};
  std::vector<core::Completion> taken;
  std::uint64_t run_bits = 0;
  std::uint32_t run_packets = 0;
};

struct Ring {
  explicit Ring(std::uint32_t log)
      : entries(std::size_t{1} << log),
        producer(entries.data(), log, &record),
        consumer(entries.data(), log, &record, 4096) {
    for (CompletionEntry& entry : entries) entry.ownership = CompletionEntry::kInvalid | 1;
  }
  std::uint32_t take(Recorder& recorder) {
    RingConsumer<>::Take taken(consumer, 64);
    taken.into(recorder, core::ImmediateLayout{});
    return consumer.finish(taken);
  }
  std::vector<CompletionEntry> entries;
  RingRecord record{};
  RingProducer<> producer;
  RingConsumer<> consumer;
};

TEST(CompletionRing, FullRing_TakesNothingUntilItsEntriesAreGivenBack) {
  Ring ring(1);
  for (std::uint32_t lap = 0; lap < 5; ++lap) {
    EXPECT_FALSE(ring.consumer.ready());
    ASSERT_TRUE(ring.producer.push({.immediate = 2 * lap, .length = 4096, .generation = 1}));
    ASSERT_TRUE(ring.producer.push({.immediate = 2 * lap + 1, .length = 17, .generation = 2}));
    EXPECT_FALSE(ring.producer.push({}));
    ASSERT_TRUE(ring.consumer.ready());
    Recorder recorder;
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
  EXPECT_EQ(recorder.taken.size(), 2U);
  EXPECT_EQ(ring.producer.consumed(), 3U);
}

// Packets of one word follow by their bits; another word, use or length ends the run, and so does a bit that the batch
// wants to see.
TEST(CompletionRing, PacketsOfOneWord_FollowByTheirBitsAlone) {
  const core::ImmediateLayout layout;
  const auto packet = [&](std::uint32_t slot, std::uint32_t offset, std::uint16_t length, std::uint8_t generation) {
    return core::Completion{.immediate = layout.encode(core::SlotIndex(slot), core::PacketOffset(offset), 0x76543210),
                            .length = length,
                            .generation = generation};
  };
  Ring ring(5);
  const std::vector<core::Completion> pushed = {
      packet(3, 128, 4096, 1), packet(3, 130, 4096, 1), packet(3, 191, 4096, 1),
      packet(3, 130, 4096, 1), packet(3, 131, 4096, 1), packet(3, 192, 4096, 1),
      packet(4, 193, 4096, 1), packet(4, 194, 4096, 2), packet(4, 195, 4000, 2)};
  for (const core::Completion& completion : pushed) ASSERT_TRUE(ring.producer.push(completion));
  Recorder recorder;
  recorder.blocked = 1;  // the first packet's
  ring.take(recorder);
  EXPECT_EQ(recorder.run_bits, std::uint64_t{1} << 2 | std::uint64_t{1} << 3 | std::uint64_t{1} << 63);
  EXPECT_EQ(recorder.run_packets, 3U);
  ASSERT_EQ(recorder.taken.size(), 6U);
  std::size_t i = 0;
  for (const std::size_t at : {0U, 3U, 5U, 6U, 7U, 8U}) {
    EXPECT_EQ(recorder.taken[i].immediate, pushed[at].immediate);
    EXPECT_EQ(recorder.taken[i].length, pushed[at].length);
    EXPECT_EQ(recorder.taken[i++].generation, pushed[at].generation);
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

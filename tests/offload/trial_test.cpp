// The exactness of each device under fire, in a size that suits every run of the suite.
#include "offload/trial.hpp"

#include <gtest/gtest.h>

#include <string>
#include <tuple>

#include "offload/trial_message.hpp"
#include "tests/core/seed.hpp"

namespace sdr::offload {
namespace {

using testing_support::seed_trace;
using testing_support::test_seed;

class TrialOfEachKind : public testing::TestWithParam<std::tuple<DeviceKind, TrialOrder, std::uint32_t>> {};
INSTANTIATE_TEST_SUITE_P(Kinds, TrialOfEachKind,
                         testing::Combine(testing::Values(DeviceKind::Host, DeviceKind::Riscv),
                                          testing::Values(TrialOrder::InOrder, TrialOrder::Mix),
                                          testing::Values(1U, 16U, 256U)),
                         [](const auto& test) {
                           return std::string(to_string(std::get<0>(test.param))) +
                                  (std::get<1>(test.param) == TrialOrder::Mix ? "Mix" : "InOrder") +
                                  std::to_string(std::get<2>(test.param)) + "Packets";
                         });

TEST_P(TrialOfEachKind, EveryChunkOfEveryMessage_IsExactUnderFire) {
  const auto [kind, order, chunk_packets] = GetParam();
  if (kind == DeviceKind::Riscv && !riscv_available()) GTEST_SKIP() << riscv_available().error().message;
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(seed_trace(seed));
  const Result<TrialReport> report = run_trial(
      {.device = kind, .packets = 200'000, .threads = 4, .order = order, .chunk_packets = chunk_packets, .seed = seed});
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_TRUE(report->verified) << report->problem;
  EXPECT_GE(report->pushed, 200'000U);
  EXPECT_GT(report->messages, 0U);
  EXPECT_GT(report->duplicates, 0U);
  EXPECT_GT(report->stale, 0U);
  EXPECT_GT(report->out_of_range, 0U);
  EXPECT_GT(report->device.batches, 0U);
}

TEST(Trial, ChunksThatAreNoPowerOfTwoOrMoreThreadsThanRings_AreRefused) {
  const Result<TrialReport> odd = run_trial({.chunk_packets = 12});
  ASSERT_FALSE(odd);
  EXPECT_NE(odd.error().message.find("chunk of 12 packets"), std::string::npos);
  const Result<TrialReport> threads = run_trial({.threads = 5, .channels = 4});
  ASSERT_FALSE(threads);
  EXPECT_NE(threads.error().message.find("5 device threads for 4 channels"), std::string::npos);
}

// What the trial holds messages against would see a bit too many, one too few, and another's user immediate.
TEST(TrialMessage, OneBitTooManyOrTooFew_IsSeen) {
  std::mt19937_64 random(5);
  const core::TableGeometry geometry{.layout = {}, .slots = 4, .packets_per_slot = 64, .log_packets_per_chunk = 2};
  TrialMessage message(geometry, {}, core::SlotIndex(1), core::Generation(3), random);
  std::array<core::BitmapWord, 1> bits{};
  UserImmediate immediate;
  EXPECT_TRUE(message.matches(bits, immediate));
  while (!message.emitted()) {
    const core::Immediate at = geometry.layout.decode(message.take().immediate);
    const std::uint32_t which = at.offset.value % 8;
    immediate.fragments_seen |= 1U << which;
    immediate.value |= at.user_fragment << (which * 4);
  }
  ASSERT_GT(message.whole_chunks(), 1U);
  for (std::uint32_t chunk = 0, seen = 0; chunk < 16 && seen < message.whole_chunks(); ++chunk) {
    bits[0].fetch_or(std::uint64_t{1} << chunk);
    if (!message.allows(bits))
      bits[0].fetch_and(~(std::uint64_t{1} << chunk));
    else
      ++seen;
  }
  EXPECT_TRUE(message.matches(bits, immediate));
  const std::uint64_t right = bits[0].load();
  for (std::uint32_t bit = 0; bit < 16; ++bit) {
    bits[0].store(right ^ std::uint64_t{1} << bit);
    EXPECT_FALSE(message.matches(bits, immediate)) << bit;
    EXPECT_EQ(message.allows(bits), (right >> bit & 1) != 0) << bit;
  }
  bits[0].store(right);
  immediate.value ^= 0x10;
  EXPECT_FALSE(message.matches(bits, immediate));
}

}  // namespace
}  // namespace sdr::offload

// Early completion, and what becomes of packets that come after it: the bound that receive_queue.hpp states.
#include <gtest/gtest.h>

#include "tests/sdk/pair.hpp"

namespace sdr {
namespace {

using namespace testing_support;
using transport::PacketView;
using transport::Site;
using transport::Verdict;

constexpr std::byte kCanary{0x3C};
constexpr std::uint32_t kSlots = 2;

class LatePacket : public testing::TestWithParam<int> {
 protected:
  [[nodiscard]] std::uint8_t generations() const { return static_cast<std::uint8_t>(GetParam()); }
  [[nodiscard]] PairOptions options() const {
    return {
        .qp = {
            .mtu = 64_B, .packets_per_chunk = 4, .max_message = 4096_B, .slots = kSlots, .generations = generations()}};
  }
  static void hold_data(Pair& pair) {
    pair.network().set_filter(Site::A, [](const PacketView& view) {
      return view.kind == PacketView::Kind::Data ? Verdict::Hold : Verdict::Pass;
    });
  }
  // Uses the other slot, or the same one, once: posted and completed without a packet.
  static void use_slot(Pair& pair, std::span<std::byte> buffer) {
    const RecvHandle receive = *pair.b().post_receive(buffer);
    ASSERT_TRUE(pair.b().complete(receive).ok());
  }
};
INSTANTIATE_TEST_SUITE_P(Generations, LatePacket, testing::Values(2, 3, 8, 32), testing::PrintToStringParamName());

TEST_P(LatePacket, FromEveryEarlierGeneration_TouchesNothing) {
  Pair pair(options());
  hold_data(pair);
  std::vector<std::byte> first(std::size_t{64} * generations(), kCanary);
  const std::vector<std::byte> source = pattern(first.size(), 1);
  const RecvHandle early = *pair.b().post_receive(first);
  pair.send(source);
  pair.run_for(std::chrono::milliseconds(20));
  ASSERT_GE(pair.network().held(Site::A), generations());
  ASSERT_TRUE(pair.b().complete(early).ok());

  // Late already while the slot lies idle.
  pair.network().release(Site::A, 0, pair.now());
  pair.run_for(std::chrono::milliseconds(1));
  std::uint64_t late = 1;
  EXPECT_EQ(pair.b().counters().late_packets, late);

  std::vector<std::byte> other(4096, kCanary);
  for (int reuse = 1; reuse < generations(); ++reuse) {
    use_slot(pair, other);  // slot 1
    std::vector<std::byte> current(4096, kCanary);
    const RecvHandle receive = *pair.b().post_receive(current);
    ASSERT_EQ(receive.number % kSlots, 0U);
    pair.network().release(Site::A, 0, pair.now());
    pair.run_for(std::chrono::milliseconds(1));
    EXPECT_EQ(pair.b().counters().late_packets, ++late) << "reuse " << reuse;
    EXPECT_FALSE(pair.b().touched(receive));
    EXPECT_EQ(pair.chunks(receive), 0U);
    EXPECT_EQ(pair.b().chunk_packets(receive, 0).value(), 0U);
    EXPECT_EQ(current, std::vector<std::byte>(4096, kCanary));
    ASSERT_TRUE(pair.b().complete(receive).ok());
  }
  EXPECT_EQ(first, std::vector<std::byte>(first.size(), kCanary));
  EXPECT_EQ(pair.b().counters().packets_received, 0U);
}

TEST_P(LatePacket, OneGenerationTooLate_IsTakenForCurrent) {
  Pair pair(options());
  hold_data(pair);
  std::vector<std::byte> buffer(64, kCanary);
  const RecvHandle early = *pair.b().post_receive(buffer);
  const std::vector<std::byte> source = pattern(64, 1);
  pair.send(source);
  pair.run_for(std::chrono::milliseconds(20));
  ASSERT_TRUE(pair.b().complete(early).ok());
  for (std::uint32_t use = 1; use < kSlots * generations(); ++use) use_slot(pair, buffer);
  const RecvHandle receive = *pair.b().post_receive(buffer);
  ASSERT_EQ(receive.number, std::uint64_t{kSlots} * generations());
  pair.network().release(Site::A, 0, pair.now());
  pair.run_for(std::chrono::milliseconds(1));
  EXPECT_EQ(pair.b().counters().late_packets, 0U);
  EXPECT_TRUE(pair.b().touched(receive)) << "the documented bound: generations - 1 reuses";
  EXPECT_EQ(buffer, source);
}

TEST(EarlyCompletion, InTheMiddleOfAMessage_KeepsWhatIsThereAndNothingMoreComes) {
  Pair pair({.qp = {.mtu = 64_B, .packets_per_chunk = 1, .max_message = 4096_B, .rate = {1e6}}});
  std::vector<std::byte> target(4096, kCanary);
  const RecvHandle receive = *pair.b().post_receive(target);
  const std::vector<std::byte> source = pattern(4096, 1);
  pair.send(source);
  ASSERT_TRUE(pair.run_until([&] { return pair.chunks(receive) == 20; }));
  ASSERT_TRUE(pair.b().complete(receive).ok());
  const std::vector<std::byte> then = target;
  EXPECT_TRUE(std::equal(then.begin(), then.begin() + 20 * 64, source.begin()));
  std::vector<std::byte> next_target(4096, kCanary);
  const RecvHandle next = *pair.b().post_receive(next_target);
  pair.run_for(std::chrono::seconds(1));
  EXPECT_EQ(target, then);
  EXPECT_FALSE(pair.b().touched(next));
  EXPECT_EQ(pair.b().counters().late_packets, 64U - 20U);
}

TEST(Strays, WithAnotherTokenOrOutOfRange_TouchNothing) {
  Pair pair({.qp = {.mtu = 64_B, .max_message = 4096_B, .slots = 4}});
  std::vector<std::byte> target(100, kCanary);
  const RecvHandle receive = *pair.b().post_receive(target);
  const std::vector<std::byte> source = pattern(64, 1);
  const core::ImmediateLayout layout;
  const auto forge = [&](std::uint32_t slot, std::uint32_t offset, std::uint16_t length, std::uint64_t token) {
    pair.endpoint_b().inject({.local = source.data(),
                              .immediate = layout.encode(core::SlotIndex(slot), core::PacketOffset(offset), 0),
                              .length = length},
                             token, pair.now());
  };
  forge(0, 0, 64, pair.endpoint_b().token() + 1);
  forge(0, 2, 64, pair.endpoint_b().token());
  forge(0, 1, 64, pair.endpoint_b().token());
  forge(1, 0, 64, pair.endpoint_b().token());
  forge(900, 0, 64, pair.endpoint_b().token());
  forge(0, (1U << 18) - 1, 64, pair.endpoint_b().token());
  pair.run_for(std::chrono::milliseconds(1));
  EXPECT_EQ(target, std::vector<std::byte>(100, kCanary));
  EXPECT_EQ(pair.chunks(receive), 0U);
  const QueuePairCounters counters = pair.b().counters();
  EXPECT_EQ(counters.rejected_packets, 1U);
  EXPECT_EQ(counters.late_packets, 1U);
  EXPECT_EQ(counters.out_of_range_packets, 4U);
  // A bare end marker goes anywhere and does no harm either.
  for (const std::uint32_t offset : {0U, 63U, 64U, 5000U, (1U << 18) - 1})
    forge(0, offset, 0, pair.endpoint_b().token());
  pair.run_for(std::chrono::milliseconds(1));
  EXPECT_EQ(pair.chunks(receive), 0U);
  ASSERT_TRUE(pair.b().complete(receive).ok());
}

}  // namespace
}  // namespace sdr

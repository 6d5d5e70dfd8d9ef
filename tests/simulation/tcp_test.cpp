// The ends of a simulated TCP connection by themselves; how they fare on a path is in tests/experiment.
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <vector>

#include "simulation/tcp_bbr.hpp"
#include "simulation/tcp_cubic.hpp"
#include "simulation/tcp_ranges.hpp"
#include "simulation/tcp_receiver.hpp"
#include "simulation/tcp_sender.hpp"

namespace sdr::simulation {
namespace {

using namespace std::chrono_literals;

constexpr TimePoint kStart{1s};

std::vector<std::uint64_t> add(TcpRanges& ranges, std::uint64_t begin, std::uint64_t end) {
  std::vector<std::uint64_t> fresh;
  ranges.add({begin, end}, [&](std::uint64_t n) { fresh.push_back(n); });
  return fresh;
}

TEST(TcpRanges, NameEveryNumberOnce_HoweverTheyOverlap) {
  TcpRanges ranges;
  using Numbers = std::vector<std::uint64_t>;
  EXPECT_EQ(add(ranges, 10, 12), (Numbers{10, 11}));
  EXPECT_EQ(add(ranges, 14, 16), (Numbers{14, 15}));
  EXPECT_EQ(add(ranges, 9, 17), (Numbers{9, 12, 13, 16}));
  EXPECT_EQ(add(ranges, 10, 16), Numbers{});
  EXPECT_EQ(add(ranges, 17, 18), Numbers{17});
  ASSERT_TRUE(ranges.around(12));
  EXPECT_EQ(ranges.around(12)->begin, 9U);
  EXPECT_EQ(ranges.around(12)->end, 18U);
  EXPECT_FALSE(ranges.around(18));
  ranges.drop_below(15);
  EXPECT_EQ(ranges.around(15)->begin, 15U);
  ranges.drop_below(18);
  EXPECT_TRUE(ranges.empty());
}

TEST(TcpReceiver, EverySecondSegment_IsAcknowledged_AndALoneOneAfterTheDelay) {
  TcpReceiver receiver;
  EXPECT_FALSE(receiver.handle({0}, false, kStart));
  EXPECT_EQ(receiver.next_timeout(), kStart + TcpReceiver::kDelay);
  const auto second = receiver.handle({1}, false, kStart);
  ASSERT_TRUE(second);
  EXPECT_EQ(second->next, 2U);
  EXPECT_EQ(receiver.next_timeout(), kNever);
  EXPECT_FALSE(receiver.handle({2}, false, kStart));
  EXPECT_FALSE(receiver.expire(kStart + TcpReceiver::kDelay - 1ns));
  const auto late = receiver.expire(kStart + TcpReceiver::kDelay);
  ASSERT_TRUE(late);
  EXPECT_EQ(late->next, 3U);
}

TEST(TcpReceiver, BehindAGap_EachSegmentIsAnswered_TheLatestBlockFirst) {
  TcpReceiver receiver;
  receiver.handle({0}, false, kStart);
  receiver.handle({2}, false, kStart);
  receiver.handle({3}, false, kStart);
  const auto ack = receiver.handle({6}, false, kStart);
  ASSERT_TRUE(ack);
  EXPECT_EQ(ack->next, 1U);
  ASSERT_EQ(ack->block_count, 2);
  EXPECT_EQ(ack->blocks[0].begin, 6U);
  EXPECT_EQ(ack->blocks[1].begin, 2U);
  EXPECT_EQ(ack->blocks[1].end, 4U);
  const auto closed = receiver.handle({1}, false, kStart);
  ASSERT_TRUE(closed);
  EXPECT_EQ(closed->next, 4U);
  ASSERT_EQ(closed->block_count, 1);
  EXPECT_EQ(receiver.delivered(), 4U);
}

// A window as large as it is told, and what it hears.
struct Steady final : TcpCongestion {
  explicit Steady(std::uint64_t segments, double segments_a_second = 0) : window_(segments), pace_(segments_a_second) {}
  void begin_recovery(const TcpAckEvent&) override { ++recoveries; }
  void end_recovery(TimePoint) override { ++ends; }
  void timeout(std::uint64_t, TimePoint) override { ++timeouts; }
  void acknowledged(const TcpAckEvent& event) override { last = event; }
  [[nodiscard]] std::uint64_t window() const override { return window_; }
  [[nodiscard]] double pace() const override { return pace_; }

  std::uint64_t window_;
  double pace_;
  int recoveries = 0;
  int ends = 0;
  int timeouts = 0;
  TcpAckEvent last;
};

std::vector<std::uint64_t> sent(TcpSender& sender, TimePoint now) {
  std::vector<std::uint64_t> numbers;
  while (const auto data = sender.poll(now)) numbers.push_back(data->number);
  return numbers;
}

TcpAck ack_of(std::uint64_t next, std::vector<TcpRange> blocks = {}) {
  TcpAck ack{.next = next};
  for (const TcpRange& block : blocks) ack.blocks[ack.block_count++] = block;
  return ack;
}

TEST(TcpSender, ASegmentThatThreeLaterOnesHaveOvertaken_IsSentAgain_Once) {
  auto owned = std::make_unique<Steady>(6);
  Steady& congestion = *owned;
  TcpSender sender(std::move(owned), 100);
  EXPECT_EQ(sent(sender, kStart).size(), 6U);
  sender.handle(ack_of(0, {{1, 3}}), kStart + 10ms);
  EXPECT_EQ(sent(sender, kStart + 10ms), (std::vector<std::uint64_t>{6, 7}));
  sender.handle(ack_of(0, {{1, 4}}), kStart + 11ms);
  EXPECT_EQ(sent(sender, kStart + 11ms), (std::vector<std::uint64_t>{0, 8}));
  EXPECT_EQ(congestion.recoveries, 1);
  EXPECT_EQ(congestion.last.newly_lost, 1U);
  sender.handle(ack_of(0, {{1, 6}}), kStart + 12ms);
  EXPECT_EQ(sent(sender, kStart + 12ms), (std::vector<std::uint64_t>{9, 10}));
  EXPECT_EQ(congestion.ends, 0);
  sender.handle(ack_of(9), kStart + 20ms);
  EXPECT_EQ(congestion.ends, 1);
  EXPECT_EQ(sender.counts().retransmitted, 1U);
}

TEST(TcpSender, ALostRetransmission_IsFoundByWhatWasSentBehindIt) {
  TcpSender sender(std::make_unique<Steady>(5), 1000);
  sent(sender, kStart);
  sender.handle(ack_of(0, {{1, 5}}), kStart + 10ms);
  // 0 again, then 5, 6, 7, 8.
  EXPECT_EQ(sent(sender, kStart + 10ms), (std::vector<std::uint64_t>{0, 5, 6, 7, 8}));
  sender.handle(ack_of(0, {{1, 9}}), kStart + 20ms);
  EXPECT_EQ(sent(sender, kStart + 20ms).front(), 0U);
  EXPECT_EQ(sender.counts().retransmitted, 2U);
  EXPECT_EQ(sender.counts().timeouts, 0U);
}

TEST(TcpSender, WithoutAnswers_TheTimerRunsOut_EverMoreSlowly) {
  auto owned = std::make_unique<Steady>(4);
  Steady& congestion = *owned;
  TcpSender sender(std::move(owned), 100);
  sent(sender, kStart);
  sender.handle(ack_of(2), kStart + 10ms);  // an RTT of 10 ms
  sent(sender, kStart + 10ms);
  std::vector<Duration> waits;
  TimePoint now = kStart + 10ms;
  for (int i = 0; i < 3; ++i) {
    const TimePoint next = sender.next_timeout();
    waits.push_back(next - now);
    now = next;
    EXPECT_EQ(sent(sender, now).front(), 2U);
  }
  EXPECT_EQ(congestion.timeouts, 3);
  EXPECT_EQ(waits[0], 210ms);  // RTT + max(200 ms, 4 * 5 ms)
  EXPECT_EQ(waits[1], 2 * waits[0]);
  EXPECT_EQ(waits[2], 4 * waits[0]);
}

TEST(TcpSender, WithAPace_SegmentsGoOneByOne) {
  TcpSender sender(std::make_unique<Steady>(1000, 1000), 1000);
  const TimePoint later = kStart + 1s;
  std::size_t count = 0;
  for (TimePoint now = kStart; now < later; now = std::max(now + 1ns, sender.next_timeout())) {
    count += sent(sender, now).size();
  }
  EXPECT_NEAR(static_cast<double>(count), 1000, 3);
}

TEST(TcpSender, WithASize_IsDoneWhenAllOfItIsAcknowledged) {
  TcpSender sender(std::make_unique<Steady>(10), 3);
  EXPECT_EQ(sent(sender, kStart).size(), 3U);
  sender.handle(ack_of(2), kStart + 1ms);
  EXPECT_FALSE(sender.done());
  sender.handle(ack_of(3), kStart + 2ms);
  EXPECT_TRUE(sender.done());
  EXPECT_EQ(sender.next_timeout(), kNever);
}

TcpAckEvent acked(TimePoint now, std::uint64_t segments, std::uint64_t in_flight) {
  return {.now = now,
          .delivered = 1'000'000,
          .newly_delivered = segments,
          .in_flight_before = in_flight,
          .in_flight = in_flight,
          .rtt = 100ms,
          .least_rtt = 100ms};
}

TEST(TcpCubic, SlowStart_DoublesARound_AndALossTakesThreeTenths) {
  TcpCubic cubic(false);
  EXPECT_EQ(cubic.window(), kTcpInitialWindow);
  for (int round = 0; round < 5; ++round) cubic.acknowledged(acked(kStart, cubic.window(), cubic.window()));
  EXPECT_EQ(cubic.window(), 32 * kTcpInitialWindow);
  cubic.begin_recovery(acked(kStart, 1, cubic.window()));
  EXPECT_EQ(cubic.window(), 224U);
}

// RFC 9438, 4.2: after K = cbrt(W_max (1 - beta) / C) seconds the window is W_max again.
TEST(TcpCubic, TheWindowIsBackWhereItWas_AfterTheTimeThatTheFunctionSays) {
  TcpCubic cubic(false);
  while (cubic.window() < 2000) cubic.acknowledged(acked(kStart, cubic.window(), cubic.window()));
  const double most = static_cast<double>(cubic.window());
  cubic.begin_recovery(acked(kStart, 1, cubic.window()));
  const double back = std::cbrt(most * 0.3 / 0.4);
  TimePoint now = kStart;
  while (static_cast<double>(cubic.window()) < 0.999 * most && now < kStart + 60s) {
    now += 100ms;
    for (int i = 0; i < 10; ++i) cubic.acknowledged(acked(now, cubic.window() / 10, cubic.window()));
  }
  const double took = std::chrono::duration<double>(now - kStart).count();
  // Flat there: within a part in a thousand over much of the way.
  EXPECT_GT(took, 0.75 * back);
  EXPECT_LT(took, 1.1 * back);
}

TEST(TcpCubic, HyStart_LeavesSlowStart_WhenTheDelayRises) {
  for (const bool hystart : {false, true}) {
    TcpCubic cubic(hystart);
    std::uint64_t delivered = 0;
    for (int n = 0; n < 2000; ++n) {
      TcpAckEvent event = acked(kStart, 1, cubic.window());
      event.delivered = ++delivered;
      event.rtt = 100ms + std::chrono::microseconds(30) * n;  // a queue builds up
      cubic.acknowledged(event);
    }
    if (hystart) {
      EXPECT_LT(cubic.window(), 1500U);
    } else {
      EXPECT_EQ(cubic.window(), 2000U + kTcpInitialWindow);
    }
  }
}

}  // namespace
}  // namespace sdr::simulation

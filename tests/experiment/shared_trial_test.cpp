// The world of several flows itself: flows whose behaviour is known share a path as they must.
#include "experiment/shared_trial.hpp"

#include <gtest/gtest.h>

#include "tests/experiment/shared_path.hpp"

namespace sdr::testing {
namespace {

using namespace std::chrono_literals;

constexpr std::string_view kLink = "rtt=20ms,rate=100Mbit";
constexpr std::string_view kQueue = "drop-tail,limit=1bdp";

TEST(SharedTrial, AFixedRate_ComesOutAsItWentIn_AndMakesNoQueue) {
  const auto result = run(shared(kLink, kQueue, 5s, {fixed("60Mbit")}));
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_FALSE(result->flows[0].error);
  EXPECT_NEAR(result->rate(0, 1s, 5s) * 8e-6, 60, 0.6);
  EXPECT_NEAR(result->goodput(0, 1s, 5s) * 8e-6, 60 * 1456 / 1500.0, 0.9);
  EXPECT_LT(result->mean_queue(1s, 5s), 300us);
  EXPECT_NEAR(result->mean_rtt_ms(0, 1s, 5s), 20.1, 0.3);
  EXPECT_EQ(result->flows[0].data.refused, 0U);
}

TEST(SharedTrial, TwoFixedRatesThatDoNotFit_FillTheQueue_AndShareTheLosses) {
  const auto result = run(shared(kLink, kQueue, 5s, {fixed("80Mbit"), fixed("40Mbit")}));
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_GT(result->utilisation(1s, 5s), 0.99);
  EXPECT_GT(result->mean_queue(1s, 5s), 18ms);
  EXPECT_NEAR(result->rate(0, 1s, 5s) / result->rate(1, 1s, 5s), 2, 0.25);
  EXPECT_GT(result->flows[1].data.refused, 100U);
  EXPECT_EQ(result->data.queue.tail_drops, result->flows[0].data.refused + result->flows[1].data.refused);
}

TEST(SharedTrial, EachFlow_HasItsOwnRtt_AndItsOwnTime) {
  FlowSpec late = at_rtt(starting(fixed("20Mbit"), 2s), 80ms);
  late.stop = 4s;
  const auto result = run(shared(kLink, kQueue, 6s, {fixed("20Mbit"), late}));
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_NEAR(result->mean_rtt_ms(0, 2500ms, 4s), 20.1, 0.5);
  EXPECT_NEAR(result->mean_rtt_ms(1, 2500ms, 4s), 80.1, 0.5);
  EXPECT_EQ(result->rate(1, 0s, 2s), 0);
  EXPECT_NEAR(result->rate(1, 2500ms, 4s) * 8e-6, 20, 0.5);
  EXPECT_LT(result->rate(1, 4100ms, 6s) * 8e-6, 0.01);
  ASSERT_TRUE(result->common());
  EXPECT_EQ(result->common()->first, 2s);
  EXPECT_EQ(result->common()->second, 4s);
}

TEST(SharedTrial, ASize_IsCompleteWhenItHasBeenSent) {
  FlowSpec ours = fixed("50Mbit");
  ours.size = 5_MiB;
  FlowSpec theirs = tcp(FlowKind::TcpCubic);
  theirs.size = 2_MiB;
  const auto result = run(shared(kLink, kQueue, 5s, {ours, theirs}));
  ASSERT_TRUE(result) << result.error().message;
  ASSERT_TRUE(result->flows[0].completed);
  ASSERT_TRUE(result->flows[1].completed);
  EXPECT_EQ(result->flows[0].payload_bytes, (5_MiB).count);
  EXPECT_EQ(result->flows[1].payload_bytes, (2_MiB).count);
  // 5 MiB with headers at 50 Mbit/s take 0.864 s, then half an RTT there and back, and the ends have to meet first.
  EXPECT_GT(*result->flows[0].completed, 880ms);
  EXPECT_LT(*result->flows[0].completed, 1100ms);
}

TEST(SharedTrial, TheSameTrial_HasTheSameResult_AndAnotherSeedAnother) {
  SharedTrial trial = shared("rtt=20ms,rate=50Mbit,loss=1e-2", kQueue, 2s, {model(), tcp(FlowKind::TcpBbr)});
  const auto first = run(trial);
  const auto again = run(trial);
  trial.seed = 2;
  const auto other = run(trial);
  ASSERT_TRUE(first && again && other);
  EXPECT_EQ(first->flows[0].series.wire_bytes, again->flows[0].series.wire_bytes);
  EXPECT_EQ(first->flows[1].series.wire_bytes, again->flows[1].series.wire_bytes);
  EXPECT_NE(first->flows[0].series.wire_bytes, other->flows[0].series.wire_bytes);
}

TEST(SharedTrial, Changes_AndOutages_CountInTheCapacity) {
  SharedTrial trial = shared("rtt=20ms,rate=100Mbit,outage=1s+1s", kQueue, 6s, {fixed("90Mbit")});
  ASSERT_TRUE(trial.path.add_change("4s:rate=50Mbit"));
  const auto result = run(trial);
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_NEAR(result->capacity(0s, 6s) * 8e-6, (100 + 0 + 200 + 100) / 6.0, 0.01);
  EXPECT_EQ(result->rate(0, 1100ms, 1900ms), 0);
  EXPECT_GT(result->data.lost_in_outage, 0U);
  EXPECT_NEAR(result->rate(0, 5s, 6s) * 8e-6, 50, 0.5);
}

TEST(SharedTrial, WhatCannotBe_IsRefusedByName) {
  SharedTrial trial = shared(kLink, kQueue, 5s, {at_rtt(model(), 10ms)});
  EXPECT_NE(run(trial).error().message.find("10.0 ms"), std::string::npos);
  trial = shared(kLink, kQueue, 5s, {starting(model(), 5s)});
  EXPECT_NE(run(trial).error().message.find("start"), std::string::npos);
  trial = shared("rtt=20ms", "drop-tail", 5s, {model()});
  EXPECT_NE(run(trial).error().message.find("no rate"), std::string::npos);
  trial = shared(kLink, kQueue, 5s, {});
  EXPECT_NE(run(trial).error().message.find("0 flows"), std::string::npos);
}

TEST(SimulatedTcp, Cubic_AloneFillsALinkWithABufferOfOneBandwidthDelayProduct) {
  for (const bool hystart : {false, true}) {
    for (const std::string_view link : {"rtt=20ms,rate=100Mbit", "rtt=100ms,rate=50Mbit"}) {
      const auto result = run(shared(link, kQueue, 20s, {tcp(FlowKind::TcpCubic, hystart)}));
      ASSERT_TRUE(result);
      EXPECT_GT(result->utilisation(2s, 20s), 0.9) << link << " hystart " << hystart;
      EXPECT_EQ(result->flows[0].timeouts, 0U) << link;
      EXPECT_GT(result->mean_queue(2s, 20s), 4ms) << link;
    }
  }
}

TEST(SimulatedTcp, Cubic_BacksOffAtRandomLoss_AsItDoes) {
  const auto result = run(shared("rtt=50ms,rate=100Mbit,loss=1e-2", kQueue, 10s, {tcp(FlowKind::TcpCubic)}));
  ASSERT_TRUE(result);
  EXPECT_LT(result->utilisation(2s, 10s), 0.1);
}

TEST(SimulatedTcp, Bbr_AloneFillsALink_WithLittleQueue_AndUnderLoss) {
  for (const std::string_view link :
       {"rtt=20ms,rate=100Mbit", "rtt=100ms,rate=50Mbit", "rtt=50ms,rate=100Mbit,loss=1e-2"}) {
    const auto result = run(shared(link, kQueue, 20s, {tcp(FlowKind::TcpBbr)}));
    ASSERT_TRUE(result);
    EXPECT_GT(result->utilisation(2s, 20s), 0.9) << link;
    EXPECT_LT(result->mean_queue(2s, 20s), result->flows[0].base_rtt / 2) << link;
  }
}

TEST(SimulatedTcp, Bbr_EmptiesTheQueueEveryTenSeconds) {
  const auto result = run(shared(kLink, kQueue, 25s, {tcp(FlowKind::TcpBbr)}));
  ASSERT_TRUE(result);
  int pauses = 0;
  bool paused = false;
  for (Duration at = 5s; at < 25s; at += 50ms) {
    const bool now = share(*result, 0, at, at + 100ms) < 0.3;
    pauses += now && !paused ? 1 : 0;
    paused = now;
  }
  EXPECT_EQ(pauses, 2);
}

TEST(SimulatedTcp, TwoCubicFlows_ShareALink) {
  const auto result = run(shared(kLink, kQueue, 60s, {tcp(FlowKind::TcpCubic), starting(tcp(FlowKind::TcpCubic), 1s)}));
  ASSERT_TRUE(result);
  EXPECT_GT(result->jain(10s, 60s), 0.9);
  EXPECT_GT(result->utilisation(10s, 60s), 0.95);
}

TEST(SimulatedTcp, TwoBbrFlows_ShareALink) {
  const auto result = run(shared(kLink, kQueue, 60s, {tcp(FlowKind::TcpBbr), starting(tcp(FlowKind::TcpBbr), 1s)}));
  ASSERT_TRUE(result);
  EXPECT_GT(result->jain(20s, 60s), 0.85);
  EXPECT_GT(result->utilisation(10s, 60s), 0.95);
}

TEST(SimulatedTcp, Cubic_ComesBackAfterAnOutage) {
  const auto result = run(shared("rtt=20ms,rate=100Mbit,outage=5s+3s", kQueue, 20s, {tcp(FlowKind::TcpCubic)}));
  ASSERT_TRUE(result);
  EXPECT_GT(result->flows[0].timeouts, 2U);
  EXPECT_GT(result->utilisation(13s, 20s), 0.9);
}

TEST(SimulatedTcp, Cubic_WithEcn_IsMarkedAndLosesNothing) {
  FlowSpec flow = tcp(FlowKind::TcpCubic);
  flow.ecn = true;
  const auto result = run(shared(kLink, "codel,ecn", 20s, {flow}));
  ASSERT_TRUE(result);
  EXPECT_GT(result->flows[0].data.marked, 10U);
  EXPECT_EQ(result->flows[0].data.perished, 0U);
  EXPECT_LT(result->mean_queue(5s, 20s), 10ms);
  EXPECT_GT(result->utilisation(2s, 20s), 0.85);
}

}  // namespace
}  // namespace sdr::testing

// What the rate controllers promise on paths whose rate nobody told them, alone and beside others
// (docs/rate-control.md).
#include "tests/experiment/shared_path.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <tuple>

namespace sdr::testing {
namespace {

using namespace std::chrono_literals;

constexpr std::string_view kLink = "rtt=20ms,rate=100Mbit";
constexpr std::string_view kOneBdp = "drop-tail,limit=1bdp";

SharedResult result_of(const SharedTrial& trial) {
  auto result = run(trial);
  EXPECT_TRUE(result) << result.error().message;
  for (const auto& flow : result->flows) EXPECT_FALSE(flow.error) << flow.name << ": " << flow.error->message;
  return std::move(result).value();
}

// From when on a flow is to have found its rate.
Duration settled(const SharedResult& result) {
  return std::min<Duration>(2s, 10 * result.path.link.rtt);
}
Duration standing_limit(Duration rtt) {
  return std::max<Duration>(15ms, rtt / 4);
}

// No second, from the settling on, in which it all but stands.
void expect_no_stall(const SharedResult& result, Duration from, Duration to) {
  for (Duration at = from; at + 1s <= to; at += 500ms) EXPECT_GT(share(result, 0, at, at + 1s), 0.5) << to_string(at);
}

// ---- alone ----

struct Alone : ::testing::TestWithParam<std::tuple<const char*, const char*, const char*>> {};

TEST_P(Alone, TheModel_FindsTheRate_AndLeavesTheQueueShort) {
  const auto [rate, rtt, loss] = GetParam();
  SharedTrial trial = shared(std::string("rate=") + rate + ",rtt=" + rtt + ",loss=" + loss, "drop-tail", 6s, {model()});
  // A buffer of a bandwidth-delay product, of 10 ms at least.
  trial.path.queue.limit = trial.path.link.rate.bytes_in(std::max<Duration>(trial.path.link.rtt, 10ms));
  const SharedResult result = result_of(trial);
  const Duration from = settled(result);
  EXPECT_GE(of_possible(result, 0, from, 6s), 0.93);
  EXPECT_LE(result.mean_queue(from, 6s), standing_limit(trial.path.link.rtt));
  EXPECT_LE(result.flows[0].data.refused * 1500, trial.path.queue.limit.count + result.data.bytes / 1000);
}

INSTANTIATE_TEST_SUITE_P(Paths, Alone,
                         ::testing::Combine(::testing::Values("10Mbit", "100Mbit"),
                                            ::testing::Values("1ms", "20ms", "200ms"),
                                            ::testing::Values("0", "1e-3", "1e-2")),
                         [](const auto& test) {
                           std::string name = std::string(std::get<0>(test.param)) + "_" + std::get<1>(test.param) +
                                              "_Loss" + std::get<2>(test.param);
                           std::erase(name, '-');
                           return name;
                         });

// Thousands of samples a second, of which one always looks like congestion.
TEST(RateControl, OnAFastPath_RandomLossIsNoCongestion) {
  for (const std::uint64_t seed : {1U, 2U}) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    SharedTrial trial = shared("rtt=20ms,rate=5Gbit,loss=1e-2", kOneBdp, 2s, {model()});
    trial.seed = seed;
    const SharedResult result = result_of(trial);
    EXPECT_GE(of_possible(result, 0, 500ms, 2s), 0.93);
  }
}

// Programs wake up late, and now and then ten times as late. What is not sent meanwhile is gone: told the rate, 0.98
// and 0.91 of it would be used.
TEST(RateControl, EndsThatWakeUpLate_FindTheRate_AndOvershootByNoMoreThanABuffer) {
  for (const auto& [wake, least] : {std::pair<Duration, double>{300us, 0.92}, {2ms, 0.7}})
    for (const std::uint64_t seed : {1U, 2U, 3U}) {
      SCOPED_TRACE(to_string(wake) + " late, seed " + std::to_string(seed));
      FlowSpec flow = model();
      flow.wake = wake;
      SharedTrial trial = shared(kLink, kOneBdp, 5s, {flow});
      trial.seed = seed;
      const SharedResult result = result_of(trial);
      EXPECT_GE(of_possible(result, 0, 200ms, 5s), least);
      EXPECT_LE(result.mean_queue(200ms, 5s), standing_limit(20ms));
      EXPECT_LE(result.flows[0].data.refused * 1500, trial.path.queue.limit.count);
    }
}

TEST(RateControl, APolicer_IsNotFoughtWith) {
  const SharedResult result = result_of(shared("rtt=20ms,rate=100Mbit", "policer", 15s, {model()}));
  EXPECT_GE(of_possible(result, 0, 2s, 15s), 0.85);
  const auto& data = result.flows[0].data;
  EXPECT_LE(static_cast<double>(data.refused) / static_cast<double>(data.packets), 0.05);
}

TEST(RateControl, MarksOfAQueue_AreHeeded) {
  const SharedResult result = result_of(shared(kLink, "codel,ecn", 10s, {model()}));
  EXPECT_GE(of_possible(result, 0, 1s, 10s), 0.9);
  EXPECT_LE(result.mean_queue(1s, 10s), 15ms);
  EXPECT_EQ(result.data.queue.codel_drops, 0U);
}

// ---- beside TCP ----

struct BesideTcp : ::testing::TestWithParam<std::tuple<FlowKind, int>> {};

TEST_P(BesideTcp, NeitherSide_IsLeftWithLessThanAQuarter) {
  const auto [kind, first] = GetParam();
  const Duration ours = first == 1 ? 5s : 0s;
  const Duration theirs = first == 2 ? 5s : 0s;
  const SharedResult result =
      result_of(shared(kLink, kOneBdp, 35s, {starting(model(), ours), starting(tcp(kind), theirs)}));
  EXPECT_GE(share(result, 0, std::max(ours, theirs), 35s), 0.25);
  EXPECT_GE(share(result, 1, std::max(ours, theirs), 35s), 0.25);
  EXPECT_GE(result.utilisation(5s, 35s), 0.9);
}

INSTANTIATE_TEST_SUITE_P(Starts, BesideTcp,
                         ::testing::Combine(::testing::Values(FlowKind::TcpCubic, FlowKind::TcpBbr),
                                            ::testing::Values(0, 1, 2)),
                         [](const auto& test) {
                           const std::string which = std::get<0>(test.param) == FlowKind::TcpBbr ? "Bbr" : "Cubic";
                           return which + "_Start" + std::to_string(std::get<1>(test.param));
                         });

// Who starts while the queue of a CUBIC stands takes it for the path, at first.
TEST(RateControl, WhoComesLater_DoesNotKeepTheQueueForItself) {
  for (const int offset : {13, 26, 39, 52, 65}) {
    SCOPED_TRACE(std::to_string(offset) + " ms");
    const SharedResult result = result_of(
        shared(kLink, kOneBdp, 35s,
               {starting(model(), 5s), starting(tcp(FlowKind::TcpCubic), std::chrono::milliseconds(offset))}));
    EXPECT_GE(share(result, 0, 5s, 35s), 0.25);
    EXPECT_GE(share(result, 1, 5s, 35s), 0.25);
  }
}

// ---- beside one another ----

TEST(RateControl, TwoOfOurs_ShareWithinFiveSeconds) {
  const SharedResult result = result_of(shared(kLink, kOneBdp, 25s, {model(), starting(model(), 5s)}));
  EXPECT_GE(result.jain(10s, 15s), 0.95);
  EXPECT_GE(result.jain(15s, 25s), 0.95);
  EXPECT_GE(result.utilisation(10s, 25s), 0.93);
}

TEST(RateControl, TwoOfOursAtDifferentDistances_ShareAsWell) {
  const SharedResult result = result_of(shared(kLink, kOneBdp, 30s, {model(), at_rtt(model(), 80ms)}));
  EXPECT_GE(result.jain(5s, 30s), 0.8);
  EXPECT_GE(result.utilisation(5s, 30s), 0.93);
}

// ---- background ----

TEST(RateControl, Background_YieldsToCubic) {
  for (const Duration start : {Duration(0s), Duration(5s)}) {
    const SharedResult result =
        result_of(shared(kLink, kOneBdp, 35s, {background(), starting(tcp(FlowKind::TcpCubic), start)}));
    EXPECT_LE(share(result, 0, start, start + 30s), 0.15) << to_string(start);
    EXPECT_GE(share(result, 1, start, start + 30s), 0.75) << to_string(start);
  }
}

TEST(RateControl, Background_UsesAnIdleLink) {
  const SharedResult result = result_of(shared(kLink, kOneBdp, 25s, {background()}));
  EXPECT_GE(of_possible(result, 0, 2s, 25s), 0.9);
}

// ---- a path that changes ----

TEST(RateControl, TheRateDropsTenfold_AndComesBack) {
  SharedTrial trial = shared(kLink, kOneBdp, 30s, {model()});
  ASSERT_TRUE(trial.path.add_change("10s:rate=10Mbit"));
  ASSERT_TRUE(trial.path.add_change("20s:rate=100Mbit"));
  const SharedResult result = result_of(trial);
  EXPECT_GE(share(result, 0, 12s, 20s), 0.93);
  EXPECT_LE(result.mean_queue(12s, 20s), 25ms);
  EXPECT_GE(share(result, 0, 22s, 30s), 0.93);
  expect_no_stall(result, 12s, 20s);
  expect_no_stall(result, 22s, 30s);
}

TEST(RateControl, ThePathGoesDark_AndComesBack) {
  const SharedResult result = result_of(shared("rtt=20ms,rate=100Mbit,outage=5s+3s", kOneBdp, 16s, {model()}));
  EXPECT_GE(share(result, 0, 10s, 16s), 0.93);
  expect_no_stall(result, 9s, 16s);
}

TEST(RateControl, ARerouteTriplesTheRtt_AndIsTakenBack) {
  SharedTrial trial = shared(kLink, kOneBdp, 25s, {model()});
  ASSERT_TRUE(trial.path.add_change("5s:rtt=60ms"));
  ASSERT_TRUE(trial.path.add_change("15s:rtt=20ms"));
  const SharedResult result = result_of(trial);
  EXPECT_GE(share(result, 0, 7s, 15s), 0.93);
  EXPECT_LE(result.mean_queue(7s, 15s), standing_limit(60ms));
  EXPECT_GE(share(result, 0, 17s, 25s), 0.93);
  expect_no_stall(result, 6s, 15s);
  expect_no_stall(result, 16s, 25s);
}

// ---- against TCP's best, each alone ----

TEST(RateControl, UnderRandomLoss_IsNotBehindBbr) {
  for (const std::string_view link : {"rtt=50ms,rate=200Mbit,loss=1e-4", "rtt=50ms,rate=200Mbit,loss=1e-2"}) {
    const SharedResult ours = result_of(shared(link, kOneBdp, 8s, {model()}));
    const SharedResult theirs = result_of(shared(link, kOneBdp, 8s, {tcp(FlowKind::TcpBbr)}));
    EXPECT_GE(ours.goodput(0, 0s, 8s), theirs.goodput(0, 0s, 8s)) << link;
  }
}

}  // namespace
}  // namespace sdr::testing

#include "simulation/shared_way.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <vector>

namespace sdr::simulation {
namespace {

using namespace std::chrono_literals;

constexpr TimePoint kStart{1s};

struct Log final : SharedWay::Traveller {
  struct Arrival {
    std::uint32_t cargo;
    Duration at;
    bool marked;
    bool last;
  };
  void arrive(std::uint32_t cargo, TimePoint at, bool marked, bool last) override {
    arrivals.push_back({cargo, at - kStart, marked, last});
  }
  void perish(std::uint32_t cargo) override { perished.push_back(cargo); }

  std::vector<Arrival> arrivals;
  std::vector<std::uint32_t> perished;
};

PathSpec path(std::string_view link, std::string_view queue = "drop-tail") {
  PathSpec spec;
  spec.link = LinkSpec::parse(link).value();
  spec.queue = QueueSpec::parse(queue, spec.link).value();
  return spec;
}

// 1000 bytes take 1 ms.
constexpr std::string_view kLink = "rtt=20ms,rate=8Mbit";

TEST(SharedWay, TwoFlows_WaitForEachOther_AndEachGoesOnAsFarAsItIsAway) {
  Log near;
  Log far;
  SharedWay way(path(kLink), Direction::Forward, kStart);
  const std::uint32_t first = way.add_flow(near, 0ms);
  const std::uint32_t second = way.add_flow(far, 30ms);
  EXPECT_TRUE(way.offer(second, 7, 1000, false, kStart));
  EXPECT_TRUE(way.offer(first, 8, 1000, false, kStart));
  way.advance(kStart + 1s);
  ASSERT_EQ(far.arrivals.size(), 1U);
  ASSERT_EQ(near.arrivals.size(), 1U);
  EXPECT_EQ(far.arrivals[0].cargo, 7U);
  EXPECT_EQ(far.arrivals[0].at, 1ms + 10ms + 30ms);
  EXPECT_EQ(near.arrivals[0].at, 2ms + 10ms);
  EXPECT_TRUE(near.arrivals[0].last);
}

TEST(SharedWay, AFullQueue_RefusesAtOnce_AndCountsItForTheFlow) {
  Log log;
  SharedWay way(path(kLink, "drop-tail,limit=2000"), Direction::Forward, kStart);
  const std::uint32_t flow = way.add_flow(log, 0ms);
  int accepted = 0;
  for (std::uint32_t n = 0; n < 10; ++n) accepted += way.offer(flow, n, 1000, false, kStart) ? 1 : 0;
  EXPECT_EQ(accepted, 3);  // one is sent, two wait
  EXPECT_EQ(way.waiting_bytes(), 2000U);
  way.advance(kStart + 1s);
  EXPECT_EQ(log.arrivals.size(), 3U);
  EXPECT_TRUE(log.perished.empty());
  EXPECT_EQ(way.counts(flow).refused, 7U);
  EXPECT_EQ(way.counts(flow).arrived_bytes, 3000U);
}

TEST(SharedWay, WhatIsLostOnTheWay_ComesBackToItsTraveller) {
  Log one;
  Log other;
  SharedWay way(path("rtt=20ms,rate=8Mbit,loss=0.5"), Direction::Forward, kStart);
  const std::uint32_t first = way.add_flow(one, 0ms);
  const std::uint32_t second = way.add_flow(other, 0ms);
  for (std::uint32_t n = 0; n < 1000; ++n) {
    const TimePoint now = kStart + n * 2ms;
    way.advance(now);
    ASSERT_TRUE(way.offer(n % 2 == 0 ? first : second, n, 1000, false, now));
  }
  way.advance(kStart + 10s);
  EXPECT_EQ(one.arrivals.size() + one.perished.size(), 500U);
  EXPECT_EQ(other.arrivals.size() + other.perished.size(), 500U);
  EXPECT_GT(one.perished.size(), 150U);
  for (const std::uint32_t cargo : one.perished) EXPECT_EQ(cargo % 2, 0U);
  EXPECT_EQ(way.counts(first).perished, one.perished.size());
}

TEST(SharedWay, Marks_ReachThoseThatUnderstandThem) {
  Log able;
  Log unable;
  SharedWay way(path(kLink, "codel,ecn,target=5ms,interval=50ms,limit=1MiB"), Direction::Forward, kStart);
  const std::uint32_t first = way.add_flow(able, 0ms);
  const std::uint32_t second = way.add_flow(unable, 0ms);
  std::uint64_t marks = 0;
  for (std::uint32_t n = 0; n < 600; ++n) {
    const TimePoint now = kStart + n * 800us;
    way.advance(now);
    way.offer(n % 2 == 0 ? first : second, n, 1000, n % 2 == 0, now);
  }
  way.advance(kStart + 10s);
  for (const Log::Arrival& arrival : able.arrivals) marks += arrival.marked ? 1U : 0U;
  EXPECT_GT(marks, 0U);
  EXPECT_EQ(marks, way.counts(first).marked);
  EXPECT_TRUE(able.perished.empty());
  EXPECT_GT(unable.perished.size(), 0U);
  for (const Log::Arrival& arrival : unable.arrivals) EXPECT_FALSE(arrival.marked);
}

TEST(SharedWay, ADuplicate_ArrivesTwice_AndIsLastOnce) {
  Log log;
  SharedWay way(path("rtt=20ms,rate=8Mbit,dup=1"), Direction::Forward, kStart);
  const std::uint32_t flow = way.add_flow(log, 0ms);
  way.offer(flow, 3, 1000, false, kStart);
  way.advance(kStart + 1s);
  ASSERT_EQ(log.arrivals.size(), 2U);
  EXPECT_FALSE(log.arrivals[0].last);
  EXPECT_TRUE(log.arrivals[1].last);
}

TEST(SharedWay, TheTap_SeesWhenAPacketWasOffered_AndWhenItArrived) {
  Log log;
  std::vector<SharedWay::Crossed> seen;
  SharedWay way(path(kLink), Direction::Forward, kStart);
  const std::uint32_t flow = way.add_flow(log, 5ms);
  way.set_tap([&](const SharedWay::Crossed& crossed) { seen.push_back(crossed); });
  way.offer(flow, 0, 1000, false, kStart + 3ms);
  way.advance(kStart + 1s);
  ASSERT_EQ(seen.size(), 1U);
  EXPECT_EQ(seen[0].flow, flow);
  EXPECT_EQ(seen[0].arrived - seen[0].offered, 1ms + 10ms + 5ms);
}

}  // namespace
}  // namespace sdr::simulation

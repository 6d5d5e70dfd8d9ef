#include "simulation/bottleneck.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace sdr::simulation {
namespace {

using namespace std::chrono_literals;

constexpr TimePoint kStart{1s};
constexpr std::uint32_t kMtu = 1500;

QueueSpec queue(std::string_view text, std::string_view link = "rtt=10ms,rate=1Gbit") {
  const Result<LinkSpec> spec = LinkSpec::parse(link);
  EXPECT_TRUE(spec.ok());
  const Result<QueueSpec> parsed = QueueSpec::parse(text, *spec);
  EXPECT_TRUE(parsed.ok()) << (parsed.ok() ? "" : parsed.error().message);
  return *parsed;
}

Bottleneck bottleneck(std::string_view text, double gbit = 1) {
  return {queue(text), Bandwidth{gbit * 1e9}, kMtu, kStart};
}

bool offer(Bottleneck& subject, TimePoint now, std::uint32_t bytes = 1250, std::uint32_t handle = 0,
           bool ecn_capable = false) {
  return subject.offer({.handle = handle, .bytes = bytes, .ecn_capable = ecn_capable, .arrived = now}, now);
}

std::vector<Departure> take_all(Bottleneck& subject, TimePoint until) {
  std::vector<Departure> taken;
  for (Departure departure; subject.take(until, departure);) taken.push_back(departure);
  return taken;
}

TEST(Bottleneck, Rate_SpacesPacketsExactly_HoweverLateItIsAsked) {
  Bottleneck subject = bottleneck("drop-tail,limit=1MiB");
  for (std::uint32_t i = 0; i < 100; ++i) EXPECT_TRUE(offer(subject, kStart, 1250, i));
  const std::vector<Departure> taken = take_all(subject, kStart + 1s);
  ASSERT_EQ(taken.size(), 100U);
  for (std::uint32_t i = 0; i < 100; ++i) {
    EXPECT_EQ(taken[i].packet.handle, i);
    EXPECT_EQ(taken[i].at, kStart + (i + 1) * 10us);
  }
  EXPECT_EQ(subject.counts().longest_wait, 990us);
}

TEST(Bottleneck, FractionsOfNanoseconds_AddUp) {
  Bottleneck subject = bottleneck("drop-tail,limit=1GiB", 100);
  for (int i = 0; i < 100'000; ++i) EXPECT_TRUE(offer(subject, kStart, 1001));  // 80.08 ns each
  EXPECT_NEAR(static_cast<double>((take_all(subject, kStart + 1s).back().at - kStart).count()), 8'008'000.0, 2);
}

TEST(Bottleneck, DropTail_HoldsItsLimitBesideThePacketThatIsBeingSent) {
  Bottleneck subject = bottleneck("drop-tail,limit=12500");
  EXPECT_TRUE(offer(subject, kStart));
  EXPECT_EQ(take_all(subject, kStart).size(), 1U) << "an idle line takes it at once";
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(offer(subject, kStart)) << i;
  EXPECT_FALSE(offer(subject, kStart));
  EXPECT_FALSE(offer(subject, kStart, 1)) << "bytes count, not packets";
  EXPECT_EQ(subject.waiting_bytes(), 12'500U);
  EXPECT_EQ(take_all(subject, kStart + 10us).size(), 1U);
  EXPECT_TRUE(offer(subject, kStart + 10us));
  EXPECT_EQ(subject.counts().tail_drops, 2U);
  EXPECT_EQ(subject.counts().most_bytes, 12'500U);
}

TEST(Bottleneck, ALimitOfNothing_StillCarriesWhatComesOneByOne) {
  Bottleneck subject = bottleneck("drop-tail,limit=0");
  for (int i = 0; i < 10; ++i) {
    EXPECT_TRUE(offer(subject, kStart + i * 10us));
    EXPECT_EQ(take_all(subject, kStart + i * 10us).size(), 1U);
    EXPECT_FALSE(offer(subject, kStart + i * 10us + 5us));
  }
}

TEST(Bottleneck, WithoutARate_PassesEverythingAtOnce) {
  Bottleneck subject(queue("drop-tail", "rtt=10ms"), Bandwidth{}, kMtu, kStart);
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(offer(subject, kStart));
  for (const Departure& departure : take_all(subject, kStart)) EXPECT_EQ(departure.at, kStart);
}

TEST(Bottleneck, ANewRate_HoldsForPacketsThatBeginThen) {
  Bottleneck subject = bottleneck("drop-tail,limit=1MiB");
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(offer(subject, kStart));
  EXPECT_EQ(take_all(subject, kStart + 15us).size(), 2U) << "begun at 0 and 10 us";
  subject.set_rate(Bandwidth{1e8}, kStart + 15us);
  const std::vector<Departure> taken = take_all(subject, kStart + 1s);
  ASSERT_EQ(taken.size(), 2U);
  EXPECT_EQ(taken[0].at, kStart + 20us + 100us);
  EXPECT_EQ(taken[1].at, kStart + 20us + 200us);
}

// --- policer ---

TEST(Bottleneck, APolicer_PassesItsBurstAtOnceAndThenTheRate) {
  Bottleneck subject = bottleneck("policer,burst=12500");
  int passed = 0;
  for (int i = 0; i < 50; ++i) passed += offer(subject, kStart);
  EXPECT_EQ(passed, 10);
  for (const Departure& departure : take_all(subject, kStart)) EXPECT_EQ(departure.at, kStart) << "no queue, no delay";
  // A packet a microsecond for 10 ms at ten times the rate.
  for (int i = 1; i <= 10'000; ++i) passed += offer(subject, kStart + i * 1us);
  EXPECT_EQ(passed, 10 + 1000);
  EXPECT_EQ(subject.counts().policed, 40U + 9000U);
  EXPECT_EQ(subject.counts().tail_drops, 0U);
}

TEST(Bottleneck, APolicersBucket_HoldsNoMoreThanItsBurst_AndFillsAtTheRateOfTheTime) {
  Bottleneck subject = bottleneck("policer,burst=12500");
  const auto passed_at = [&](Duration since) {
    int passed = 0;
    while (offer(subject, kStart + since)) ++passed;
    return passed;
  };
  EXPECT_EQ(passed_at(10s), 10);
  subject.set_rate(Bandwidth{1e8}, kStart + 10s + 50us);  // 5 packets' worth before, half of one behind
  EXPECT_EQ(passed_at(10s + 100us), 5);
}

// --- CoDel ---

// Twice the rate for two seconds.
struct Overload {
  std::uint64_t dropped = 0;
  std::uint64_t marked = 0;
  Duration last_wait{0};
};

Overload overload(std::string_view text, bool ecn_capable) {
  Bottleneck subject = bottleneck(text, 0.1);
  Overload seen;
  for (int i = 0; i < 40'000; ++i) {
    const TimePoint now = kStart + i * 50us;
    for (const Departure& departure : take_all(subject, now)) {
      seen.dropped += departure.fate == Departure::Fate::Dropped;
      seen.marked += departure.fate == Departure::Fate::Marked;
      seen.last_wait = departure.at - departure.packet.arrived;
    }
    offer(subject, now, 1250, 0, ecn_capable);
  }
  EXPECT_EQ(seen.dropped, subject.counts().codel_drops);
  EXPECT_EQ(seen.marked, subject.counts().marked);
  return seen;
}

TEST(Bottleneck, Codel_DropsMoreAndMoreOfALoadThatDoesNotYield) {
  // Of RFC 8289's law: about (t / interval / 2)^2 signals within t of constant overload.
  const Overload seen = overload("codel,limit=64MiB", true);
  EXPECT_NEAR(static_cast<double>(seen.dropped), 95, 20);
  EXPECT_EQ(seen.marked, 0U) << "without ecn";
}

TEST(Bottleneck, CodelWithEcn_MarksWhatIsCapable_AndDropsTheRest) {
  const Overload capable = overload("codel,ecn,limit=64MiB", true);
  EXPECT_EQ(capable.dropped, 0U);
  EXPECT_NEAR(static_cast<double>(capable.marked), 95, 20);
  const Overload other = overload("codel,ecn,limit=64MiB", false);
  EXPECT_EQ(other.marked, 0U);
  EXPECT_GT(other.dropped, 50U);
}

// A sender that halves its rate at each signal, one RTT later, and else adds to it: the queue settles near the target.
TEST(Bottleneck, Codel_KeepsTheQueueOfASenderThatYieldsNearTheTarget) {
  Bottleneck subject = bottleneck("codel,limit=64MiB", 0.1);
  double gap_us = 90;
  Duration waited{0};
  std::uint64_t packets = 0;
  TimePoint now = kStart;
  TimePoint deaf_until = kStart;
  while (now < kStart + 30s) {
    for (const Departure& departure : take_all(subject, now)) {
      if (departure.fate == Departure::Fate::Dropped && now > deaf_until) {
        gap_us *= 2;
        deaf_until = now + 100ms;
      }
      if (now < kStart + 10s) continue;
      waited += departure.at - departure.packet.arrived;
      ++packets;
    }
    offer(subject, now);
    gap_us -= gap_us * 2e-5;
    now += Duration(static_cast<std::int64_t>(gap_us * 1000));
  }
  const auto mean = waited / static_cast<std::int64_t>(packets);
  EXPECT_LT(mean, 40ms) << "drop-tail would stand at 64 MiB, seconds long";
  EXPECT_EQ(subject.counts().tail_drops, 0U);
}

}  // namespace
}  // namespace sdr::simulation

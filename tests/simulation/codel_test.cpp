#include "simulation/codel.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace sdr::simulation {
namespace {

using namespace std::chrono_literals;

constexpr TimePoint kStart{1s};
constexpr std::uint32_t kMtu = 1500;
constexpr std::uint64_t kBacklog = 100'000;

Codel codel() {
  return {5ms, 100ms, kMtu};
}

// A packet every millisecond that has waited for `sojourn`; the times of the signals, in ms since the first packet.
std::vector<std::int64_t> signals(Codel& subject, Duration sojourn, TimePoint from, int packets,
                                  std::uint64_t backlog = kBacklog) {
  std::vector<std::int64_t> at;
  for (int i = 0; i < packets; ++i) {
    if (subject.dequeued(sojourn, backlog, from + i * 1ms) == Codel::Verdict::Signal) at.push_back(i);
  }
  return at;
}

TEST(Codel, PacketsBelowTarget_AreLeftAlone) {
  Codel subject = codel();
  EXPECT_TRUE(signals(subject, 5ms - 1ns, kStart, 10'000).empty());
}

TEST(Codel, ABacklogOfOnePacket_IsNoStandingQueue) {
  Codel subject = codel();
  EXPECT_TRUE(signals(subject, 1s, kStart, 10'000, kMtu).empty());
  EXPECT_FALSE(signals(subject, 1s, kStart, 10'000, kMtu + 1).empty());
}

// RFC 8289: the first signal when the delay has been above target for an interval, the next ones interval/sqrt(count)
// apart, each from the last one's due time.
TEST(Codel, AboveTarget_SignalsAfterAnInterval_ThenAsTheControlLawSays) {
  Codel subject = codel();
  const std::vector<std::int64_t> at = signals(subject, 20ms, kStart, 1000);
  ASSERT_GE(at.size(), 8U);
  EXPECT_EQ(at[0], 100);
  double due = 100;
  for (std::size_t count = 1; count < 8; ++count) {
    due += 100 / std::sqrt(static_cast<double>(count));
    EXPECT_EQ(at[count], static_cast<std::int64_t>(std::ceil(due))) << "signal " << count;
  }
}

TEST(Codel, OnePacketBelowTarget_EndsTheSignals_AndTheIntervalBeginsAgain) {
  Codel subject = codel();
  EXPECT_EQ(signals(subject, 20ms, kStart, 150).size(), 1U);
  EXPECT_TRUE(signals(subject, 1ms, kStart + 150ms, 1).empty());
  EXPECT_TRUE(signals(subject, 20ms, kStart + 151ms, 100).empty());
  EXPECT_EQ(signals(subject, 20ms, kStart + 251ms, 1).size(), 1U);
}

TEST(Codel, BackSoon_GoesOnAtTheRateThatItHad_AndLaterBeginsAnew) {
  for (const bool soon : {true, false}) {
    Codel subject = codel();
    EXPECT_GT(signals(subject, 20ms, kStart, 1000).size(), 10U);
    const TimePoint again = kStart + 1s + (soon ? 200ms : 10s);
    EXPECT_TRUE(signals(subject, 1ms, again, 1).empty());
    const std::vector<std::int64_t> at = signals(subject, 20ms, again + 1ms, 250);
    ASSERT_GE(at.size(), 2U);
    EXPECT_EQ(at[0], 100);
    if (soon) {
      EXPECT_LT(at[1] - at[0], 40) << "more than 10 signals had been needed";
    } else {
      EXPECT_EQ(at[1] - at[0], 100);
    }
  }
}

// A late look: several signals are due, and each packet taken at the same time gets one until the law is satisfied.
TEST(Codel, SeveralSignalsDueAtOnce_AreAllGiven) {
  Codel subject = codel();
  EXPECT_EQ(signals(subject, 20ms, kStart, 101).size(), 1U);
  int at_once = 0;
  while (subject.dequeued(20ms, kBacklog, kStart + 300ms) == Codel::Verdict::Signal) ++at_once;
  EXPECT_EQ(at_once, 2) << "due at 200 and 271 ms, and then at 328";
}

}  // namespace
}  // namespace sdr::simulation

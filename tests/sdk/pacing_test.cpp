// How fast packets leave: the pace, and on local paths the landing window.
#include <gtest/gtest.h>

#include <deque>

#include "sdk/landing_window.hpp"
#include "sdk/pacer.hpp"
#include "tests/core/seed.hpp"
#include "tests/sdk/pair.hpp"

namespace sdr {
namespace {

using namespace testing_support;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using transport::PacketView;
using transport::Site;
using transport::Verdict;

constexpr std::uint16_t kOverhead = 44;  // of the simulated network

// When each data packet left, and its bytes as the pace counts them.
struct Departure {
  TimePoint at;
  std::uint64_t bytes;
};

struct Paced {
  explicit Paced(double bits_per_second, bool counts_overhead, std::uint64_t mtu = 1024)
      : pair({.qp = {.mtu = Bytes{mtu},
                     .packets_per_chunk = 1,
                     .max_message = 4_MiB,
                     .rate = {bits_per_second},
                     .rate_counts_overhead = counts_overhead}}),
        target(4 << 20) {
    pair.network().set_filter(Site::A, [this, counts_overhead](const PacketView& view) {
      if (view.kind == PacketView::Kind::Data)
        departures.push_back({view.now, view.length + (counts_overhead ? kOverhead : std::uint64_t{0})});
      return Verdict::Pass;
    });
  }
  void post(std::size_t bytes) {
    ASSERT_TRUE(pair.b().post_receive(std::span(target).first(bytes)).ok());
    ASSERT_TRUE(pair.run_until([&] { return pair.a().next_grant().has_value(); }));
    last = *pair.a().post_send(std::span(target).first(bytes), std::nullopt);
  }
  // Posts and waits until all is injected.
  void send(std::size_t bytes) {
    post(bytes);
    ASSERT_TRUE(pair.run_until([&] { return pair.a().sent(last); }));
  }
  // The most that left within any interval is the rate times its length, and `slack` bytes.
  [[nodiscard]] double worst_excess(double bits_per_second) const {
    double worst = 0;
    double level = 0;  // of a bucket that leaks at the rate
    for (std::size_t i = 0; i < departures.size(); ++i) {
      if (i > 0) {
        const auto gap = static_cast<double>((departures[i].at - departures[i - 1].at).count());
        level = std::max(0.0, level - gap * bits_per_second / 8e9);
      }
      level += static_cast<double>(departures[i].bytes);
      worst = std::max(worst, level);
    }
    return worst;
  }

  std::vector<Departure> departures;
  Pair pair;
  std::vector<std::byte> target;
  SendHandle last;
};

double batch_bytes(double rate) {
  return rate / 8 * 100e-6;
}  // sdk::kBatchTime

class Rates : public testing::TestWithParam<std::tuple<double, bool>> {};
INSTANTIATE_TEST_SUITE_P(From1MbitTo100Gbit, Rates,
                         testing::Combine(testing::Values(1e6, 37e6, 1e9, 100e9), testing::Bool()));

TEST_P(Rates, AreKeptToWithinABatchOverAnyInterval) {
  const auto [rate, counts_overhead] = GetParam();
  Paced paced(rate, counts_overhead);
  const std::size_t bytes = rate < 1e7 ? 100'000 : 4 << 20;
  const TimePoint start = paced.pair.now();
  paced.send(bytes);
  std::uint64_t total = 0;
  for (const Departure& departure : paced.departures) total += departure.bytes;
  EXPECT_EQ(total, bytes + (bytes + 1023) / 1024 * (counts_overhead ? kOverhead : 0U));
  const double seconds =
      std::chrono::duration<double>(paced.departures.back().at - paced.departures.front().at).count();
  const double ideal = static_cast<double>(total) * 8 / rate;
  // The last batch leaves at once, a batch (and a packet that overdraws) early.
  const double slack = 100e-6 + 2 * 1100 * 8 / rate;
  EXPECT_GE(seconds, ideal - slack);
  EXPECT_LE(seconds, ideal + slack);
  EXPECT_LE(paced.worst_excess(rate), batch_bytes(rate) + 1100);
  EXPECT_GE(paced.departures.front().at, start);
}

TEST(Pace, ASendLimit_HoldsPacketsBack_UntilItIsRaised) {
  Paced paced(1e9, true);
  paced.pair.a().set_send_limit(10);
  paced.post(100 * 1024);
  paced.pair.run_for(milliseconds(50));
  EXPECT_EQ(paced.departures.size(), 10U);
  paced.pair.a().set_send_limit(25);
  paced.pair.run_for(milliseconds(50));
  EXPECT_EQ(paced.departures.size(), 25U);
  EXPECT_LE(paced.worst_excess(1e9), batch_bytes(1e9) + 1100) << "the time for which it was held is no credit";
  paced.pair.a().set_send_limit(UINT64_MAX);
  ASSERT_TRUE(paced.pair.run_until([&] { return paced.pair.a().sent(paced.last); }));
}

TEST(Pace, BytesThatWentOtherwise_CountAgainstTheRate) {
  Paced paced(1e6, true);
  paced.pair.a().charge(Bytes{12'500});  // 100 ms
  const TimePoint start = paced.pair.now();
  paced.send(1024);
  EXPECT_GE(paced.departures.front().at - start, milliseconds(90));
}

TEST(Pace, AfterIdleTime_StartsWithoutCredit) {
  constexpr double kRate = 1e8;
  for (const bool driven : {false, true}) {
    Paced paced(kRate, true);
    for (int i = 0; i < 5; ++i) {
      paced.send(200'000);
      if (driven) {
        paced.pair.run_for(std::chrono::seconds(1));
        paced.post(100'000);
      } else {
        // Posted after a second in which nobody called, and nothing told the pacer.
        ASSERT_TRUE(paced.pair.b().post_receive(std::span(paced.target).first(100'000)).ok());
        ASSERT_TRUE(paced.pair.run_until([&] { return paced.pair.a().next_grant().has_value(); }));
        paced.pair.skip(std::chrono::seconds(1));
        paced.last = *paced.pair.a().post_send(std::span(paced.target).first(100'000), std::nullopt);
      }
      ASSERT_TRUE(paced.pair.run_until([&] { return paced.pair.a().sent(paced.last); }));
    }
    EXPECT_LE(paced.worst_excess(kRate), batch_bytes(kRate) + 1100) << "driven while idle: " << driven;
  }
}

TEST(Pace, AfterAStall_CatchesUpBoundedly) {
  constexpr double kRate = 1e8;
  for (const int stall_ms : {1, 2, 50, 1000}) {
    Paced paced(kRate, true);
    paced.post(2 << 20);
    paced.pair.run_for(milliseconds(10));
    paced.pair.skip(milliseconds(stall_ms));
    ASSERT_TRUE(paced.pair.run_until([&] { return paced.pair.a().sent(paced.last); }));
    const double caught_up = kRate / 8 * 1e-3 * std::min(stall_ms, 2);
    // Against the bucket that leaks all the time, what was held up is no excess; from the stall on it is.
    const TimePoint resumed = TimePoint{} + milliseconds(10) + milliseconds(stall_ms);
    std::uint64_t burst = 0;
    for (const Departure& departure : paced.departures)
      if (departure.at >= resumed && departure.at < resumed + microseconds(1)) burst += departure.bytes;
    EXPECT_LE(static_cast<double>(burst), caught_up + batch_bytes(kRate) * 2 + 1100 + kRate / 8 * 0.1e-3) << stall_ms;
  }
}

TEST(Pace, Changed_IsTheNewOneFromThenOn) {
  Paced paced(1e8, true);
  paced.post(4 << 20);
  paced.pair.run_for(milliseconds(50));
  paced.pair.a().set_rate({4e8});
  EXPECT_EQ(paced.pair.a().rate().bits_per_second, 4e8);
  const std::size_t before = paced.departures.size();
  paced.pair.run_for(milliseconds(50));
  const double packets = static_cast<double>(paced.departures.size() - before);
  EXPECT_NEAR(packets, 4e8 / 8 * 50e-3 / 1068, 8);
}

TEST(Pacer, ManySmallPackets_DoNotAddUpRoundingErrors) {
  sdk::Pacer pacer({400e9});
  TimePoint now{};
  pacer.idle(now, now);
  constexpr std::uint64_t kPackets = 1'000'000;
  for (std::uint64_t i = 0; i < kPackets; ++i) pacer.spend(4096);
  const double expected = kPackets * 4096 * 8.0 / 400e9 * 1e9;
  EXPECT_NEAR(static_cast<double>((pacer.next_time() - now).count()), expected, 2);
}

// A host is held up now and then, for any time; the queue of the path is what a simulated link has by default.
TEST(Pacer, AtThePathsOwnRate_AfterAnyStalls_NeverOverrunsAQueueOfTenMilliseconds) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(seed_trace(seed));
  std::mt19937_64 random(seed);
  constexpr Duration kQueue = milliseconds(10);
  for (const double rate : {20e6, 200e6, 999e6, 10e9, 400e9}) {
    sdk::Pacer pacer({rate});
    const std::uint64_t packet = 64 + random() % 1437;
    TimePoint now{};
    TimePoint wire_free{};
    for (int i = 0; i < 20000; ++i) {
      while (pacer.allowance(now) > 0) {
        pacer.spend(packet);
        wire_free = std::max(wire_free, now) + Bandwidth{rate}.time_for(Bytes{packet});
        ASSERT_LE(wire_free - now, kQueue) << rate << " bit/s, packets of " << packet << " bytes";
      }
      now = std::max(now, pacer.next_time());
      if (random() % 100 == 0) now += microseconds(random() % 30000);
    }
  }
}

// The wire of a local path, in numbers alone: bytes that wait in the receiver's socket, reports and probes under way.
TEST(LandingWindow, WithLossAndLostReports_NeverExceedsItAndNeverSticks) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(seed_trace(seed));
  std::mt19937_64 random(seed);
  for (int round = 0; round < 200; ++round) {
    const std::uint64_t packet = 64 + random() % 9000;
    const std::uint64_t size = packet * (1 + random() % 40);
    sdk::LandingWindow window;
    window.open(size, packet, 1 + random() % 10);
    sdk::LandingReporter reporter;
    reporter.report_every(size / 8);
    std::deque<std::uint64_t> socket;
    std::uint64_t in_socket = 0;
    std::uint64_t landed = 0;
    std::uint64_t sent = 0;
    TimePoint now{};
    TimePoint last_progress{};
    for (int step = 0; step < 3000; ++step) {
      now += microseconds(100);
      while (window.allowance() > 0 && random() % 8 != 0) {
        const std::uint64_t bytes = random() % 3 == 0 ? 64 + random() % (packet - 63) : packet;
        window.spend(bytes);
        sent += bytes;
        last_progress = now;
        if (random() % 20 == 0) continue;  // lost
        socket.push_back(bytes);
        in_socket += bytes;
        ASSERT_LE(in_socket, std::max(size, packet)) << "round " << round << " step " << step;
      }
      for (std::uint64_t n = random() % 6; n > 0 && !socket.empty(); --n) {
        landed += socket.front();
        in_socket -= socket.front();
        socket.pop_front();
      }
      // A probe is answered when the socket was seen empty after it: what it asks about has landed, or never will.
      if (!reporter.asked() || socket.empty()) {
        const auto report = reporter.poll(landed);
        if (report && random() % 4 != 0) {
          window.handle(*report, now);
          if (random() % 4 == 0) window.handle(*report, now);
        }
      }
      const auto probe = window.poll(window.allowance() == 0, now);
      if (probe && random() % 4 != 0) reporter.handle(*probe);
      ASSERT_LT(now - last_progress, milliseconds(100)) << "stuck in round " << round << " step " << step;
    }
    EXPECT_GT(sent, size);
  }
}

TEST(LandingWindow, WhatWasTakenForLostAndLandsAfterAll_DoesNotBlockIt) {
  sdk::LandingWindow window;
  window.open(1000, 100, 1);
  while (window.allowance() > 0) window.spend(100);
  // The answer to the probe overtook 800 bytes that were still waiting to be read.
  window.handle({.landed = 200, .probe = 1000}, TimePoint{});
  std::uint64_t sent = 1000;
  for (int round = 0; round < 100; ++round) {
    ASSERT_GT(window.allowance(), 0U) << "round " << round;
    while (window.allowance() > 0) {
      window.spend(100);
      sent += 100;
    }
    window.handle({.landed = sent, .probe = 0}, TimePoint{});
  }
}

TEST(LandingWindow, OldAndForeignReports_ChangeNothing) {
  sdk::LandingWindow window;
  window.open(1000, 100, 1);
  while (window.allowance() > 0) window.spend(100);
  window.handle({.landed = 2000, .probe = 0}, TimePoint{});
  window.handle({.landed = 5, .probe = 7000}, TimePoint{});
  EXPECT_EQ(window.allowance(), 0U);
  window.handle({.landed = 500, .probe = 0}, TimePoint{});
  const std::uint64_t open = window.allowance();
  EXPECT_GT(open, 400U);
  window.handle({.landed = 300, .probe = 900}, TimePoint{});
  EXPECT_EQ(window.allowance(), open);
}

TEST(LandingWindow, OfManyInjections_IsAllowedByWholeOnes) {
  constexpr std::uint64_t kPacket = 100;
  constexpr std::uint64_t kInjection = 6 * kPacket;
  sdk::LandingWindow window;
  window.open(20 * kInjection, kPacket, 6);
  std::uint64_t sent = 0;
  for (; window.allowance() > 0; sent += kPacket) {
    ASSERT_EQ(window.allowance() % kInjection, 0U);
    const std::uint64_t injection = window.allowance();
    for (std::uint64_t spent = 0; spent < injection; spent += kPacket) window.spend(kPacket);
    sent += injection - kPacket;
  }
  EXPECT_GT(sent, 18 * kInjection);
  window.handle({.landed = kPacket / 2, .probe = 0}, TimePoint{});
  EXPECT_EQ(window.allowance(), 0U) << "what is open would go out as less than an injection";
  window.handle({.landed = 2 * kInjection, .probe = 0}, TimePoint{});
  EXPECT_GE(window.allowance(), kInjection);
}

TEST(LandingWindow, OnAPathBetweenMachines_IsAlwaysOpen) {
  sdk::LandingWindow window;
  window.spend(1ULL << 50);
  EXPECT_EQ(window.allowance(), UINT64_MAX);
  EXPECT_FALSE(window.poll(true, TimePoint{} + std::chrono::hours(1)).has_value());
  EXPECT_EQ(window.next_timeout(true), kNever);
}

}  // namespace
}  // namespace sdr

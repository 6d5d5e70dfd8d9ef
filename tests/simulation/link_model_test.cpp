#include "simulation/link_model.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace sdr::simulation {
namespace {

using namespace std::chrono_literals;

constexpr TimePoint kStart{1s};

LinkSpec parsed(std::string_view text) {
  const Result<LinkSpec> spec = LinkSpec::parse(text);
  EXPECT_TRUE(spec.ok()) << (spec.ok() ? "" : spec.error().message);
  return *spec;
}

LinkModel link(std::string_view text, Direction direction = Direction::Forward) {
  return {parsed(text), direction};
}

struct Losses {
  double rate;
  double mean_run;
  std::uint64_t runs;
};

Losses measure_losses(std::string_view text, std::uint64_t packets) {
  LinkModel model = link(text);
  std::uint64_t lost = 0;
  std::uint64_t runs = 0;
  bool before = false;
  for (std::uint64_t i = 0; i < packets; ++i) {
    const bool now_lost = model.carry(1000, kStart).drop == Drop::Loss;
    lost += now_lost;
    runs += now_lost && !before;
    before = now_lost;
  }
  EXPECT_EQ(model.counts().lost, lost);
  return {static_cast<double>(lost) / static_cast<double>(packets),
          static_cast<double>(lost) / static_cast<double>(runs), runs};
}

// Bounds are five standard deviations: at fixed seeds a test cannot fail by chance, and a wrong formula does not pass.
TEST(LinkModel, IndependentLosses_HaveTheirMeanAndItsRuns) {
  constexpr double kPackets = 2e6;
  for (const double p : {1e-3, 1e-2, 0.3}) {
    for (const int seed : {1, 2, 3}) {
      const std::string text = "loss=" + std::to_string(p) + ",seed=" + std::to_string(seed);
      SCOPED_TRACE(text);
      const Losses losses = measure_losses(text, static_cast<std::uint64_t>(kPackets));
      EXPECT_NEAR(losses.rate, p, 5 * std::sqrt(p * (1 - p) / kPackets));
      // Runs are geometric with mean 1/(1-p) and variance p/(1-p)^2.
      EXPECT_NEAR(losses.mean_run, 1 / (1 - p),
                  5 * std::sqrt(p) / (1 - p) / std::sqrt(static_cast<double>(losses.runs)));
    }
  }
}

TEST(LinkModel, BurstLosses_HaveTheSameMeanInRunsOfTheGivenLength) {
  constexpr double kPackets = 4e6;
  for (const double burst : {2.0, 4.0, 50.0}) {
    for (const int seed : {1, 2, 3}) {
      const double p = 1e-2;
      const std::string text = "loss=0.01,burst=" + std::to_string(burst) + ",seed=" + std::to_string(seed);
      SCOPED_TRACE(text);
      const Losses losses = measure_losses(text, static_cast<std::uint64_t>(kPackets));
      // The chain's second eigenvalue 1 - q - r stretches the variance of the mean by (1 + e) / (1 - e).
      const double r = 1 / burst;
      const double e = 1 - r - p * r / (1 - p);
      EXPECT_NEAR(losses.rate, p, 5 * std::sqrt(p * (1 - p) / kPackets * (1 + e) / (1 - e)));
      EXPECT_NEAR(losses.mean_run, burst,
                  5 * std::sqrt(burst * (burst - 1)) / std::sqrt(static_cast<double>(losses.runs)));
    }
  }
}

TEST(LinkModel, LossOfZeroAndOfOne_AreExact) {
  LinkModel none = link("loss=0,burst=10");
  LinkModel all = link("loss=1,burst=10");
  for (int i = 0; i < 10000; ++i) {
    EXPECT_EQ(none.carry(1000, kStart).copies, 1);
    EXPECT_EQ(all.carry(1000, kStart).drop, Drop::Loss);
  }
}

TEST(LinkModel, SameSeed_GivesTheSameFates_AndAnotherSeedDirectionOrStreamOthers) {
  const std::string text = "rtt=25ms,rate=1Gbit,loss=0.1,burst=3,reorder=0.1,dup=0.1,jitter=1ms,seed=";
  const auto fates = [](LinkModel model) {
    std::vector<std::int64_t> all;
    for (int i = 0; i < 2000; ++i) {
      const Fate fate = model.carry(1000, kStart + i * 10us);
      all.push_back(static_cast<std::int64_t>(fate.drop));
      for (int copy = 0; copy < fate.copies; ++copy) {
        all.push_back(fate.arrival[static_cast<std::size_t>(copy)].time_since_epoch().count());
      }
    }
    return all;
  };
  const auto reference = fates(link(text + "7"));
  EXPECT_EQ(fates(link(text + "7")), reference);
  EXPECT_NE(fates(link(text + "8")), reference);
  EXPECT_NE(fates(link(text + "7", Direction::Backward)), reference);
  EXPECT_NE(fates(LinkModel(parsed(text + "7"), Direction::Forward, 1)), reference);
}

TEST(LinkModel, LossOfPacketN_DoesNotDependOnItsSizeOrTime) {
  LinkModel one = link("loss=0.1,rate=1Gbit,queue=1ms");
  LinkModel two = link("loss=0.1,rate=1Gbit,queue=1ms");
  std::uint64_t queue_drops = 0;
  for (int i = 0; i < 20000; ++i) {
    const Fate calm = one.carry(100, kStart + i * 1ms);
    const Fate rushed = two.carry(1500, kStart + i * 10us);  // overruns the rate: the queue drops some
    if (rushed.drop == Drop::Queue) {
      queue_drops++;
    } else {
      EXPECT_EQ(calm.drop, rushed.drop) << "packet " << i;
    }
  }
  EXPECT_GT(queue_drops, 100U);
  EXPECT_EQ(two.counts().dropped_by_queue, queue_drops);
}

TEST(LinkModel, LossInBursts_OnABusyLink_DoesNotDependOnTheTiming) {
  LinkModel one = link("loss=0.1,burst=20,rate=1Gbit,queue=1s");
  LinkModel two = link("loss=0.1,burst=20,rate=1Gbit,queue=1s");
  for (int i = 0; i < 20000; ++i)
    EXPECT_EQ(one.carry(1500, kStart + i * 12us).drop, two.carry(1500, kStart + i * 10us).drop) << "packet " << i;
}

// A burst is a stretch of time: it does not wait for sparse packets to lose.
TEST(LinkModel, LossInBursts_OnAnIdleLink_TakesPacketsOneByOne) {
  LinkModel sparse = link("loss=0.1,burst=50,rate=1Gbit,seed=3");
  std::uint64_t losses = 0, runs = 0;
  bool before = false;
  constexpr std::uint64_t kPackets = 100'000;
  for (std::uint64_t i = 0; i < kPackets; ++i) {
    const bool lost = sparse.carry(100, kStart + i * 20ms).drop == Drop::Loss;
    losses += lost ? 1U : 0U;
    runs += lost && !before ? 1U : 0U;
    before = lost;
  }
  EXPECT_NEAR(static_cast<double>(losses) / kPackets, 0.1, 0.005);
  EXPECT_NEAR(static_cast<double>(losses) / static_cast<double>(runs), 1 / 0.9, 0.02);
}

TEST(LinkModel, BothDirections_TogetherDelayByTheRtt) {
  LinkModel forward = link("rtt=25ms");
  EXPECT_EQ(forward.carry(1500, kStart).arrival[0], kStart + 12500us);
  LinkModel odd_forward = link("rtt=25ns");
  LinkModel odd_backward = link("rtt=25ns", Direction::Backward);
  EXPECT_EQ(odd_backward.carry(1, odd_forward.carry(1, kStart).arrival[0]).arrival[0], kStart + 25ns);
}

TEST(LinkModel, Rate_SpacesPacketsExactly) {
  LinkModel model = link("rtt=2ms,rate=1Gbit");
  for (int i = 1; i <= 100; ++i) {
    const Fate fate = model.carry(1250, kStart);  // 10 us each, all handed over at once
    EXPECT_EQ(fate.departure, kStart + i * 10us);
    EXPECT_EQ(fate.arrival[0], kStart + i * 10us + 1ms);
  }
  // After a pause the link is idle, and what was left unused is not made up for.
  EXPECT_EQ(model.carry(1250, kStart + 1s).departure, kStart + 1s + 10us);
}

TEST(LinkModel, Rate_LosesNoFractionsOfNanoseconds) {
  LinkModel model = link("rate=400Gbit,queue=1s");
  Fate last;
  for (int i = 0; i < 1'000'000; ++i) last = model.carry(4140, kStart);  // 82.8 ns each
  EXPECT_NEAR(static_cast<double>((last.departure - kStart).count()), 82.8e6, 2);
}

TEST(LinkModel, Queue_TakesItsTimeWorthOfBytes_ThenDropsTheTail) {
  LinkModel model = link("rate=1Gbit,queue=100us");
  // Each packet takes 10 us: the first starts at once, the eleventh has waited 100 us, the twelfth would wait longer.
  for (int i = 0; i < 11; ++i) EXPECT_EQ(model.carry(1250, kStart).drop, Drop::None) << i;
  EXPECT_EQ(model.carry(1250, kStart).drop, Drop::Queue);
  EXPECT_EQ(model.carry(1250, kStart + 9us).drop, Drop::Queue);
  EXPECT_EQ(model.carry(1250, kStart + 10us).drop, Drop::None);
  EXPECT_EQ(model.carry(1250, kStart + 10us).drop, Drop::Queue);
  EXPECT_EQ(model.counts().dropped_by_queue, 3U);
}

TEST(LinkModel, QueueOfZero_StillCarriesWhatComesOneByOne) {
  LinkModel model = link("rate=1Gbit,queue=0");
  EXPECT_EQ(model.carry(1250, kStart).drop, Drop::None);
  EXPECT_EQ(model.carry(1250, kStart + 5us).drop, Drop::Queue);
  EXPECT_EQ(model.carry(1250, kStart + 10us).drop, Drop::None);
}

TEST(LinkModel, Reordering_SetsItsShareOfPacketsBehindLaterOnes) {
  LinkModel model = link("rtt=25ms,rate=1Gbit,reorder=0.01");
  const Duration window = parsed("rtt=25ms,rate=1Gbit,reorder=0.01").reorder_window();
  constexpr int kPackets = 200'000;
  TimePoint latest{};
  TimePoint in_order{};
  int late = 0;
  int overtaken = 0;
  std::vector<TimePoint> arrivals;
  for (int i = 0; i < kPackets; ++i) {
    const TimePoint now = kStart + i * 10us;
    const Fate fate = model.carry(1250, now);
    arrivals.push_back(fate.arrival[0]);
    latest = std::max(latest, fate.arrival[0]);
    if (fate.late) {
      late++;
      const Duration extra = fate.arrival[0] - (fate.departure + 12500us);
      EXPECT_GE(extra, window / 10);
      EXPECT_LE(extra, window);
    } else {
      EXPECT_GE(fate.arrival[0], in_order);
      in_order = fate.arrival[0];
    }
  }
  for (int i = 0; i + 1 < kPackets; ++i) {
    overtaken += arrivals[static_cast<std::size_t>(i) + 1] < arrivals[static_cast<std::size_t>(i)];
  }
  EXPECT_NEAR(late, kPackets * 0.01, 5 * std::sqrt(kPackets * 0.01));
  EXPECT_GT(overtaken, late * 9 / 10);
  EXPECT_EQ(model.counts().reordered, static_cast<std::uint64_t>(late));
}

TEST(LinkModel, Duplication_BringsItsShareOfPacketsTwice) {
  LinkModel model = link("rtt=1ms,dup=0.05");
  constexpr int kPackets = 100'000;
  int twice = 0;
  for (int i = 0; i < kPackets; ++i) {
    const Fate fate = model.carry(1000, kStart);
    ASSERT_GE(fate.copies, 1);
    if (fate.copies == 2) {
      twice++;
      EXPECT_GT(fate.arrival[1], fate.arrival[0]);
    }
  }
  EXPECT_NEAR(twice, kPackets * 0.05, 5 * std::sqrt(kPackets * 0.05));
  EXPECT_EQ(model.counts().duplicated, static_cast<std::uint64_t>(twice));
}

TEST(LinkModel, Jitter_MovesTheDelayWithinItsBoundsAndKeepsTheOrder) {
  LinkModel model = link("rtt=10ms,jitter=4ms");
  TimePoint last{};
  Duration least = 1h;
  Duration most{};
  for (int i = 0; i < 1'000'000; ++i) {
    const TimePoint now = kStart + i * 1us;
    const TimePoint arrival = model.carry(1000, now).arrival[0];
    ASSERT_GE(arrival, last);
    last = arrival;
    least = std::min<Duration>(least, arrival - now);
    most = std::max<Duration>(most, arrival - now);
  }
  EXPECT_GE(least, 5ms);
  EXPECT_LE(most, 9ms);
  EXPECT_LT(least, 5500us);
  EXPECT_GT(most, 8500us);
}

TEST(LinkModel, LongestDelay_IsNeverExceeded) {
  LinkModel model = link("rtt=10ms,rate=1Gbit,queue=1ms,jitter=2ms,reorder=0.2,dup=0.2");
  for (int i = 0; i < 100'000; ++i) {
    const TimePoint now = kStart + i * 11us;
    const Fate fate = model.carry(1500, now);
    for (int copy = 0; copy < fate.copies; ++copy) {
      // The time on the wire of the packet itself comes on top.
      EXPECT_LE(fate.arrival[static_cast<std::size_t>(copy)] - now, model.longest_delay() + 12us + 1ns);
    }
  }
}

// --- sizes, outages, traces ---

double lost_share(LinkModel& model, std::uint32_t bytes, int packets) {
  int lost = 0;
  for (int i = 0; i < packets; ++i) lost += model.carry(bytes, kStart).drop == Drop::Loss;
  return static_cast<double>(lost) / packets;
}

TEST(LinkModel, LossThatDependsOnSize_GrowsWithEachPacketsBytes) {
  constexpr int kPackets = 400'000;
  for (const char* text : {"loss=0.01,losssize=1000", "loss=0.01,losssize=1000,burst=4"}) {
    SCOPED_TRACE(text);
    LinkModel model = link(text);
    for (const std::uint32_t bytes : {1000U, 4000U, 100U}) {
      const double expected = 1 - std::pow(0.99, bytes / 1000.0);
      // Runs of 4 make the mean of a sample about sqrt(7) times as uncertain.
      EXPECT_NEAR(lost_share(model, bytes, kPackets), expected, 14 * std::sqrt(expected / kPackets)) << bytes;
    }
  }
}

TEST(LinkModel, LossOfTheWayBack_IsThatOfTheWayThereUnlessItIsGiven) {
  constexpr int kPackets = 100'000;
  const auto lost = [](const char* text, Direction direction) {
    LinkModel model(LinkSpec::parse(text).value(), direction);
    return lost_share(model, 1000, kPackets);
  };
  EXPECT_NEAR(lost("loss=0.1", Direction::Backward), 0.1, 0.01);
  EXPECT_NEAR(lost("loss=0.1,lossback=0.3", Direction::Forward), 0.1, 0.01);
  EXPECT_NEAR(lost("loss=0.1,lossback=0.3", Direction::Backward), 0.3, 0.01);
  EXPECT_EQ(lost("loss=0.1,lossback=0,burst=4", Direction::Backward), 0);
  EXPECT_NEAR(lost("lossback=0.2,burst=4", Direction::Backward), 0.2, 0.03);
}

TEST(LinkModel, Outage_LosesWhatDepartsInIt) {
  LinkModel model = link("rtt=10ms,outage=5ms+2ms/20ms+1ms");
  const auto lost_at = [&](Duration since) { return model.carry(1000, kStart + since).drop == Drop::Loss; };
  EXPECT_FALSE(lost_at(0ms)) << "counted from the first packet";
  EXPECT_FALSE(lost_at(4999us));
  EXPECT_TRUE(lost_at(5ms));
  EXPECT_TRUE(lost_at(6999us));
  EXPECT_FALSE(lost_at(7ms));
  EXPECT_TRUE(lost_at(20500us));
  EXPECT_FALSE(lost_at(21ms));
  EXPECT_EQ(model.counts().lost, 3U);
}

TEST(LinkModel, Trace_SaysWhichPacketsAreLost_OverAndOver) {
  LinkModel model = link("trace=3:2:0:1:1:0");
  std::string fates;
  for (int i = 0; i < 16; ++i) fates += model.carry(1000, kStart).drop == Drop::Loss ? 'x' : '.';
  EXPECT_EQ(fates, "...xxx....xxx...");
}

TEST(LinkModel, OutagesAndTraces_DoNotDisturbTheOtherLosses) {
  LinkModel plain = link("loss=0.1,seed=3");
  LinkModel more = link("loss=0.1,seed=3,trace=10:1,outage=59min+1s");
  for (int i = 0; i < 1000; ++i) {
    const bool lost = plain.carry(1000, kStart).drop == Drop::Loss;
    EXPECT_EQ(more.carry(1000, kStart).drop == Drop::Loss, lost || i % 11 == 10) << i;
  }
}

}  // namespace
}  // namespace sdr::simulation

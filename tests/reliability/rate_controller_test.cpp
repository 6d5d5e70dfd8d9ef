// The controllers against a tiny path: alone, beside others, and when the path changes.
#include <gtest/gtest.h>

#include "reliability/background_rate.hpp"
#include "reliability/fixed_rate.hpp"
#include "reliability/model_rate.hpp"
#include "scripted_path.hpp"

namespace sdr::reliability::scripted {
namespace {

constexpr double kMbit = 1e6;

std::shared_ptr<RateGroup> model(std::uint64_t seed = 1, Bandwidth most = {}) {
  return std::make_shared<RateGroup>(RateMode::Model,
                                     std::make_unique<ModelRate>(ModelRate::Options{.most = most, .seed = seed}));
}
std::shared_ptr<RateGroup> background() {
  return std::make_shared<RateGroup>(RateMode::Background, std::make_unique<BackgroundRate>(BackgroundRate::Options{}));
}

// What one flow gets of a path by itself.
struct Alone {
  double used = 0;         // share of what can get through, from the tenth round trip (at most 2 s) on
  double queue_ms = 0;     // mean
  double start_drops = 0;  // of buffers
  double lost = 0;         // share of all that was sent
};
Alone run_alone(const Bottle& bottle, double rtt, const std::shared_ptr<RateGroup>& group, double length = 8) {
  World world(bottle);
  SdrFlow flow(world, rtt, group);
  flow.start();
  const double settled = std::min(10 * rtt, 2.0);
  double waited = 0;
  int looks = 0;
  std::function<void()> look = [&] {
    if (to_seconds(world.now - kStart) > settled) {
      waited += world.path.queued(world.now) * 8 / bottle.rate;
      ++looks;
    }
    world.at(world.now + seconds(rtt / 7.3), look);
  };
  world.at(kStart, look);
  world.run_until(kStart + seconds(settled));
  const std::uint64_t before = flow.delivered;
  Alone out;
  out.start_drops = static_cast<double>(world.path.drops()) * kPacket / bottle.buffer;
  world.run_until(kStart + seconds(length));
  const double bits = static_cast<double>(flow.delivered - before) * 8;
  out.used = bits / (length - settled) / bottle.rate / (1 - bottle.loss);
  out.queue_ms = waited / looks * 1e3;
  out.lost = 1 - static_cast<double>(flow.delivered) / static_cast<double>(flow.sent);
  return out;
}

double jain(double a, double b) {
  return (a + b) * (a + b) / 2 / (a * a + b * b);
}

TEST(ModelRate, Alone_FillsThePath_WithAShortQueue_WhateverItLosesAtRandom) {
  for (const double mbit : {1.0, 10.0, 100.0, 1000.0})
    for (const double rtt : {0.01, 0.05, 0.2})
      for (const double loss : {0.0, 0.01, 0.05}) {
        if (mbit * rtt > 100 || (mbit < 10 && rtt < 0.05)) continue;
        SCOPED_TRACE(testing::Message() << mbit << " Mbit/s, " << rtt << " s, loss " << loss);
        const double rate = mbit * kMbit;
        const Alone alone = run_alone({.rate = rate, .buffer = rate * rtt / 8 + kPacket, .loss = loss}, rtt, model());
        EXPECT_GT(alone.used, mbit < 10 ? 0.85 : loss > 0.01 ? 0.9 : 0.93);
        EXPECT_LT(alone.queue_ms, std::max(mbit < 10 ? 30.0 : 15.0, 250 * rtt));
        // Below, the first packets alone are more than a buffer.
        if (mbit >= 10) {
          EXPECT_LE(alone.start_drops, 1.1);
        }
      }
}

TEST(ModelRate, APolicer_IsSeen_AndNotPaidFor) {
  for (const double rtt : {0.01, 0.02, 0.04}) {
    SCOPED_TRACE(rtt);
    const Alone alone = run_alone({.rate = 100 * kMbit, .buffer = 65536, .policer = true}, rtt, model(), 15);
    EXPECT_GT(alone.used, 0.85);
    EXPECT_LT(alone.lost, 0.05);
  }
}

// Other work of the machine lets it wake up late, now and then by far: what it then sends less is not the path's doing.
TEST(ModelRate, ASenderThatIsHeldUp_DoesNotTakeItForThePath) {
  for (const double late : {0.0005, 0.002, 0.004}) {
    SCOPED_TRACE(testing::Message() << "late by " << late << " s in the mean");
    World world({.rate = 100 * kMbit, .buffer = 250'000});
    SdrFlow flow(world, 0.02, model());
    flow.late = late;
    flow.start();
    world.run_until(kStart + seconds(1));
    const std::uint64_t before = flow.delivered;
    world.run_until(kStart + seconds(11));
    EXPECT_GT(static_cast<double>(flow.delivered - before) * 8 / 10, 90 * kMbit);
  }
}

TEST(ModelRate, MarksOfAShortQueue_KeepItShort) {
  const double rate = 100 * kMbit;
  const Bottle bottle{.rate = rate, .buffer = rate * 0.05 / 8, .ecn_mark_at = rate * 0.002 / 8};
  const Alone alone = run_alone(bottle, 0.05, model());
  EXPECT_GT(alone.used, 0.9);
  EXPECT_LT(alone.queue_ms, 3);
}

TEST(ModelRate, TheMostItMaySend_IsNotExceeded) {
  World world({.rate = 100 * kMbit, .buffer = 1e6});
  SdrFlow flow(world, 0.02, model(1, {20 * kMbit}));
  flow.start();
  world.run_until(kStart + seconds(5));
  const double rate = static_cast<double>(flow.sent) * 8 / 5;
  EXPECT_LT(rate, 20.2 * kMbit);
  EXPECT_GT(rate, 18 * kMbit);
}

template <typename Tcp>
std::pair<double, double> beside(double rtt, double ours_first) {
  const double rate = 100 * kMbit;
  World world({.rate = rate, .buffer = rate * rtt / 8});
  SdrFlow ours(world, rtt, model());
  Tcp theirs(world, rtt);
  world.at(kStart + seconds(std::max(-ours_first, 0.0)), [&] { ours.start(); });
  world.at(kStart + seconds(std::max(ours_first, 0.0)), [&] { theirs.start(); });
  world.run_until(kStart + seconds(std::abs(ours_first)));
  const std::uint64_t a = ours.delivered;
  const std::uint64_t b = theirs.delivered;
  world.run_until(kStart + seconds(std::abs(ours_first) + 30));
  return {static_cast<double>(ours.delivered - a) * 8 / 30 / rate,
          static_cast<double>(theirs.delivered - b) * 8 / 30 / rate};
}

TEST(ModelRate, BesideCubic_NeitherStarves) {
  for (const double rtt : {0.01, 0.02, 0.05})
    for (const double first : {0.0, 5.0, -5.0}) {
      SCOPED_TRACE(testing::Message() << rtt << " s, ours first by " << first << " s");
      const auto [ours, theirs] = beside<CubicFlow>(rtt, first);
      EXPECT_GT(ours, 0.25);
      EXPECT_GT(theirs, 0.25);
    }
}

TEST(ModelRate, BesideBbr_NeitherStarves) {
  for (const double first : {0.0, 5.0, -5.0}) {
    SCOPED_TRACE(testing::Message() << "ours first by " << first << " s");
    const auto [ours, theirs] = beside<BbrFlow>(0.02, first);
    EXPECT_GT(ours, 0.25);
    EXPECT_GT(theirs, 0.15);  // a coarse one; tests/experiment has a better
  }
}

TEST(ModelRate, TwoOfOurs_ShareAlike_SoonAndWithOtherRtts) {
  const double rate = 100 * kMbit;
  const auto shares = [&](double rtt_a, double rtt_b, double later, double from, double to) {
    World world({.rate = rate, .buffer = rate * std::max(rtt_a, rtt_b) / 8});
    SdrFlow a(world, rtt_a, model(1));
    SdrFlow b(world, rtt_b, model(2));
    a.start();
    world.at(kStart + seconds(later), [&] { b.start(); });
    world.run_until(kStart + seconds(later + from));
    const std::uint64_t had_a = a.delivered;
    const std::uint64_t had_b = b.delivered;
    world.run_until(kStart + seconds(later + to));
    return jain(static_cast<double>(a.delivered - had_a), static_cast<double>(b.delivered - had_b));
  };
  EXPECT_GT(shares(0.02, 0.02, 0, 5, 20), 0.95);
  EXPECT_GT(shares(0.02, 0.02, 3, 5, 20), 0.95);
  EXPECT_GT(shares(0.02, 0.08, 0, 5, 30), 0.8);
  EXPECT_GT(shares(0.02, 0.08, 3, 5, 30), 0.8);
}

TEST(ModelRate, APathThatBecomesSlower_Faster_Dark_OrLonger_IsFoundAgain) {
  const double rate = 100 * kMbit;
  const auto used = [](World& world, const SdrFlow& flow, double from, double to, double of) {
    world.run_until(kStart + seconds(from));
    const std::uint64_t before = flow.delivered;
    world.run_until(kStart + seconds(to));
    return static_cast<double>(flow.delivered - before) * 8 / (to - from) / of;
  };
  for (const double rtt : {0.02, 0.05}) {
    SCOPED_TRACE(rtt);
    World world({.rate = rate, .buffer = rate * rtt / 8});
    SdrFlow flow(world, rtt, model());
    flow.start();
    world.at(kStart + seconds(5), [&] { world.path.set_rate(rate / 10, world.now); });
    world.at(kStart + seconds(15), [&] { world.path.set_rate(rate, world.now); });
    world.at(kStart + seconds(20), [&] { world.path.set_dark(true); });
    world.at(kStart + seconds(23), [&] { world.path.set_dark(false); });
    world.at(kStart + seconds(28), [&] { flow.set_rtt(3 * rtt); });
    EXPECT_GT(used(world, flow, 7, 15, rate / 10), 0.9) << "a tenth";
    EXPECT_GT(used(world, flow, 17, 20, rate), 0.9) << "all of it again";
    EXPECT_GT(used(world, flow, 25, 28, rate), 0.9) << "after the dark";
    EXPECT_GT(used(world, flow, 30, 35, rate), 0.9) << "another route";
  }
}

TEST(ModelRate, ConnectionsThatShareIt_HaveOneRateBetweenThem) {
  const double rate = 100 * kMbit;
  World world({.rate = rate, .buffer = rate * 0.02 / 8});
  const auto group = model();
  SdrFlow a(world, 0.02, group);
  SdrFlow b(world, 0.02, group);
  a.start();
  b.start();
  world.at(kStart + seconds(4), [&] { b.wants = false; });
  world.run_until(kStart + seconds(1));
  const std::uint64_t had_a = a.delivered;
  const std::uint64_t had_b = b.delivered;
  world.run_until(kStart + seconds(4));
  const auto got_a = static_cast<double>(a.delivered - had_a) * 8 / 3 / rate;
  const auto got_b = static_cast<double>(b.delivered - had_b) * 8 / 3 / rate;
  EXPECT_GT(got_a + got_b, 0.93);
  EXPECT_GT(jain(got_a, got_b), 0.99);
  world.run_until(kStart + seconds(5));
  const std::uint64_t alone = a.delivered;
  world.run_until(kStart + seconds(7));
  EXPECT_GT(static_cast<double>(a.delivered - alone) * 8 / 2 / rate, 0.93) << "what the other does not use";
}

TEST(BackgroundRate, AnIdlePath_IsUsed) {
  for (const double mbit : {10.0, 100.0, 1000.0})
    for (const double rtt : {0.02, 0.05}) {
      SCOPED_TRACE(testing::Message() << mbit << " Mbit/s, " << rtt << " s");
      const double rate = mbit * kMbit;
      const Alone alone = run_alone({.rate = rate, .buffer = rate * rtt / 8}, rtt, background(), 10);
      EXPECT_GT(alone.used, 0.9);
    }
}

TEST(BackgroundRate, BesideCubic_Yields) {
  const double rate = 100 * kMbit;
  for (const double first : {0.0, -5.0}) {
    World world({.rate = rate, .buffer = rate * 0.02 / 8});
    SdrFlow ours(world, 0.02, background());
    CubicFlow theirs(world, 0.02);
    world.at(kStart + seconds(-first), [&] { ours.start(); });
    theirs.start();
    world.run_until(kStart + seconds(30));
    EXPECT_LT(static_cast<double>(ours.delivered) * 8 / 30 / rate, 0.15);
    EXPECT_GT(static_cast<double>(theirs.delivered) * 8 / 30 / rate, 0.75);
  }
}

TEST(FixedRate, IsWhatWasGiven_WhateverIsLost) {
  const double rate = 100 * kMbit;
  World world({.rate = rate, .buffer = rate * 0.02 / 8, .loss = 0.3});
  SdrFlow flow(world, 0.02,
               std::make_shared<RateGroup>(RateMode::Fixed, std::make_unique<FixedRate>(Bandwidth{rate * 0.9})));
  flow.start();
  world.run_until(kStart + seconds(3));
  EXPECT_NEAR(static_cast<double>(flow.sent) * 8 / 3, rate * 0.9, rate * 0.02);
}

}  // namespace
}  // namespace sdr::reliability::scripted

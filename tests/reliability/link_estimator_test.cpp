// What is believed of a path, and how fast that changes.
#include "sdr/link_estimator.hpp"

#include <gtest/gtest.h>

#include <random>

#include "tests/reliability/pair.hpp"

namespace sdr::testing {
namespace {

// Packets in portions, lost with `loss` each.
class Path {
 public:
  explicit Path(std::uint64_t seed) : random_(seed) {}
  void carry(LinkEstimator& link, std::uint64_t packets, double loss, std::uint64_t portion = 1000) {
    for (; packets > 0; packets -= std::min(packets, portion)) {
      const std::uint64_t n = std::min(packets, portion);
      link.saw_packets(n, std::binomial_distribution<std::int64_t>(static_cast<std::int64_t>(n), loss)(random_));
    }
  }

 private:
  std::mt19937_64 random_;
};

TEST(LinkEstimator, BeginsCautious) {
  const LinkEstimator link;
  EXPECT_NEAR(link.estimate().loss, 1e-3, 1e-9);
  EXPECT_GT(link.estimate().loss_upper, 5e-3);
  EXPECT_EQ(link.estimate().burst, 1);
}

TEST(LinkEstimator, FindsTheLoss_AndItsDoubtShrinks) {
  const std::uint64_t seed = test_seed(1);
  SCOPED_TRACE(seed_trace(seed));
  for (const double loss : {1e-4, 1e-3, 1e-2, 5e-2}) {
    LinkEstimator link;
    Path path(seed);
    path.carry(link, 4'000'000, loss);
    const LinkEstimate found = link.estimate();
    EXPECT_NEAR(found.loss, loss, 0.2 * loss);
    EXPECT_GT(found.loss_upper, found.loss);
    EXPECT_LT(found.loss_upper, 1.4 * loss);
  }
}

TEST(LinkEstimator, AQuietPath_IsBelievedToBeQuiet) {
  LinkEstimator link;
  link.saw_packets(10'000'000, 0);
  EXPECT_LT(link.estimate().loss_upper, 1e-6);
}

TEST(LinkEstimator, AHundredfoldJump_IsBelievedWithinAWrite) {
  const std::uint64_t seed = test_seed(2);
  SCOPED_TRACE(seed_trace(seed));
  LinkEstimator link;
  Path path(seed);
  path.carry(link, 20'000'000, 1e-4);
  path.carry(link, 32'768, 1e-2);
  EXPECT_GT(link.estimate().loss_upper, 8e-3);
  EXPECT_LT(link.estimate().loss_upper, 3e-2);
}

TEST(LinkEstimator, ABadHour_IsNotForgottenInAQuietMinute) {
  const std::uint64_t seed = test_seed(3);
  SCOPED_TRACE(seed_trace(seed));
  LinkEstimator link;
  Path path(seed);
  path.carry(link, 20'000'000, 1e-2);
  path.carry(link, 1'000'000, 0);
  EXPECT_GT(link.estimate().loss, 5e-3);
  path.carry(link, 200'000'000, 0, 100'000);
  EXPECT_LT(link.estimate().loss, 1e-4);  // but it is, in the end
}

TEST(LinkEstimator, WhatCameLaterAfterAll_IsNotLost) {
  LinkEstimator link;
  link.saw_packets(100'000, 5'000);  // overtaken by the word of them
  link.saw_packets(100'000, -5'000);
  EXPECT_LT(link.estimate().loss, 1e-3);
}

TEST(LinkEstimator, BurstsMakeTheSameCountWorthLess) {
  LinkEstimator single, bursts;
  for (LinkEstimator* link : {&single, &bursts}) link->saw_packets(1'000'000, 1'000);
  single.saw_runs(1'000, 1'000);
  bursts.saw_runs(1'000, 20);
  EXPECT_NEAR(bursts.estimate().burst, 50, 5);
  EXPECT_EQ(bursts.estimate().loss, single.estimate().loss);
  EXPECT_GT(bursts.estimate().loss_upper, single.estimate().loss_upper * 1.3);
}

TEST(LinkEstimator, Restored_IsSure) {
  LinkEstimator link;
  link.restore(1e-4, 8);
  EXPECT_NEAR(link.estimate().loss, 1e-4, 1e-9);
  EXPECT_NEAR(link.estimate().burst, 8, 0.01);
  link.saw_packets(1000, 1);
  EXPECT_NEAR(link.estimate().loss, 1e-4, 1e-6);
  link.restore(0, 1);
  EXPECT_EQ(link.estimate().loss_upper, 0);
}

}  // namespace
}  // namespace sdr::testing

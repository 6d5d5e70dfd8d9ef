// How much parity a loss process asks for: against the binomial distribution, a Monte Carlo of bursts, and its own
// bound.
#include "coding/parity_plan.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "coding/shards.hpp"

namespace sdr::coding {
namespace {

double binomial_more_than(unsigned n, double p, unsigned count) {
  double sum = 0;
  for (unsigned i = n; i > count; --i)
    sum += std::exp(std::lgamma(n + 1.0) - std::lgamma(i + 1.0) - std::lgamma(n - i + 1.0) + i * std::log(p) +
                    (n - i) * std::log1p(-p));
  return sum;
}

TEST(LossDistribution, OfIndependentLosses_IsBinomial) {
  for (const double p : {1e-6, 1e-3, 0.05, 0.4}) {
    LossDistribution losses({p, 1 / (1 - p)}, 1);
    for (unsigned n = 1; n <= 60; ++n) {
      losses.step();
      for (const unsigned count : {0U, 1U, 3U, 10U}) {
        if (count >= n) continue;
        const double expected = binomial_more_than(n, p, count);
        EXPECT_NEAR(losses.more_than(count), expected, 1e-9 * expected + 1e-18) << p << " " << n << " " << count;
      }
    }
  }
}

TEST(LossDistribution, OfBursts_IsThatOfTheChainInStrides) {
  constexpr double kLoss = 0.1;
  constexpr double kBurst = 5;
  constexpr unsigned kChunks = 12;
  for (const unsigned stride : {1U, 3U, 40U}) {
    std::mt19937_64 random(stride);
    std::uniform_real_distribution<double> uniform;
    const double ends = 1 / kBurst;
    const double begins = ends * kLoss / (1 - kLoss);
    std::array<unsigned, kChunks + 1> seen{};
    constexpr unsigned kRuns = 100'000;
    for (unsigned run = 0; run < kRuns; ++run) {
      bool lost = uniform(random) < kLoss;
      unsigned count = lost ? 1 : 0;
      for (unsigned i = 1; i < kChunks * stride - stride + 1; ++i) {
        lost = lost ? uniform(random) >= ends : uniform(random) < begins;
        if (i % stride == 0 && lost) ++count;
      }
      ++seen[count];
    }
    LossDistribution losses({kLoss, kBurst}, stride);
    for (unsigned i = 0; i < kChunks; ++i) losses.step();
    double above = 1;
    for (unsigned count = 0; count <= 6; ++count) {
      above -= static_cast<double>(seen[count]) / kRuns;
      EXPECT_NEAR(losses.more_than(count), above, 5 * std::sqrt(above / kRuns) + 1e-3) << stride << " " << count;
    }
  }
}

TEST(ParityPlan, OfAChunkOrTwo_IsAFewCopies) {
  EXPECT_EQ(plan_parity(1, {1e-2, 1}, 1e-5, 254).parity_each, 2U);
  EXPECT_EQ(plan_parity(2, {1e-2, 1}, 1e-5, 253).parity_each, 2U);
  EXPECT_EQ(plan_parity(1, {0.05, 1}, 1e-5, 254).parity_each, 3U);
}

TEST(ParityPlan, WithoutLossOrChunksOrRoom_IsNothing) {
  EXPECT_EQ(plan_parity(1000, {0, 1}, 1e-5, 1000), ParityPlan());
  EXPECT_EQ(plan_parity(0, {0.1, 1}, 1e-5, 1000), ParityPlan());
  EXPECT_EQ(plan_parity(1000, {0.1, 1}, 1e-5, 0), ParityPlan());
}

// For every size and loss: it fits GF(2^8) and the room, its bound holds where the room allows it, and one parity chunk
// a submessage less would not do.
TEST(ParityPlan, IsTheLeastThatHolds) {
  for (const std::uint32_t chunks : {1U, 7U, 32U, 100U, 256U, 2048U, 32768U, 262144U})
    for (const double loss : {1e-6, 1e-4, 1e-2, 0.05, 0.2})
      for (const double burst : {1.0, 8.0}) {
        const std::uint32_t most = std::max(chunks, 254U);
        const ParityPlan plan = plan_parity(chunks, {loss, burst}, 1e-5, most);
        ASSERT_GE(plan.submessages, 1U);
        const std::uint32_t k = (chunks + plan.submessages - 1) / plan.submessages;
        EXPECT_LE(k + plan.parity_each, kMaxShards);
        EXPECT_LE(std::uint64_t{plan.submessages} * plan.parity_each, most);
        LossDistribution losses({loss, burst}, plan.submessages);
        for (std::uint32_t i = 0; i < k + plan.parity_each; ++i) losses.step();
        EXPECT_NEAR(plan.failure, std::min(1.0, losses.more_than(plan.parity_each) * plan.submessages),
                    1e-9 * plan.failure);
        if (plan.failure > 1e-5) {
          EXPECT_GT(burst, 1) << chunks << " " << loss;  // only bursts are too much for it
          continue;
        }
        if (plan.parity_each == 0) continue;
        LossDistribution fewer({loss, burst}, plan.submessages);
        for (std::uint32_t i = 0; i < k + plan.parity_each - 1; ++i) fewer.step();
        EXPECT_GT(fewer.more_than(plan.parity_each - 1) * plan.submessages, 1e-5) << chunks << " " << loss;
      }
}

TEST(ParityPlan, KeepsToTheRoomThereIs) {
  for (const std::uint32_t most : {1U, 5U, 8U, 100U, 3000U}) {
    const ParityPlan plan = plan_parity(10'000, {0.05, 1}, 1e-5, most);
    EXPECT_LE(plan.submessages * plan.parity_each, most);
  }
}

}  // namespace
}  // namespace sdr::coding

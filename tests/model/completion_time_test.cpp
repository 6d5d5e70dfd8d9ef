// The theory against its Monte Carlo, cell by cell; against enumeration where that is possible; and at its edges.
#include "model/completion_time.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "model/erasure_code.hpp"
#include "tests/core/seed.hpp"
#include "tests/model/paths.hpp"

namespace sdr::model::testing {
namespace {

using testing_support::seed_trace;
using testing_support::test_seed;

constexpr SchemeKind kSchemes[] = {SchemeKind::SrRto, SchemeKind::SrNack, SchemeKind::EcXor, SchemeKind::EcRs};
constexpr Bytes kSizes[] = {128_KiB, 1_MiB, 32_MiB, 128_MiB, 1_GiB, 32_GiB};
constexpr double kLosses[] = {1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 5e-2};

// As many samples as fit into a fraction of a second; 0 where these would be too few to say anything of the 99.9th
// percentile.
std::size_t affordable_samples(const Transfer& transfer, SchemeKind kind) {
  double losses = 1.25 * static_cast<double>(transfer.chunks()) * transfer.loss().p();
  if (!scheme_of(kind).coded() || losses > Sampler::kCountedLosses) losses = 1;
  const auto affordable = static_cast<std::size_t>(2e7 / (losses + 100));
  return affordable < 20'000 ? 0 : affordable;
}

class ModelAndSamples : public ::testing::TestWithParam<SchemeKind> {};

TEST_P(ModelAndSamples, AgreeInMeanAndTail_OnEveryCell) {
  const std::uint64_t seed = test_seed(7);
  SCOPED_TRACE(seed_trace(seed));
  int cells = 0;
  for (const Bytes size : kSizes) {
    for (const double loss : kLosses) {
      const Transfer transfer = transfer_of(size, loss);
      const std::size_t count = affordable_samples(transfer, GetParam());
      if (count == 0) continue;
      SCOPED_TRACE(to_string(size) + ", loss " + std::to_string(loss));
      const Summary theory = time_of(size, loss, GetParam()).summary();
      const Summary drawn = samples(transfer, scheme_of(GetParam()), {count, seed, 2})->summary();
      EXPECT_NEAR(to_seconds(drawn.mean) / to_seconds(theory.mean), 1, 0.02);
      EXPECT_NEAR(to_seconds(drawn.p999) / to_seconds(theory.p999), 1, 0.03);
      ++cells;
    }
  }
  EXPECT_GE(cells, 30);
}

INSTANTIATE_TEST_SUITE_P(Schemes, ModelAndSamples, ::testing::ValuesIn(kSchemes), [](const auto& scheme) {
  std::string name(to_string(scheme.param));
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

TEST(ModelAndSamples, AgreeWithinTheirNoise_WhenChunksAreLostInRuns) {
  const std::uint64_t seed = test_seed(11);
  SCOPED_TRACE(seed_trace(seed));
  for (const SchemeKind kind : kSchemes) {
    for (const Bytes size : {32_MiB, 128_MiB}) {
      for (const double loss : {1e-4, 1e-3}) {
        SCOPED_TRACE(std::string(to_string(kind)) + ", " + to_string(size) + ", loss " + std::to_string(loss));
        const Transfer transfer = transfer_of(size, loss, 4);
        const Duration theory = CompletionTime::of(transfer, scheme_of(kind))->mean();
        const Duration drawn = samples(transfer, scheme_of(kind), {30'000, seed, 2})->summary().mean;
        EXPECT_NEAR(to_seconds(drawn) / to_seconds(theory), 1, 0.02);
      }
    }
  }
}

// P(max X_i <= q) as the paper writes it, chunk by chunk.
double cdf_chunk_by_chunk(const Transfer& transfer, const SchemeSpec& scheme, double q) {
  const double period = scheme.period(transfer);
  if (q < static_cast<double>(transfer.chunks()) * transfer.injection()) return 0;
  double product = 1;
  for (std::uint64_t i = 1; i <= transfer.chunks(); ++i) {
    const double sent = 1 + std::floor((q - static_cast<double>(i) * transfer.injection()) / period);
    product *= 1 - std::pow(transfer.loss().p(), sent);
  }
  return product;
}

TEST(SelectiveRepeat, Distribution_IsThatOfThePaperChunkByChunk) {
  PathSpec path = paper_path(0.03);
  path.rate = {1e9};  // so that injection is as long as several timeouts
  const Transfer transfer = Transfer::create(path, 20_MiB).value();
  for (const SchemeKind kind : {SchemeKind::SrRto, SchemeKind::SrNack}) {
    const CompletionTime time = CompletionTime::of(transfer, scheme_of(kind)).value();
    for (double q = 0.1601; q < 1; q += 0.0137) {
      EXPECT_NEAR(time.cdf(to_duration(q + transfer.rtt())), cdf_chunk_by_chunk(transfer, scheme_of(kind), q), 1e-9)
          << q;
    }
  }
}

TEST(SelectiveRepeat, Mean_IsTheIntegralOfTheDistribution) {
  for (const double rate : {1e7, 1e9, 400e9}) {
    for (const double loss : {1e-3, 0.05, 0.4}) {
      PathSpec path = paper_path(loss);
      path.rate = {rate};
      const Transfer transfer = Transfer::create(path, 1_MiB).value();
      const CompletionTime time = CompletionTime::of(transfer, scheme_of(SchemeKind::SrNack)).value();
      const double step = 2e-6;
      double integral = 0;
      for (double q = step / 2; q < 3; q += step) integral += step * (1 - time.cdf(to_duration(q)));
      EXPECT_NEAR(to_seconds(time.mean()) / integral, 1, 1e-4) << rate << " " << loss;
    }
  }
}

TEST(SelectiveRepeat, Percentile_IsTheFirstTimeWithThatShareDone) {
  const CompletionTime time = time_of(128_MiB, 1e-3, SchemeKind::SrRto);
  for (const double share : {0.01, 0.5, 0.9, 0.99, 0.999, 0.999999}) {
    const Duration at = time.percentile(share).value();
    EXPECT_GE(time.cdf(at), share);
    EXPECT_LT(time.cdf(at - std::chrono::microseconds(1)), share);
  }
}

TEST(CompletionTime, WithoutLoss_IsInjectionAndOneRoundTrip) {
  const Transfer transfer = transfer_of(128_MiB, 0);
  for (const SchemeKind kind : {SchemeKind::SrRto, SchemeKind::SrNack}) {
    const Summary summary = CompletionTime::of(transfer, scheme_of(kind))->summary();
    EXPECT_EQ(summary.mean, transfer.lossless());
    EXPECT_NEAR(to_seconds(summary.p999), to_seconds(transfer.lossless()), 2e-9);
  }
  const CompletionTime coded = time_of(128_MiB, 0, SchemeKind::EcRs);
  EXPECT_EQ(coded.fallback(), 0);
  EXPECT_NEAR(to_seconds(coded.mean()), 1.25 * (128 << 20) * 8 / 400e9 + 25e-3, 2e-9);
}

TEST(CompletionTime, OfOneChunk_IsGeometric) {
  for (const double loss : {1e-3, 0.3, 0.99}) {
    const Transfer transfer = transfer_of(1_B, loss);
    const double period = 25e-3 + transfer.injection();
    const double expected = transfer.injection() + 25e-3 + period * loss / (1 - loss);
    EXPECT_NEAR(mean_of(1_B, loss, SchemeKind::SrNack) / expected, 1, 1e-5) << loss;
  }
}

TEST(CompletionTime, AtAlmostCertainLoss_IsLongAndFinite) {
  for (const SchemeKind kind : kSchemes) {
    const Summary summary = time_of(128_MiB, 0.99, kind).summary();
    EXPECT_GT(summary.mean, std::chrono::seconds(20));
    EXPECT_LT(summary.p50, summary.p99);
    EXPECT_LT(summary.p999, std::chrono::hours(1));
  }
}

TEST(CompletionTime, OfHours_DoesNotOverflow) {
  PathSpec path = paper_path(0.05);
  path.rate = {1e6};
  path.rtt = std::chrono::minutes(10);
  const Transfer transfer = Transfer::create(path, 100_GiB).value();  // ten days
  const Summary summary = CompletionTime::of(transfer, scheme_of(SchemeKind::SrRto))->summary();
  EXPECT_GT(summary.mean, transfer.lossless());
  EXPECT_LT(to_seconds(summary.p999), 1.02 * to_seconds(transfer.lossless()));
}

TEST(CompletionTime, WhenInjectionOutlastsManyRoundTrips_IsNearTheLosslessTime) {
  EXPECT_NEAR(slowdown_of(Bytes{std::uint64_t{2} << 40}, 1e-5, SchemeKind::SrRto), 1, 0.002);
  EXPECT_NEAR(slowdown_of(Bytes{std::uint64_t{2} << 40}, 1e-5, SchemeKind::EcRs), 1.25, 0.002);
}

TEST(ErasureCode, FailureOfASubmessage_IsThePapersFormula) {
  for (const double p : {1e-4, 1e-2, 0.1}) {
    double decodes = 0;
    for (int i = 0; i <= 2; ++i) {
      decodes += std::tgamma(9) / (std::tgamma(i + 1) * std::tgamma(9 - i)) * std::pow(p, i) * std::pow(1 - p, 8 - i);
    }
    EXPECT_NEAR(mds_failure(6, 2, p), 1 - decodes, 1e-14);
    const double group = std::pow(1 - p, 4) + 4 * p * std::pow(1 - p, 3);
    EXPECT_NEAR(xor_failure(6, 2, p), 1 - group * group, 1e-14);
  }
}

TEST(ErasureCode, FailureOnAnyPath_IsThatOfIndependentLossesWhenRunsEndAtOnce) {
  const ChunkLoss runs(0.05, 1.0527);  // the shortest runs are of 1 / 0.95 = 1.0526...
  EXPECT_FALSE(runs.independent());
  for (const SchemeKind kind : {SchemeKind::EcXor, SchemeKind::EcRs}) {
    const double independent = submessage_failure(kind, 32, 8, ChunkLoss(0.05, 1), 1);
    EXPECT_NEAR(submessage_failure(kind, 32, 8, runs, 1) / independent, 1, 0.005);
    EXPECT_NEAR(submessage_failure(kind, 32, 8, ChunkLoss(0.05, 8), 100'000) / independent, 1, 1e-6) << "far apart";
  }
}

TEST(ErasureCode, ShortLastSubmessage_HasItsShareOfParity) {
  const CodedMessage message(70, scheme_of(SchemeKind::EcRs));
  EXPECT_EQ(message.whole, 2U);
  EXPECT_EQ(message.last_k, 6U);
  EXPECT_EQ(message.last_m, 2U);  // ceil(70 * 8 / 32) = 18 in all
  EXPECT_EQ(message.parity_chunks(), 18U);
  EXPECT_EQ(CodedMessage(64, scheme_of(SchemeKind::EcRs)).submessages(), 2U);
}

TEST(ErasureCode, MessageOfOddLength_AgreesWithItsSamples) {
  const Bytes size = 4_KiB * 70;
  for (const SchemeKind kind : {SchemeKind::EcXor, SchemeKind::EcRs}) {
    const Duration drawn =
        samples(transfer_of(size, 0.08), scheme_of(kind), {200'000, test_seed(3), 2})->summary().mean;
    EXPECT_NEAR(to_seconds(drawn) / mean_of(size, 0.08, kind), 1, 0.01);
  }
}

TEST(ErasureCode, MeanOfThePapersForm_IsNoLowerThanTheDistributions) {
  for (const Bytes size : kSizes) {
    for (const double loss : kLosses) {
      for (const SchemeKind kind : kSchemes) {
        const double paper = to_seconds(paper_mean(transfer_of(size, loss), scheme_of(kind)).value());
        EXPECT_GE(paper, mean_of(size, loss, kind) * (1 - 1e-5)) << to_string(size) << " " << loss;
      }
    }
  }
}

TEST(ChunkLoss, OfSeveralPackets_IsTheChanceThatAnyIsLost) {
  EXPECT_NEAR(ChunkLoss::of_packets(1e-3, 1, 16).p(), 1 - std::pow(1 - 1e-3, 16), 1e-12);
  EXPECT_NEAR(ChunkLoss::of_packets(1e-12, 1, 16).p(), 16e-12, 1e-20);
  const ChunkLoss bursts = ChunkLoss::of_packets(1e-3, 4, 16);
  EXPECT_NEAR(bursts.p(), 1 - (1 - 1e-3) * std::pow(1 - 1e-3 * 0.25 / (1 - 1e-3), 15), 1e-12);
  EXPECT_LT(bursts.run_ends(), 0.9) << "a burst may hit two chunks";
  EXPECT_NEAR(ChunkLoss::of_packets(1e-3, 4, 1).run_ends(), 0.25, 1e-12);
}

}  // namespace
}  // namespace sdr::model::testing

// The Monte Carlo itself: the same for any number of threads, its shortcuts the same as counting chunk by chunk, and
// what the wire that carries one chunk at a time adds.
#include "model/sampler.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <vector>

#include "model/serialised_sender.hpp"
#include "tests/core/seed.hpp"
#include "tests/model/paths.hpp"

namespace sdr::model::testing {
namespace {

using testing_support::seed_trace;
using testing_support::test_seed;

double seconds_mean(const Samples& drawn) {
  return to_seconds(drawn.summary().mean);
}

TEST(Samples, AreTheSame_WithOneTwoOrThreeThreads) {
  for (const SchemeKind kind : {SchemeKind::SrRto, SchemeKind::EcXor}) {
    for (const double burst : {1.0, 4.0}) {
      for (const Sender sender : {Sender::Paper, Sender::Serialised}) {
        const Transfer transfer = transfer_of(8_MiB, 1e-2, burst);
        const auto one = samples(transfer, scheme_of(kind), {1000, 5, 1, sender})->times;
        EXPECT_EQ(one, samples(transfer, scheme_of(kind), {1000, 5, 2, sender})->times);
        EXPECT_EQ(one, samples(transfer, scheme_of(kind), {1000, 5, 3, sender})->times);
        EXPECT_NE(one, samples(transfer, scheme_of(kind), {1000, 6, 1, sender})->times);
      }
    }
  }
}

TEST(Samples, Stopped_AreDrawnNoFurther) {
  std::atomic<bool> stop{false};
  std::atomic<std::size_t> drawn{0};
  draw_samples({.count = 1'000'000, .threads = 2, .stop = &stop}, [&](Draws&) {
    stop = true;
    return static_cast<double>(++drawn);
  });
  EXPECT_LE(drawn, 256U) << "each thread ends the block that it is at";
}

TEST(Samples, Percentiles_AreSamples) {
  Samples hundred;
  for (int i = 100; i >= 1; --i) hundred.times.emplace_back(i);
  EXPECT_EQ(hundred.percentile(0.5)->count(), 50);
  EXPECT_EQ(hundred.percentile(0.99)->count(), 99);
  EXPECT_EQ(hundred.percentile(0.991)->count(), 100);
  EXPECT_EQ(hundred.percentile(1e-9)->count(), 1);
  EXPECT_EQ(hundred.summary().p999.count(), 100);
}

// One sample by following every chunk through every transmission; the n-th ones are a chain of losses of their own.
double chunk_by_chunk(const Transfer& transfer, const SchemeSpec& scheme, Draws& draws) {
  std::vector<bool> missing(transfer.chunks(), true);
  double latest = static_cast<double>(transfer.chunks()) * transfer.injection();
  for (int losses = 1;; ++losses) {
    bool lost = draws.happens(transfer.loss().p());
    std::size_t last = 0;
    for (std::size_t i = 0; i < missing.size(); ++i) {
      if (i > 0) lost = draws.happens(lost ? 1 - transfer.loss().run_ends() : transfer.loss().run_begins());
      missing[i] = missing[i] && lost;
      if (missing[i]) last = i + 1;
    }
    if (last == 0) return latest + transfer.rtt();
    latest = std::max(latest, static_cast<double>(last) * transfer.injection() + losses * scheme.period(transfer));
  }
}

TEST(Sampler, Shortcuts_HaveTheDistributionOfCountingChunkByChunk) {
  const std::uint64_t seed = test_seed(21);
  SCOPED_TRACE(seed_trace(seed));
  for (const double burst : {1.0, 4.0}) {
    PathSpec path = paper_path(0.05, burst);
    path.rate = {50e6};  // injection as long as two timeouts
    const Transfer transfer = Transfer::create(path, 256_KiB).value();
    const SchemeSpec scheme = scheme_of(SchemeKind::SrNack);
    const SampleOptions options{60'000, seed, 2};
    const Samples slow = draw_samples(options, [&](Draws& draws) { return chunk_by_chunk(transfer, scheme, draws); });
    const Samples fast = samples(transfer, scheme, {60'000, seed + 1, 2}).value();
    EXPECT_NEAR(seconds_mean(fast) / seconds_mean(slow), 1, 0.01);
    for (const double share : {0.1, 0.5, 0.9, 0.99}) {
      EXPECT_NEAR(to_seconds(*fast.percentile(share)) / to_seconds(*slow.percentile(share)), 1, 0.02) << share;
    }
  }
}

TEST(Sampler, FailuresDrawnAtOnce_AreAsManyAsWhenLossesAreCounted) {
  const std::uint64_t seed = test_seed(22);
  SCOPED_TRACE(seed_trace(seed));
  for (const SchemeKind kind : {SchemeKind::EcXor, SchemeKind::EcRs}) {
    const auto failures_per_chunk = [&](Bytes size, int count) {
      const Sampler sampler = Sampler::create(transfer_of(size, 0.1), scheme_of(kind)).value();
      double sum = 0;
      for (int n = 0; n < count; ++n) {
        Draws draws(seed, static_cast<std::uint64_t>(n));
        sum += static_cast<double>(sampler.undecodable(draws));
      }
      return sum * 4096 / (static_cast<double>(size.count) * count);
    };
    const double counted = failures_per_chunk(64_MiB, 1000);  // 2048 losses
    const double at_once = failures_per_chunk(1_GiB, 1000);
    EXPECT_NEAR(at_once / counted, 1, 0.02) << to_string(kind);
  }
}

TEST(Draws, Successes_HaveTheMeanAndVarianceOfTheBinomial) {
  for (const double chance : {1e-6, 0.03, 0.4, 0.9}) {
    const std::uint64_t trials = 10'000'000;
    const int count = 20'000;
    double sum = 0;
    double squares = 0;
    for (int n = 0; n < count; ++n) {
      Draws draws(test_seed(23), static_cast<std::uint64_t>(n));
      const auto value = static_cast<double>(draws.successes(trials, chance)) - static_cast<double>(trials) * chance;
      sum += value;
      squares += value * value;
    }
    const double variance = static_cast<double>(trials) * chance * (1 - chance);
    EXPECT_NEAR(sum / count / std::sqrt(variance), 0, 0.03) << chance;
    EXPECT_NEAR(squares / count / variance, 1, 0.05) << chance;
  }
}

TEST(LossRuns, HaveTheMeanLossAndRunLengthAskedFor) {
  for (const double burst : {1.0, 6.0}) {
    Draws draws(test_seed(24), 0);
    LossRuns runs(ChunkLoss(0.02, burst), draws);
    double arrived = 0;
    double lost = 0;
    constexpr int kRuns = 100'000;
    for (int i = 0; i < kRuns; ++i) {
      const LossRuns::Run run = runs.next();
      arrived += static_cast<double>(run.arrive);
      lost += static_cast<double>(run.lost);
    }
    EXPECT_NEAR(lost / (arrived + lost), 0.02, 0.001);
    EXPECT_NEAR(lost / kRuns, std::max(burst, 1 / 0.98), 0.1);
  }
}

TEST(SerialisedSender, OfAShortMessage_TakesAsLongAsThePapers) {
  const Transfer transfer = transfer_of(32_MiB, 1e-3);
  const SchemeSpec scheme = scheme_of(SchemeKind::SrRto);
  const Samples paper = samples(transfer, scheme, {50'000, test_seed(25), 2, Sender::Paper}).value();
  const Samples serialised = samples(transfer, scheme, {50'000, test_seed(26), 2, Sender::Serialised}).value();
  EXPECT_NEAR(seconds_mean(serialised) / seconds_mean(paper), 1, 0.01);
}

TEST(SerialisedSender, OfALongMessage_PaysForItsRetransmissions) {
  PathSpec path = paper_path(0.05);
  path.rate = {1e9};  // 5 s of injection
  const Transfer transfer = Transfer::create(path, 640_MiB).value();
  const Samples drawn =
      samples(transfer, scheme_of(SchemeKind::SrNack), {200, test_seed(27), 2, Sender::Serialised}).value();
  EXPECT_GT(seconds_mean(drawn), to_seconds(transfer.floor()));
  EXPECT_LT(seconds_mean(drawn), to_seconds(transfer.floor()) + 0.2);
  const Duration paper = CompletionTime::of(transfer, scheme_of(SchemeKind::SrNack))->mean();
  EXPECT_LT(paper, transfer.floor()) << "the paper's is a lower bound, and here below what is possible";
}

TEST(SerialisedSender, WithoutLoss_InjectsEveryChunkOnce) {
  Draws draws(1, 0);
  EXPECT_NEAR(serialised_injection(1000, 1e-6, 0.1, ChunkLoss(), draws), 1e-3, 1e-12);
}

}  // namespace
}  // namespace sdr::model::testing

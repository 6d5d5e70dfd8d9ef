// WriteTrial: repeatable for any number of threads, honest about what it measures, and moved by each part of a link.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <atomic>

#include "experiment/reserved_memory.hpp"
#include "tests/experiment/trial.hpp"

namespace sdr::testing {
namespace {

using experiment::TrialResult;
using experiment::WriteTrial;
using ::testing::HasSubstr;
using namespace std::chrono_literals;

constexpr Scheme kSchemes[] = {Scheme::SrRto, Scheme::SrNack, Scheme::EcXor, Scheme::EcRs, Scheme::Adaptive};

// --- repeatable ---

TEST(Trials, AnyNumberOfThreads_GivesTheSameResults) {
  for (const Scheme scheme : kSchemes) {
    SCOPED_TRACE(to_string(scheme));
    const WriteTrial what =
        trial("rtt=10ms,rate=10Gbit,loss=1e-2,burst=3,reorder=1e-3,dup=1e-3,jitter=50us", scheme, 1_MiB);
    const auto one = results(what, 24, 1);
    EXPECT_EQ(results(what, 24, 2), one);
    EXPECT_EQ(results(what, 24, 3), one);
  }
}

TEST(Trials, RunN_IsTheSameHoweverManyThereAre) {
  const WriteTrial what = trial("rtt=10ms,rate=10Gbit,loss=1e-2", Scheme::SrNack, 16_MiB);
  const auto many = results(what, 8);
  EXPECT_EQ(experiment::run(what, 5).value(), many[5]);
  EXPECT_NE(many[4], many[5]);
}

TEST(Trials, AnotherSeed_LosesOtherPackets) {
  WriteTrial what = trial("rtt=10ms,rate=10Gbit,loss=1e-2,seed=9", Scheme::SrNack, 1_MiB);
  const auto first = results(what, 4);
  what.link.seed = 10;
  EXPECT_EQ(results(what, 4), first) << "the trial's seed stands in the place of the link's";
  what.seed = 2;
  EXPECT_NE(results(what, 4), first);
}

TEST(Trials, Stopped_BeginNoFurtherRun) {
  const std::atomic<bool> stop{true};
  const WriteTrial what = trial("rtt=1ms", Scheme::SrNack, 1_KiB);
  const auto stopped = experiment::run_all(what, {.runs = 100'000, .threads = 2, .stop = &stop});
  EXPECT_EQ(stopped.error().code, ErrorCode::Closed);
}

TEST(Trials, BadPlans_AreRefusedWithValueAndRange) {
  const WriteTrial what = trial("rtt=1ms", Scheme::SrNack, 1_KiB);
  EXPECT_THAT(experiment::run_all(what, {.runs = 0}).error().message, HasSubstr("runs 0 is not from 1 to"));
  EXPECT_THAT(experiment::run_all(what, {.threads = 5000}).error().message, HasSubstr("threads 5000"));
  EXPECT_THAT(experiment::run(trial("rtt=1ms", Scheme::SrNack, 0_B), 0).error().message, HasSubstr("size 0"));
  EXPECT_THAT(experiment::run(trial("rtt=1ms", Scheme::SrNack, 1_KiB, 100), 0).error().message, HasSubstr("MTU 100"));
}

// --- what is measured ---

TEST(WriteTrial, WithoutLosses_TakesTheTimeOnTheWireAndTheRtt) {
  for (const Scheme scheme : {Scheme::SrRto, Scheme::SrNack}) {
    SCOPED_TRACE(to_string(scheme));
    const TrialResult result = experiment::run(trial("rtt=25ms,rate=10Gbit", scheme, 16_MiB), 0).value();
    const double packets = 4096;
    const double expected_ms = packets * (4096 + 44) * 8 / 10e9 * 1e3 + 25;
    EXPECT_NEAR(static_cast<double>(result.completion.count()) / 1e6, expected_ms, 0.002 * expected_ms);
    EXPECT_EQ(result.packets_sent, packets);
    EXPECT_EQ(result.packets_received, packets);
    EXPECT_EQ(result.packets_lost, 0U);
    EXPECT_EQ(result.chunks_retransmitted, 0U);
  }
}

TEST(WriteTrial, ALongDistance_CostsOneRttAndNotItsSetUp) {
  const TrialResult result = experiment::run(trial("rtt=400ms", Scheme::SrNack, 4_KiB), 0).value();
  EXPECT_GE(result.completion, 400ms);
  EXPECT_LE(result.completion, 402ms);
}

TEST(WriteTrial, OddSizesAndChunks_Complete) {
  for (const Scheme scheme : kSchemes) {
    for (const std::uint64_t size : {1ULL, 4095ULL, 4097ULL, 1000001ULL}) {
      WriteTrial what = trial("rtt=1ms,rate=1Gbit,loss=1e-2", scheme, Bytes{size});
      what.connection.queue_pair.packets_per_chunk = 4;
      const TrialResult result = experiment::run(what, size).value();
      EXPECT_FALSE(result.error) << to_string(scheme) << ", " << size << " bytes";
    }
  }
}

TEST(WriteTrial, CodedSchemes_RecoverWithoutComputingParity) {
  for (const Scheme scheme : {Scheme::EcXor, Scheme::EcRs}) {
    const TrialResult result = experiment::run(trial("rtt=25ms,rate=100Gbit,loss=1e-3", scheme, 32_MiB), 1).value();
    EXPECT_GT(result.chunks_recovered, 0U);
    EXPECT_EQ(result.chunks_retransmitted, 0U);
    EXPECT_EQ(result.parity_chunks_sent, result.chunks_sent / 4);
    EXPECT_LT(result.completion, 30ms);
  }
}

TEST(WriteTrial, OneGibibyte_NeedsMemoryForWhatIsUnderWayOnly) {
  rusage before{};
  getrusage(RUSAGE_SELF, &before);
  const TrialResult result = experiment::run(trial("rtt=25ms,rate=400Gbit,loss=1e-4", Scheme::EcRs, 1_GiB), 0).value();
  rusage after{};
  getrusage(RUSAGE_SELF, &after);
  EXPECT_FALSE(result.error);
  // 25 ms at 400 Gbit/s are 300,000 packets, some dozen bytes each.
  EXPECT_LT(after.ru_maxrss - before.ru_maxrss, 96 << 10) << "KiB";
}

TEST(WriteTrial, APathThatLosesEverything_IsAResultWithAnError) {
  WriteTrial what = trial("rtt=1ms,rate=1Gbit,loss=1", Scheme::SrNack, 64_KiB);
  what.connection.peer_timeout = 1s;
  const TrialResult result = experiment::run(what, 0).value();
  ASSERT_TRUE(result.error);
  EXPECT_THAT(result.error->message, HasSubstr("nothing heard from"));
  EXPECT_GE(result.completion, 1s);
}

TEST(ReservedMemory, HasAddressesAndNoMemory) {
  const auto memory = experiment::ReservedMemory::reserve(1ULL << 40);
  ASSERT_TRUE(memory);
  EXPECT_EQ(memory->bytes().size(), 1ULL << 40);
  EXPECT_FALSE(experiment::ReservedMemory::reserve(1ULL << 62));
}

// --- links ---

TEST(Links, LossThatDependsOnSize_HitsLargePacketsMore) {
  const std::string_view link = "rtt=5ms,rate=10Gbit,loss=1e-3,losssize=1024";
  const auto share = [](const TrialResult& sum) {
    return static_cast<double>(sum.packets_lost) / static_cast<double>(sum.packets_sent);
  };
  const double small = share(sum(results(trial(link, Scheme::SrNack, 4_MiB, 1024 - 48), 20)));
  const double large = share(sum(results(trial(link, Scheme::SrNack, 4_MiB, 8192 - 48), 80)));
  EXPECT_NEAR(small, 1e-3, 0.3e-3);
  EXPECT_NEAR(large, 8e-3, 1.2e-3);
}

TEST(Links, AnOutage_CostsWhatItHides) {
  // 4 MiB take 3.4 ms from posting on; all that departs in a millisecond of it is gone.
  const std::string_view link = "rtt=20ms,rate=10Gbit,outage=1ms+1ms";
  const TrialResult result = experiment::run(trial(link, Scheme::SrNack, 4_MiB), 0).value();
  EXPECT_NEAR(static_cast<double>(result.packets_lost), 1e-3 * 10e9 / 8 / 4140, 15);
  EXPECT_GT(result.completion, 40ms);
  EXPECT_LT(result.completion, 50ms);
  const TrialResult late =
      experiment::run(trial("rtt=20ms,rate=10Gbit,outage=10s+1s", Scheme::SrNack, 4_MiB), 0).value();
  EXPECT_EQ(late.packets_lost, 0U);
}

TEST(Links, ATrace_LosesThePacketsThatItNames) {
  const TrialResult result =
      experiment::run(trial("rtt=20ms,rate=10Gbit,trace=100:2:300:1:1000000:0", Scheme::SrNack, 4_MiB), 0).value();
  EXPECT_EQ(result.packets_lost, 3U);
  EXPECT_LE(result.chunks_retransmitted, 3U);
  EXPECT_GE(result.chunks_retransmitted, 2U) << "one of them may have been a datagram";
  EXPECT_GT(result.completion, 40ms);
}

TEST(Links, DuplicationReorderingJitterAndQueue_AreSeen) {
  const auto of = [](std::string_view link) { return sum(results(trial(link, Scheme::SrNack, 4_MiB), 3)); };
  EXPECT_GT(of("rtt=20ms,rate=10Gbit,dup=0.05").duplicate_packets, 50U);
  EXPECT_EQ(of("rtt=20ms,rate=10Gbit,reorder=0.05").packets_lost, 0U);
  EXPECT_GT(of("rtt=20ms,rate=10Gbit,jitter=5ms").completion, of("rtt=20ms,rate=10Gbit").completion);
  WriteTrial fast = trial("rtt=20ms,rate=10Gbit,queue=10us", Scheme::SrNack, 4_MiB);
  EXPECT_GT(experiment::run(fast, 0).value().queue_drops, 0U) << "batches are longer than so short a queue";
}

}  // namespace
}  // namespace sdr::testing

// Streams of Writes, and who pays for parity: a Write with others waiting behind it hides its repairs in their time,
// one by itself does not (docs/decisions/0009). And paths so slow that a packet takes longer than the RTT.
#include <gtest/gtest.h>

#include <string>

#include "experiment/reserved_memory.hpp"
#include "experiment/virtual_pair.hpp"
#include "tests/experiment/shared_path.hpp"
#include "tests/experiment/trial.hpp"

namespace sdr::testing {
namespace {

using namespace std::chrono_literals;

FlowSpec stream(Scheme scheme, Bytes write) {
  FlowSpec flow = model();
  flow.connection.scheme = scheme;
  flow.write = write;
  return flow;
}

SharedResult result_of(const SharedTrial& trial) {
  auto result = run(trial);
  EXPECT_TRUE(result) << result.error().message;
  EXPECT_FALSE(result->flows[0].error) << result->flows[0].error->message;
  return std::move(result).value();
}

// Goodput once the rate is found, in bytes a second.
double goodput(std::string_view link, Scheme scheme, Bytes write, std::uint64_t seed) {
  SharedTrial trial = shared(link, "drop-tail,limit=1bdp", 6s, {stream(scheme, write)});
  trial.seed = seed;
  return result_of(trial).goodput(0, 2s, 6s);
}

TEST(StreamTrial, OfWrites_CarriesAsMuchAsSelectiveRepeat) {
  for (const char* link : {"rtt=50ms,rate=200Mbit,loss=1e-2", "rtt=20ms,rate=500Mbit,loss=1e-3"})
    for (const Bytes write : {1_MiB, 4_MiB, 64_MiB})
      for (const std::uint64_t seed : {1U, 2U}) {
        SCOPED_TRACE(std::string(link) + ", " + to_string(write) + ", seed " + std::to_string(seed));
        EXPECT_GE(goodput(link, Scheme::Adaptive, write, seed), 0.99 * goodput(link, Scheme::SrNack, write, seed));
      }
}

// Each transfer keeps its slots until it is complete: where few of them are, parity is what keeps the link busy.
TEST(StreamTrial, OfWritesThatAreSmallForThePath_LosesNothingToRepairsThatHoldSlots) {
  for (const std::uint64_t seed : {1U, 2U}) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    // 32 transfers of 64 KiB are 1.7 round trips: the rest is parity, and what is known a little later.
    EXPECT_GE(goodput("rtt=50ms,rate=200Mbit,loss=1e-2", Scheme::Adaptive, 64_KiB, seed), 0.8 * 200e6 / 8);
  }
}

TEST(StreamTrial, ASingleWrite_HasItsParity_AndTheLastOfSeveralToo) {
  experiment::WriteTrial what = trial("rtt=25ms,rate=10Gbit,loss=1e-2", Scheme::Adaptive, 8_MiB);
  what.known_loss = true;
  const auto alone = results(what, 20, 2);
  for (const auto& result : alone) {
    EXPECT_GT(result.parity_chunks_sent, 60U);
    EXPECT_LT(static_cast<double>(result.completion.count()), 1.05 * (25e6 + 8388608 * 1.0108 * 8 / 10)) << "one round";
  }
}

// A stream that ends: with nothing behind it, the last Write needs no second round.
TEST(StreamTrial, ThatEnds_EndsWithoutASecondRound) {
  for (const std::uint64_t seed : {1U, 2U, 3U}) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    experiment::VirtualPair pair(
        {.link = simulation::LinkSpec::parse("rtt=25ms,rate=10Gbit,loss=1e-2,seed=" + std::to_string(seed)).value(),
         .carry_payload = false,
         .packet_overhead = 44});
    ConnectionOptions options;
    options.queue_pair.rate = parse_bandwidth("10Gbit").value();
    options.queue_pair.mtu = {4096};
    options.queue_pair.initial_rtt = 25ms;
    options.posted_ahead = Bytes{256_MiB};
    ASSERT_TRUE(pair.open(options).ok());
    const auto memory = experiment::ReservedMemory::reserve((8_MiB).count).value();
    const auto bytes = memory.bytes().first((8_MiB).count);
    ASSERT_TRUE(pair.get_ready());
    constexpr int kWrites = 24;  // 6.4 round trips
    const auto post = [&] {
      for (int i = 0; i < kWrites; ++i) ASSERT_TRUE(pair.b().post_receive(bytes).ok());
      ASSERT_TRUE(pair.get_quiet());
      for (int i = 0; i < kWrites; ++i) ASSERT_TRUE(pair.a().post_write(bytes).ok());
    };
    const auto carry = [&] {
      post();
      const TimePoint begin = pair.now();
      const ConnectionStatistics before = pair.a().statistics();
      int done = 0;
      EXPECT_TRUE(pair.run_until(
          [&] {
            while (pair.a().poll_write()) ++done;
            while (pair.b().poll_receive()) {
            }
            return done == kWrites;
          },
          std::chrono::seconds(5)));
      const ConnectionStatistics after = pair.a().statistics();
      const double parity = static_cast<double>(after.parity_chunks_sent - before.parity_chunks_sent);
      EXPECT_LT(parity, 0.05 * static_cast<double>(after.chunks_sent - before.chunks_sent));
      EXPECT_GT(parity, 0) << "of the last ones";
      return static_cast<double>((pair.now() - begin).count()) / 1e6;
    };
    static_cast<void>(carry());  // learns the loss
    const double lossless = 25 + kWrites * 8388608 * (4140.0 / 4096) * 8 / 10e6;
    EXPECT_LT(carry(), 1.06 * lossless);
  }
}

// A packet takes 12 ms at 1 Mbit/s: what has been handed out leaves long after its turn was reckoned to be.
TEST(SlowPath, WhereAPacketTakesLongerThanTheRtt_NothingIsRepeatedThatWasNotLost) {
  for (const Scheme scheme : {Scheme::Adaptive, Scheme::SrNack})
    for (const std::uint64_t seed : {1U, 2U, 3U}) {
      SCOPED_TRACE(std::string(to_string(scheme)) + ", seed " + std::to_string(seed));
      FlowSpec flow = stream(scheme, 370_KiB);
      SharedTrial trial = shared("rtt=5ms,rate=1Mbit,loss=5e-3", "drop-tail,limit=100ms", 20s, {flow});
      trial.seed = seed;
      const SharedResult result = result_of(trial);
      EXPECT_GE(of_possible(result, 0, 3s, 20s), 0.9);
      const auto& data = result.flows[0].data;
      EXPECT_LE(result.flows[0].retransmitted, (data.refused + data.perished) * 3 / 2 + 10);
    }
}

}  // namespace
}  // namespace sdr::testing

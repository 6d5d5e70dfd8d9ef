// What the adaptive scheme promises, over the real stack in virtual time: 25 ms, 400 Gbit/s, packets of 4 KiB unless
// said otherwise. Times are counted in lossless ones, headers included.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>

#include "experiment/reserved_memory.hpp"
#include "experiment/virtual_pair.hpp"
#include "tests/experiment/trial.hpp"

namespace sdr::testing {
namespace {

using experiment::TrialResult;
using experiment::WriteTrial;
using std::chrono::seconds;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::uint64_t kFewer = 20;
#else
constexpr std::uint64_t kFewer = 1;
#endif

struct Slowdown {
  double mean = 0;
  double worst = 0;
};

double lossless_ms(const WriteTrial& trial) {
  const double packets = static_cast<double>((trial.size.count + 4095) / 4096);
  return packets * (4096 + 44) * 8e3 / trial.link.rate.bits_per_second +
         static_cast<double>(trial.link.rtt.count()) / 1e6;
}

Slowdown slowdown(const WriteTrial& trial, std::uint64_t runs) {
  Slowdown slow;
  const auto all = results(trial, std::max<std::uint64_t>(2, runs / kFewer), 2);
  for (const TrialResult& result : all) {
    EXPECT_FALSE(result.error) << result.error->message;
    const double times = static_cast<double>(result.completion.count()) / 1e6 / lossless_ms(trial);
    slow.mean += times / static_cast<double>(all.size());
    slow.worst = std::max(slow.worst, times);
  }
  return slow;
}

WriteTrial knowing(std::string_view link, Bytes size, Scheme scheme = Scheme::Adaptive) {
  WriteTrial what = trial(link, scheme, size);
  what.known_loss = true;
  return what;
}

struct Cell {
  Bytes size;
  std::uint64_t runs;
};
constexpr Cell kCells[] = {{128_KiB, 300}, {1_MiB, 300}, {8_MiB, 100}, {32_MiB, 20}, {128_MiB, 6}, {1_GiB, 2}};

TEST(Adaptive, KnowingTheLoss_TakesHardlyMoreThanTheLosslessTime) {
  for (const char* loss : {"1e-6", "1e-4", "1e-3", "1e-2"})
    for (const Cell& cell : kCells) {
      SCOPED_TRACE(std::string(loss) + ", " + to_string(cell.size));
      const Slowdown slow = slowdown(knowing(std::string("rtt=25ms,rate=400Gbit,loss=") + loss, cell.size), cell.runs);
      EXPECT_LE(slow.mean, 1.03);
      EXPECT_LE(slow.worst, 1.05);
    }
}

TEST(Adaptive, AtFivePercent_StaysNearTheFloor) {
  for (const Cell& cell : kCells) {
    SCOPED_TRACE(to_string(cell.size));
    const WriteTrial what = knowing("rtt=25ms,rate=400Gbit,loss=5e-2", cell.size);
    const double lossless = lossless_ms(what);
    const double floor = ((lossless - 25) / 0.95 + 25) / lossless;
    const Slowdown slow = slowdown(what, cell.runs);
    EXPECT_LE(slow.mean, 1.06 * floor);
    EXPECT_LE(slow.worst, 1.10 * floor);
  }
}

// Writes of one, two and four round trips: most of their repairs go out within the last one.
TEST(Adaptive, OfWritesLongerThanTheRtt_LosesNoTimeToItsRepairsEither) {
  for (const Cell& cell : {Cell{128_MiB, 8}, Cell{256_MiB, 4}, Cell{512_MiB, 2}}) {
    SCOPED_TRACE(to_string(cell.size));
    const Slowdown percent = slowdown(knowing("rtt=2.5ms,rate=400Gbit,loss=1e-2", cell.size), cell.runs);
    EXPECT_LE(percent.mean, 1.03);
    EXPECT_LE(percent.worst, 1.05);
    const WriteTrial what = knowing("rtt=2.5ms,rate=400Gbit,loss=5e-2", cell.size);
    const double lossless = lossless_ms(what);
    const double floor = ((lossless - 2.5) / 0.95 + 2.5) / lossless;
    const Slowdown five = slowdown(what, cell.runs);
    EXPECT_LE(five.mean, 1.06 * floor);
    EXPECT_LE(five.worst, 1.10 * floor);
  }
}

// Near and far, slow and fast, the tail of the message and its head.
TEST(Adaptive, LosesToNeitherSelectiveRepeatNorErasureCoding) {
  for (const char* path : {"rtt=0.5ms,rate=10Gbit", "rtt=0.5ms,rate=400Gbit", "rtt=25ms,rate=10Gbit",
                           "rtt=133ms,rate=10Gbit", "rtt=133ms,rate=1600Gbit"})
    for (const char* loss : {"1e-4", "1e-2", "5e-2"})
      for (const Cell& cell : {Cell{128_KiB, 60}, Cell{8_MiB, 30}, Cell{64_MiB, 6}}) {
        const std::string link = std::string(path) + ",loss=" + loss;
        SCOPED_TRACE(link + ", " + to_string(cell.size));
        const Slowdown adaptive = slowdown(knowing(link, cell.size), cell.runs);
        const Slowdown nack = slowdown(knowing(link, cell.size, Scheme::SrNack), cell.runs);
        const Slowdown code = slowdown(knowing(link, cell.size, Scheme::EcRs), cell.runs);
        EXPECT_LE(adaptive.mean, 1.01 * std::min(nack.mean, code.mean));
      }
}

TEST(Adaptive, FromAColdStart_DoesAsWellAsIfItKnew_FromTheFourthWriteOn) {
  for (const char* loss : {"1e-6", "1e-3", "1e-2", "5e-2"})
    for (const Cell& cell : {Cell{128_KiB, 200}, Cell{8_MiB, 60}, Cell{128_MiB, 4}}) {
      const std::string link = std::string("rtt=25ms,rate=400Gbit,loss=") + loss;
      SCOPED_TRACE(link + ", " + to_string(cell.size));
      WriteTrial learned = trial(link, Scheme::Adaptive, cell.size);
      learned.warm_writes = 3;
      const Slowdown cold = slowdown(trial(link, Scheme::Adaptive, cell.size), cell.runs);
      const Slowdown nack = slowdown(trial(link, Scheme::SrNack, cell.size), cell.runs);
      EXPECT_LE(slowdown(learned, cell.runs).mean, 1.03 * slowdown(knowing(link, cell.size), cell.runs).mean);
      EXPECT_LE(cold.mean, 1.01 * nack.mean) << "the first Write";
    }
}

TEST(Adaptive, InBurstsOfLosses_StillNeedsNoSecondRound) {
  for (const char* burst : {"8", "32", "256"})
    for (const Cell& cell : {Cell{128_KiB, 300}, Cell{1_MiB, 300}, Cell{8_MiB, 100}, Cell{128_MiB, 6}}) {
      SCOPED_TRACE(std::string("bursts of ") + burst + ", " + to_string(cell.size));
      const Slowdown slow =
          slowdown(knowing(std::string("rtt=25ms,rate=400Gbit,loss=1e-3,burst=") + burst, cell.size), cell.runs);
      EXPECT_LE(slow.mean, 1.10);
      EXPECT_LE(slow.worst, 1.30);
    }
}

// Writes one after another over a link whose loss jumps a hundredfold: what each took, in lossless times.
TEST(Adaptive, WhenTheLossJumpsAHundredfold_AtMostTwoWritesSuffer) {
  for (const Bytes size : {8_MiB, 64_MiB}) {
    SCOPED_TRACE(to_string(size));
    WriteTrial what = trial("rtt=25ms,rate=400Gbit,loss=1e-4", Scheme::Adaptive, size);
    what.connection.queue_pair.rate = what.link.rate;
    what.connection.queue_pair.initial_rtt = what.link.rtt;
    experiment::VirtualPair pair({.link = what.link, .carry_payload = false, .packet_overhead = 44});
    pair.set_step(experiment::step_of(what));
    ASSERT_TRUE(pair.open(what.connection).ok());
    const auto memory = experiment::ReservedMemory::reserve(size.count).value();
    const auto bytes = memory.bytes().first(size.count);
    ASSERT_TRUE(pair.get_ready());
    constexpr int kBefore = 10;
    constexpr int kAfter = 6;
    for (int i = 0; i < kBefore + kAfter; ++i) ASSERT_TRUE(pair.b().post_receive(bytes).ok());
    ASSERT_TRUE(pair.get_quiet());
    int slow = 0;
    for (int i = 0; i < kBefore + kAfter; ++i) {
      if (i == kBefore) {
        what.link.loss = 1e-2;
        pair.network().set_link(what.link);
      }
      const TimePoint begin = pair.now();
      ASSERT_TRUE(pair.a().post_write(bytes).ok());
      ASSERT_TRUE(pair.run_until([&] { return pair.a().poll_write().has_value(); }, seconds(10)));
      const double times = static_cast<double>((pair.now() - begin).count()) / 1e6 / lossless_ms(what);
      if (i >= kBefore && times > 1.03) ++slow;
      EXPECT_LE(times, 2.3) << "Write " << i << ": one more round, not a collapse";
    }
    EXPECT_LE(slow, 2);
    EXPECT_NEAR(pair.a().link().loss, 1e-2, 5e-3);
  }
}

// The same losses on the way back: of acknowledgements, and of requests for repairs.
TEST(Adaptive, LossOfAcknowledgements_MovesNoCell) {
  for (const char* loss : {"1e-4", "1e-2", "5e-2"})
    for (const Cell& cell : kCells) {
      SCOPED_TRACE(std::string(loss) + ", " + to_string(cell.size));
      const std::string link = std::string("rtt=25ms,rate=400Gbit,loss=") + loss;
      const Slowdown both = slowdown(knowing(link, cell.size), cell.runs);
      const Slowdown there = slowdown(knowing(link + ",lossback=0", cell.size), cell.runs);
      EXPECT_NEAR(both.mean, there.mean, 0.02 * there.mean);
    }
}

// The sender's parity and what it sends again are what the plan says, not more.
TEST(Adaptive, WithoutLosses_SendsTheTailsParityAndNothingElse) {
  WriteTrial what = knowing("rtt=25ms,rate=400Gbit", 128_MiB);
  const TrialResult none = sum(results(what, 2));
  EXPECT_EQ(none.parity_chunks_sent, 0U) << "a path that is known to lose nothing";
  EXPECT_EQ(none.chunks_retransmitted, 0U);
  what = trial("rtt=0.5ms,rate=10Gbit", Scheme::Adaptive, 64_MiB);
  what.warm_writes = 6;
  const TrialResult learned = sum(results(what, 2));
  EXPECT_LT(learned.parity_chunks_sent, learned.chunks_sent / 100) << "the tail is 1 % of this Write";
}

}  // namespace
}  // namespace sdr::testing

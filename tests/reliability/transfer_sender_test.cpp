// Scripts for the sending end of one transfer: what is dropped, what is reported, what goes again. And its timers.
#include "reliability/transfer_sender.hpp"

#include <gtest/gtest.h>

#include "reliability/peer_watch.hpp"
#include "reliability/timing.hpp"
#include "tests/reliability/pair.hpp"

namespace sdr::reliability {
namespace {

using std::chrono::milliseconds;

class Script {
 public:
  explicit Script(Scheme scheme, std::uint32_t chunks, unsigned k = 4, unsigned m = 2)
      : data_(testing::random_bytes(chunks * 100, 1)),
        code_(SchemeRules{scheme}.coded()
                  ? std::optional(coding::ErasureCode::create({coding::CodeKind::ReedSolomon, k, m}).value())
                  : std::nullopt),
        sender_({.data = data_, .chunk_bytes = 100, .layout = layout_of(chunks, code_)}, SchemeRules{scheme},
                code_ ? &*code_ : nullptr, executor_) {}

  // Sends everything fresh, 16 chunks at a time, at `now`.
  void send_all() {
    while (const auto extent = sender_.next_fresh(16)) sender_.sent(*extent, now, rto, covering);
  }
  void report(std::uint32_t base, std::uint32_t horizon, std::vector<ChunkRange> missing,
              TimePoint echo = TimePoint()) {
    const Result<void> taken =
        sender_.handle({.base = base, .horizon = horizon, .missing = std::move(missing)}, to_stamp(echo));
    EXPECT_TRUE(taken.ok());
    EXPECT_TRUE(sender_.invariants());
  }
  // Takes the repairs that are due and sends them: their chunks.
  std::vector<std::uint32_t> repair() {
    std::vector<std::uint32_t> chunks;
    while (const auto extent = sender_.next_repair(16)) {
      for (std::uint32_t c = extent->first; c < extent->first + extent->count; ++c) chunks.push_back(c);
      sender_.sent(*extent, now, rto, covering);
    }
    return chunks;
  }
  // Takes the covers that may go at `now` and sends them: their chunks.
  std::vector<std::uint32_t> cover() {
    std::vector<std::uint32_t> chunks;
    sender_.cover_by_copies();
    while (const auto extent = sender_.next_cover(16, now)) {
      for (std::uint32_t c = extent->first; c < extent->first + extent->count; ++c) chunks.push_back(c);
      sender_.sent(*extent, now, rto, {});
    }
    return chunks;
  }
  TransferSender& sender() { return sender_; }

  TimePoint now{std::chrono::seconds(1)};
  Duration rto = milliseconds(75);
  TransferSender::Covering covering;

 private:
  static CodingLayout layout_of(std::uint32_t chunks, const std::optional<coding::ErasureCode>& code) {
    return code ? CodingLayout(chunks, code->shape()) : CodingLayout::uncoded(chunks);
  }
  InlineExecutor executor_;
  std::vector<std::byte> data_;
  std::optional<coding::ErasureCode> code_;
  TransferSender sender_;
};

using Chunks = std::vector<std::uint32_t>;

TEST(TransferSender, ReportedGap_IsRepairedOnce) {
  Script script(Scheme::SrNack, 10);
  script.send_all();
  script.report(3, 8, {{3, 1}});
  script.report(3, 9, {{3, 1}});
  EXPECT_EQ(script.repair(), Chunks({3}));
  script.report(3, 10, {{3, 1}});  // written before the repair could be there
  EXPECT_EQ(script.repair(), Chunks());
  EXPECT_EQ(script.sender().retransmitted(), 1U);
}

TEST(TransferSender, LostRepair_GoesAgainOnceOffersBehindItWereEchoed) {
  Script script(Scheme::SrNack, 10);
  script.send_all();
  script.report(3, 10, {{3, 2}});
  EXPECT_EQ(script.repair(), Chunks({3, 4}));
  script.report(3, 10, {{3, 2}}, script.now - milliseconds(1));
  EXPECT_EQ(script.repair(), Chunks());
  script.report(4, 10, {{4, 1}}, script.now);
  EXPECT_EQ(script.repair(), Chunks({4}));
}

TEST(TransferSender, CoversOfARepair_GoBehindOneAnother_AndAreNoNewsOfALoss) {
  Script script(Scheme::SrNack, 10);
  script.covering = {.copies = 2};
  script.send_all();
  script.report(2, 10, {{2, 1}, {5, 1}});
  EXPECT_EQ(script.repair(), Chunks({2, 5}));
  script.sender().cover_by_copies();
  script.report(2, 10, {{2, 1}, {5, 1}},
                script.now);  // both lost, as far as the peer has seen: covers are on their way
  EXPECT_EQ(script.repair(), Chunks());
  EXPECT_EQ(script.cover(), Chunks({2, 5, 2, 5}));
  EXPECT_EQ(script.cover(), Chunks());
  script.report(2, 10, {{2, 1}}, script.now);  // all of them lost
  EXPECT_EQ(script.repair(), Chunks({2}));
}

TEST(TransferSender, CoversOfWhatHasArrived_AreNotSent) {
  Script script(Scheme::SrNack, 10);
  script.covering = {.copies = 3};
  script.send_all();
  script.report(2, 10, {{2, 1}, {5, 1}});
  EXPECT_EQ(script.repair(), Chunks({2, 5}));
  script.report(5, 10, {{5, 1}});
  EXPECT_EQ(script.cover(), Chunks({5, 5, 5}));
}

TEST(TransferSender, CoversWaitForTheirDistance) {
  Script script(Scheme::SrNack, 10);
  script.covering = {.copies = 2, .spacing = milliseconds(4)};
  script.send_all();
  script.report(2, 10, {{2, 1}});
  EXPECT_EQ(script.repair(), Chunks({2}));
  EXPECT_EQ(script.cover(), Chunks());
  EXPECT_EQ(script.sender().next_cover_due(script.now), script.now + milliseconds(4));
  EXPECT_EQ(script.sender().next_cover_due(script.now + milliseconds(4)), kNever) << "it waits for the pace alone";
  script.now += milliseconds(4);
  EXPECT_EQ(script.cover(), Chunks({2}));
  script.now += milliseconds(4);
  EXPECT_EQ(script.cover(), Chunks({2}));
  EXPECT_EQ(script.sender().next_cover_due(script.now), kNever);
}

TEST(TransferSender, RepairThatIsFoundLostBeforeItIsCovered_GoesAgainAndIsCoveredOnce) {
  Script script(Scheme::SrNack, 10);
  script.covering = {.copies = 1};
  script.send_all();
  script.report(2, 10, {{2, 1}, {5, 1}});
  EXPECT_EQ(script.repair(), Chunks({2, 5}));
  script.report(2, 10, {{2, 1}}, script.now);  // 5 came, 2 was lost again
  EXPECT_EQ(script.repair(), Chunks({2}));
  EXPECT_EQ(script.sender().exposed_repairs(), Chunks({2, 5})) << "what has come helps to restore the others";
  EXPECT_EQ(script.cover(), Chunks({2}));
}

TEST(TransferSender, RepairsInACodedBlock_AreNoNewsOfALoss_UntilItsParityHasGone) {
  Script script(Scheme::SrNack, 200);
  script.covering = {.copies = 3};
  script.send_all();
  script.report(2, 200, {{2, 1}, {50, 2}, {120, 1}});
  EXPECT_EQ(script.repair(), Chunks({2, 50, 51, 120}));
  InlineExecutor executor;
  const auto code = coding::ErasureCode::create({coding::CodeKind::ReedSolomon, 2, 3}).value();
  script.sender().cover_by_code(script.sender().exposed_repairs(), 2, code, 3, executor);
  EXPECT_FALSE(script.sender().exposed());
  script.report(2, 200, {{2, 1}, {120, 1}}, script.now);
  EXPECT_EQ(script.repair(), Chunks());
  EXPECT_EQ(script.cover(), Chunks()) << "parity is their cover";
  std::uint32_t sent = 0;
  while (const auto parity = script.sender().next_repair_parity(4)) {
    EXPECT_TRUE(parity->parity());
    EXPECT_EQ(parity->first, sent) << "nothing else is in the parity message";
    EXPECT_EQ(script.sender().bytes(*parity).size(), parity->count * 100U);
    script.sender().sent(*parity, script.now + milliseconds(1), script.rto, {});
    sent += parity->count;
  }
  EXPECT_EQ(sent, 6U);
  script.report(2, 200, {{2, 1}}, script.now);
  EXPECT_EQ(script.repair(), Chunks()) << "seen before the parity";
  script.report(2, 200, {{2, 1}}, script.now + milliseconds(1));
  EXPECT_EQ(script.repair(), Chunks({2}));
}

TEST(TransferSender, BlockOfWhichNothingIsWanted_IsPassedOver) {
  Script script(Scheme::SrNack, 200);
  script.covering = {.copies = 3};
  script.send_all();
  script.report(2, 200, {{2, 1}, {50, 1}});
  EXPECT_EQ(script.repair(), Chunks({2, 50}));
  InlineExecutor executor;
  const auto code = coding::ErasureCode::create({coding::CodeKind::ReedSolomon, 2, 3}).value();
  script.sender().cover_by_code(script.sender().exposed_repairs(), 1, code, 3, executor);
  script.report(200, 200, {});
  EXPECT_FALSE(script.sender().next_repair_parity(4));
}

TEST(TransferSender, RepairThatIsAcknowledgedWhileItWaits_IsNotSent) {
  Script script(Scheme::SrNack, 10);
  script.send_all();
  script.report(1, 10, {{1, 1}, {4, 3}, {9, 1}});
  script.report(1, 10, {{1, 1}, {6, 1}});
  EXPECT_EQ(script.repair(), Chunks({1, 6}));
}

TEST(TransferSender, ChunkWithAHole_IsNotSentWhole) {
  Script script(Scheme::SrNack, 10);
  script.send_all();
  const reliability::Report report{
      .base = 2, .from = 2, .horizon = 8, .missing = {{2, 3}, {6, 1}}, .holes = {{3, 0b1010}, {6, 1}}};
  ASSERT_TRUE(script.sender().handle(report, 0).ok());
  const auto next = [&] {
    const auto extent = script.sender().next_repair(16);
    script.sender().sent(*extent, script.now, script.rto, {});
    return std::array<std::uint64_t, 3>{extent->first, extent->count, extent->packets};
  };
  using Extent = std::array<std::uint64_t, 3>;
  EXPECT_EQ(next(), Extent({2, 1, 0}));
  EXPECT_EQ(next(), Extent({3, 1, 0b1010}));
  EXPECT_EQ(next(), Extent({4, 1, 0}));
  EXPECT_EQ(next(), Extent({6, 1, 1}));
  script.report(2, 8, {{3, 1}}, script.now);  // nothing of it is here after all
  EXPECT_EQ(next(), Extent({3, 1, 0}));
}

TEST(TransferSender, GapsBeyondWhatWasSent_AreNoReason) {
  Script script(Scheme::SrNack, 40);
  const auto extent = script.sender().next_fresh(16);
  script.sender().sent(*extent, script.now, script.rto, {});
  script.report(2, 40, {{2, 38}});
  EXPECT_EQ(script.repair().size(), 14U);
}

TEST(TransferSender, ByTimeout_RepeatsWhatIsNotHeld_WhenTheTimeoutRunsOut) {
  Script script(Scheme::SrRto, 10);
  script.send_all();
  EXPECT_EQ(script.sender().next_timeout(), script.now + script.rto);
  script.report(2, 10, {{2, 1}, {5, 2}});
  script.sender().expire(script.now + script.rto - Duration(1));
  EXPECT_EQ(script.repair(), Chunks());
  script.now += script.rto;
  script.sender().expire(script.now);
  EXPECT_EQ(script.repair(), Chunks({2, 5, 6}));
  script.report(5, 10, {{5, 2}});
  script.now += script.rto;
  script.sender().expire(script.now);
  EXPECT_EQ(script.repair(), Chunks({5, 6}));
}

TEST(TransferSender, ByTimeout_AnAbsenceDoesNotCount) {
  Script script(Scheme::SrRto, 10);
  script.send_all();
  script.sender().postpone(milliseconds(500));
  script.sender().expire(script.now + milliseconds(500));
  EXPECT_EQ(script.repair(), Chunks());
  script.sender().expire(script.now + milliseconds(500) + script.rto);
  EXPECT_EQ(script.repair().size(), 10U);
}

TEST(TransferSender, Coded_ParityGoesBehindTheData_AndEveryByteOnce) {
  Script script(Scheme::EcRs, 10, 4, 2);
  std::uint32_t data = 0, parity = 0;
  while (const auto extent = script.sender().next_fresh(3)) {
    EXPECT_EQ(script.sender().bytes(*extent).size(), extent->count * 100U);
    EXPECT_TRUE(!extent->parity() || data == 10);
    (extent->parity() ? parity : data) += extent->count;
    script.sender().sent(*extent, script.now, script.rto, {});
  }
  EXPECT_EQ(data, 10U);
  EXPECT_EQ(parity, 6U);
}

// A receiver that ran out of patience lists what is on its way: only what was sent before the echoed offers is lost.
TEST(TransferSender, Coded_WhatIsListedWhileOnItsWay_IsNotRepeated) {
  Script script(Scheme::EcRs, 10);
  script.send_all();
  script.report(0, 10, {{0, 10}}, script.now - Duration(1));
  EXPECT_EQ(script.repair(), Chunks());
  script.report(0, 10, {{2, 1}, {7, 1}}, script.now);
  EXPECT_EQ(script.repair(), Chunks({2, 7}));
}

TEST(TransferSender, Coded_WhatCouldBeSparedYesterday_MayBeWantedToday) {
  Script script(Scheme::EcRs, 10);
  script.send_all();
  script.report(0, 10, {{2, 1}}, script.now);
  EXPECT_EQ(script.repair(), Chunks({2}));
  script.report(0, 10, {{5, 1}}, script.now);
  EXPECT_EQ(script.repair(), Chunks({5}));
}

TEST(TransferSender, ClaimsOfWhatWasNotSent_AreContradictions) {
  Script script(Scheme::SrNack, 40);
  const auto extent = script.sender().next_fresh(16);
  script.sender().sent(*extent, script.now, script.rto, {});
  for (const Report& report :
       {Report{.base = 17, .horizon = 17}, Report{.complete = true, .base = 40, .horizon = 40}}) {
    const Result<void> taken = script.sender().handle(report, 0);
    ASSERT_FALSE(taken.ok());
    EXPECT_EQ(taken.error().code, ErrorCode::Protocol);
  }
  EXPECT_FALSE(script.sender().done());
  script.send_all();
  EXPECT_TRUE(script.sender().handle({.complete = true, .base = 40, .horizon = 40}, 0).ok());
  EXPECT_TRUE(script.sender().done());
}

TEST(RttEstimator, FollowsTheSamples) {
  RttEstimator rtt(milliseconds(10));
  EXPECT_FALSE(rtt.measured());
  EXPECT_EQ(rtt.smoothed(), milliseconds(10));
  rtt.sample(milliseconds(80));
  EXPECT_EQ(rtt.smoothed(), milliseconds(80));
  EXPECT_EQ(rtt.variance(), milliseconds(40));
  EXPECT_EQ(rtt.min(), milliseconds(80));
  rtt.sample(milliseconds(160));
  EXPECT_EQ(rtt.smoothed(), milliseconds(90));  // RFC 6298: 7/8 and 1/8
  EXPECT_EQ(rtt.variance(), milliseconds(50));  // 3/4 and 1/4
  EXPECT_EQ(rtt.min(), milliseconds(80));
  for (int i = 0; i < 200; ++i) rtt.sample(milliseconds(20));
  EXPECT_NEAR(static_cast<double>(rtt.smoothed().count()), 20e6, 1e3);
  EXPECT_LT(rtt.variance(), Duration(1000));
  rtt.sample(Duration(-5));
  EXPECT_GE(rtt.min(), Duration(1));
}

TEST(Timing, FollowsThePath) {
  Timing timing{.rtt = RttEstimator(milliseconds(10)), .rto_factor = 3, .tolerance_share = 1.0 / 16};
  for (int i = 0; i < 100; ++i) timing.rtt.sample(milliseconds(160));
  EXPECT_EQ(timing.tolerance(), milliseconds(10));
  EXPECT_NEAR(static_cast<double>(timing.rto().count()), 480e6, 1e5);
  EXPECT_NEAR(static_cast<double>(timing.offer_interval(Duration(0)).count()), 40e6, 1e5);
  EXPECT_EQ(timing.offer_interval(std::chrono::hours(1)), kSlowestOffer);
}

TEST(PeerWatch, LateAndRepeatedPongs_AreNoSamples) {
  PeerWatch watch;
  RttEstimator rtt(milliseconds(10));
  const TimePoint start(std::chrono::seconds(5));
  const auto ping = watch.poll(false, start);
  ASSERT_TRUE(ping && !ping->full_size);
  watch.handle({ping->stamp, false}, start + milliseconds(20), rtt);
  EXPECT_EQ(rtt.smoothed(), milliseconds(20));
  for (int i = 0; i < 100; ++i) watch.handle({ping->stamp, false}, start + milliseconds(900), rtt);
  EXPECT_EQ(rtt.smoothed(), milliseconds(20));
  watch.handle({to_stamp(start + std::chrono::hours(1)), false}, start + milliseconds(900), rtt);  // from the future
  EXPECT_EQ(rtt.smoothed(), milliseconds(20));
  EXPECT_FALSE(watch.black_hole(1456));
  EXPECT_FALSE(watch.ready());
}

}  // namespace
}  // namespace sdr::reliability

// What a receiver makes of the packets of a flow: lost, reordered, twice, dropped by the host; runs of losses.
#include "sdr/probe_record.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "sdr/probe_analysis.hpp"
#include "sdr/probe_order.hpp"

namespace sdr::cli {
namespace {

using Fate = FlowRecord::Fate;

FlowRecord record_of(std::uint32_t most, const std::vector<std::uint32_t>& arrivals) {
  FlowRecord record(most, 0);
  for (const std::uint32_t sequence : arrivals) record.arrived(sequence);
  return record;
}

// One flow in one piece: '1' arrived, '0' did not.
TrialOutcome trial_of(const std::string& packets) {
  std::vector<FlowRecord> records(1, FlowRecord(static_cast<std::uint32_t>(packets.size()), 0));
  for (std::uint32_t i = 0; i < packets.size(); ++i) {
    if (packets[i] == '1') records[0].arrived(i);
  }
  return analyse(records, {.flows = 1, .quantum = 1}, packets.size(), Duration(1000));
}

std::uint64_t seed() {
  const char* given = std::getenv("SDR_TEST_SEED");
  return given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device{}();
}

// --- one flow ---

TEST(FlowRecord, InOrder_LosesNothing) {
  FlowRecord record = record_of(4, {0, 1, 2, 3});
  EXPECT_EQ(record.finish(4), (FlowOutcome{.sent = 4, .arrived = 4}));
}

TEST(FlowRecord, WhatIsMissing_IsLost_AtTheEndToo) {
  FlowRecord record = record_of(10, {0, 3, 4});
  EXPECT_EQ(record.finish(8), (FlowOutcome{.sent = 8, .arrived = 3, .lost = 5}));
  EXPECT_EQ(record.fate(0), Fate::Arrived);
  EXPECT_EQ(record.fate(1), Fate::Lost);
  EXPECT_EQ(record.fate(7), Fate::Lost);
}

TEST(FlowRecord, WhatIsBelowAnEarlierArrival_IsReordered_AsInRfc4737) {
  // The example of RFC 4737, section 3.3: packets 4 and 5 are late, 6 to 8 are not.
  FlowRecord record = record_of(10, {1, 2, 3, 7, 4, 5, 8, 9});
  const FlowOutcome outcome = record.finish(10);
  EXPECT_EQ(outcome.reordered, 2U);
  EXPECT_EQ(outcome.lost, 2U);
}

TEST(FlowRecord, AFurtherCopy_IsADuplicate_AndNeitherReorderedNorAnArrival) {
  FlowRecord record = record_of(4, {0, 1, 1, 2, 0, 3});
  EXPECT_EQ(record.finish(4), (FlowOutcome{.sent = 4, .arrived = 4, .duplicates = 2}));
}

TEST(FlowRecord, NumbersBeyondTheTrial_TouchNothing) {
  FlowRecord record = record_of(4, {0, 4, 4000000000U, 1});
  EXPECT_EQ(record.finish(2), (FlowOutcome{.sent = 2, .arrived = 2}));
}

// --- drops at the host ---

TEST(FlowRecord, MissingPacketsThatTheSocketDropped_AreTheHosts) {
  FlowRecord record(10, 7);
  for (const std::uint32_t i : {0U, 1U}) record.arrived(i);
  record.drops_so_far(7);
  for (const std::uint32_t i : {5U, 6U}) record.arrived(i);
  record.drops_so_far(10);  // 2, 3 and 4
  EXPECT_EQ(record.finish(8), (FlowOutcome{.sent = 8, .arrived = 4, .lost = 1, .host_drops = 3}));
  EXPECT_EQ(record.fate(3), Fate::HostDropped);
  EXPECT_EQ(record.fate(7), Fate::Lost);
}

TEST(FlowRecord, WithMoreMissingThanDropped_TheLongestRunIsTheHosts) {
  FlowRecord record(10, 0);
  for (const std::uint32_t i : {0U, 2U, 6U, 8U}) record.arrived(i);  // missing: 1, 3 to 5, 7
  record.drops_so_far(3);
  const FlowOutcome outcome = record.finish(9);
  EXPECT_EQ(outcome.host_drops, 3U);
  EXPECT_EQ(outcome.lost, 2U);
  for (const std::uint32_t i : {3U, 4U, 5U}) EXPECT_EQ(record.fate(i), Fate::HostDropped) << i;
  EXPECT_EQ(record.fate(1), Fate::Lost);
}

TEST(FlowRecord, LossesInAGapThatIsTheHostsInPart_AreLostAndNoRun) {
  std::vector<FlowRecord> records(1, FlowRecord(20, 0));
  for (const std::uint32_t i : {0U, 2U, 13U}) records[0].arrived(i);  // 1 is missing, and 3 to 12
  records[0].drops_so_far(7);
  const TrialOutcome trial = analyse(records, {.flows = 1, .quantum = 1}, 14, Duration(0));
  EXPECT_EQ(trial.flows[0], (FlowOutcome{.sent = 14, .arrived = 3, .lost = 4, .host_drops = 7}));
  EXPECT_EQ(records[0].fate(12), Fate::LostAmongDrops);
  EXPECT_EQ(trial.in_flow.runs(), 1U) << "packet 1 by itself";
  EXPECT_EQ(trial.in_order.longest(), 1U);
  EXPECT_TRUE(TrialOutcome::from_json(Json::parse(trial.to_json().dump()), 1).ok());
}

TEST(FlowRecord, DropsOfOneBatch_ExcuseNoLossInAnother) {
  FlowRecord record(20, 0);
  for (const std::uint32_t i : {0U, 5U}) record.arrived(i);  // 1 to 4 are lost
  record.drops_so_far(0);
  for (const std::uint32_t i : {6U, 8U, 9U}) record.arrived(i);  // 7 is the host's
  record.drops_so_far(1);
  EXPECT_EQ(record.finish(10).lost, 4U);
  EXPECT_EQ(record.fate(7), Fate::HostDropped);
}

TEST(FlowRecord, DropsAtTheTail_AreFoundByTheEndOfTheFlow) {
  FlowRecord record(10, 0);
  record.arrived(0);
  record.drops_so_far(0);
  record.ended(4);
  record.drops_so_far(3);
  EXPECT_TRUE(record.has_ended());
  EXPECT_EQ(record.finish(4), (FlowOutcome{.sent = 4, .arrived = 1, .host_drops = 3}));
}

TEST(FlowRecord, ALatePacketThatTheHostDropped_IsNotLost) {
  FlowRecord record(10, 0);
  for (const std::uint32_t i : {0U, 2U}) record.arrived(i);  // 1 is late
  record.drops_so_far(0);
  for (const std::uint32_t i : {3U, 4U}) record.arrived(i);
  record.drops_so_far(1);  // and finds no room
  EXPECT_EQ(record.finish(5), (FlowOutcome{.sent = 5, .arrived = 4, .host_drops = 1}));
}

TEST(FlowRecord, ADroppedDuplicate_IsCountedAndMakesNoLoss) {
  FlowRecord record = record_of(3, {0, 1, 2});
  record.drops_so_far(1);
  EXPECT_EQ(record.finish(3), (FlowOutcome{.sent = 3, .arrived = 3, .host_drops = 1}));
}

TEST(FlowRecord, CounterThatWrapsOrIsNotTold_IsUnderstood) {
  FlowRecord record(10, UINT32_MAX);
  record.arrived(0);
  record.drops_so_far(UINT32_MAX);
  record.arrived(3);
  record.drops_so_far(1);  // two more, across zero
  EXPECT_EQ(record.finish(4).host_drops, 2U);

  FlowRecord untold(10, 5);
  untold.arrived(0);
  untold.drops_so_far(0);  // the kernel said nothing
  EXPECT_EQ(untold.finish(2), (FlowOutcome{.sent = 2, .arrived = 1, .lost = 1}));
}

TEST(FlowRecord, OfManyDroppedBatches_StaysWithinItsMemory) {
  constexpr std::uint32_t kPackets = 3 * FlowRecord::kMostWindows;
  FlowRecord record(kPackets, 0);
  std::uint32_t drops = 0;
  for (std::uint32_t i = 1; i < kPackets; i += 2) {
    record.arrived(i);
    record.drops_so_far(++drops);
  }
  const FlowOutcome outcome = record.finish(kPackets);
  EXPECT_EQ(outcome.host_drops, drops);
  EXPECT_EQ(outcome.lost, 0U);
}

// --- runs ---

TEST(LossRuns, OfHandMadeLosses_HaveTheirLengths) {
  const TrialOutcome trial = trial_of("1011001110000");
  EXPECT_EQ(trial.in_flow.runs(), 3U);
  EXPECT_EQ(trial.in_flow.lost(), 7U);
  EXPECT_EQ(trial.in_flow.longest(), 4U);
  EXPECT_DOUBLE_EQ(trial.in_flow.mean(), 7.0 / 3);
  EXPECT_DOUBLE_EQ(trial.in_flow.dispersion(), (1.0 + 4 + 16) / 7);
  EXPECT_EQ(trial.in_flow.bins()[0], 1U) << "length 1";
  EXPECT_EQ(trial.in_flow.bins()[1], 1U) << "length 2";
  EXPECT_EQ(trial.in_flow.bins()[2], 1U) << "lengths 3 and 4";
  EXPECT_EQ(trial.in_order, trial.in_flow) << "one flow is all flows";
}

TEST(LossRuns, WithoutLosses_AreOfLengthOne) {
  const TrialOutcome trial = trial_of("1111");
  EXPECT_EQ(trial.in_flow.runs(), 0U);
  EXPECT_EQ(trial.in_flow.mean(), 1);
  EXPECT_EQ(trial.in_flow.dispersion(), 1);
}

TEST(LossRuns, Bins_CoverEveryLength) {
  for (const std::uint64_t length : {1ULL, 2ULL, 3ULL, 4ULL, 5ULL, 8ULL, 9ULL, 1000ULL, 1ULL << 27, 1ULL << 35}) {
    LossRuns runs;
    runs.add(length);
    for (std::size_t bin = 0; bin < LossRuns::kBins; ++bin) {
      const bool in =
          length >= LossRuns::bin_from(bin) && (length <= LossRuns::bin_to(bin) || bin + 1 == LossRuns::kBins);
      EXPECT_EQ(runs.bins()[bin], in ? 1U : 0U) << length << " in bin " << bin;
    }
  }
}

TEST(LossRuns, OfALinkThatFlowsShare_AreFoundInTheOrderOfSending) {
  // Two flows in turn; packets 2 to 5 of all are lost: two of each flow.
  const ProbeOrder order{.flows = 2, .quantum = 1};
  std::vector<FlowRecord> records(2, FlowRecord(5, 0));
  for (std::uint64_t n = 0; n < 10; ++n) {
    if (n < 2 || n > 5) records[order.place(n).flow].arrived(order.place(n).sequence);
  }
  const TrialOutcome trial = analyse(records, order, 10, Duration(0));
  EXPECT_EQ(trial.in_order.longest(), 4U);
  EXPECT_EQ(trial.in_order.runs(), 1U);
  EXPECT_EQ(trial.in_flow.longest(), 2U);
  EXPECT_EQ(trial.in_flow.runs(), 2U);
}

TEST(LossRuns, APacketThatTheHostDropped_EndsARun) {
  std::vector<FlowRecord> records(1, FlowRecord(6, 0));
  records[0].arrived(0);
  records[0].drops_so_far(0);
  records[0].arrived(2);
  records[0].drops_so_far(1);  // packet 1
  records[0].arrived(5);
  records[0].drops_so_far(1);
  const TrialOutcome trial = analyse(records, {.flows = 1, .quantum = 1}, 6, Duration(0));
  EXPECT_EQ(trial.in_flow.runs(), 1U);
  EXPECT_EQ(trial.in_flow.lost(), 2U);
}

// --- order ---

TEST(ProbeOrder, Places_AreEachPacketOnce_AndCountsAgree) {
  for (const ProbeOrder order : {ProbeOrder{1, 1}, ProbeOrder{3, 1}, ProbeOrder{4, 5}, ProbeOrder{64, 64}}) {
    for (const std::uint64_t total : {0ULL, 1ULL, 7ULL, 19ULL, 20ULL, 21ULL, 4999ULL}) {
      std::vector<std::uint32_t> next(order.flows);
      for (std::uint64_t n = 0; n < total; ++n) {
        const ProbeOrder::Place at = order.place(n);
        ASSERT_LT(at.flow, order.flows);
        ASSERT_EQ(at.sequence, next[at.flow]++) << "numbers of a flow ascend by one";
      }
      for (std::uint32_t flow = 0; flow < order.flows; ++flow) EXPECT_EQ(order.count(flow, total), next[flow]);
    }
  }
}

// --- from one end to the other ---

TEST(TrialOutcome, OfRandomLosses_AddsUpAndCrossesTheSessionUnchanged) {
  const std::uint64_t random_seed = seed();
  SCOPED_TRACE("SDR_TEST_SEED=" + std::to_string(random_seed));
  std::mt19937_64 random(random_seed);
  const ProbeOrder order{.flows = 1 + static_cast<std::uint32_t>(random() % 8),
                         .quantum = 1 + static_cast<std::uint32_t>(random() % 5)};
  const std::uint64_t total = 1 + random() % 5000;
  std::vector<FlowRecord> records;
  for (std::uint32_t flow = 0; flow < order.flows; ++flow) records.emplace_back(order.count(flow, total), 0);
  std::uint64_t lost = 0;
  for (std::uint64_t n = 0; n < total; ++n) {
    const ProbeOrder::Place at = order.place(n);
    if (random() % 10 == 0) {
      ++lost;
    } else {
      records[at.flow].arrived(at.sequence);
    }
  }
  const TrialOutcome trial = analyse(records, order, total, Duration(123456789));
  EXPECT_EQ(trial.total().sent, total);
  EXPECT_EQ(trial.total().lost, lost);
  EXPECT_EQ(trial.in_order.lost(), lost);
  EXPECT_EQ(trial.in_flow.lost(), lost);

  const auto again = TrialOutcome::from_json(Json::parse(trial.to_json().dump()), order.flows);
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(again->flows, trial.flows);
  EXPECT_EQ(again->in_order, trial.in_order);
  EXPECT_EQ(again->in_flow, trial.in_flow);
  EXPECT_EQ(again->elapsed, trial.elapsed);
}

TEST(TrialOutcome, ThatCannotBe_IsRefused) {
  const Json good = trial_of("1011").to_json();
  ASSERT_TRUE(TrialOutcome::from_json(good, 1).ok());
  EXPECT_FALSE(TrialOutcome::from_json(good, 2).ok());
  const auto refused = [&](const char* pointer, const Json& value) {
    Json bad = good;
    bad[Json::json_pointer(pointer)] = value;
    return !TrialOutcome::from_json(bad, 1).ok();
  };
  EXPECT_TRUE(refused("/flows/0/1", 5)) << "more arrived than were sent";
  EXPECT_TRUE(refused("/flows/0/0", -1));
  EXPECT_TRUE(refused("/flows/0", Json::array()));
  EXPECT_TRUE(refused("/flows", 3));
  EXPECT_TRUE(refused("/in_order/lost", 2)) << "more than the flows lost";
  EXPECT_TRUE(refused("/in_order/runs", 7));
  EXPECT_TRUE(refused("/in_order/squares", 0));
  EXPECT_TRUE(refused("/in_flow/bins", "none"));
  EXPECT_TRUE(refused("/in_flow", 1));
  EXPECT_TRUE(refused("/elapsed_ns", UINT64_MAX));
  EXPECT_FALSE(TrialOutcome::from_json(Json::object(), 1).ok());
}

TEST(TrialOutcome, Rate_IsOfWhatCameAfterTheFirst) {
  TrialOutcome trial;
  trial.flows = {{.sent = 5, .arrived = 5}};
  trial.elapsed = std::chrono::milliseconds(1);
  EXPECT_DOUBLE_EQ(trial.rate(1000).bits_per_second, 4 * 8000 * 1e3);
  trial.flows = {{.sent = 5, .arrived = 1, .lost = 4}};
  EXPECT_EQ(trial.rate(1000).bits_per_second, 0);
}

}  // namespace
}  // namespace sdr::cli

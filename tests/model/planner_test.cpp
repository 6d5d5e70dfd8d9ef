// Which scheme the planner takes, how it tunes, and what it says about it.
#include "model/planner.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string>

#include "tests/model/paths.hpp"

namespace sdr::model::testing {
namespace {

Bandwidth fifty_gigabit(const SchemeSpec&) {
  return {50e9};
}

Plan plan_of(const PathSpec& path, Bytes size, double budget = 0.1) {
  return plan(path, size, budget, fifty_gigabit).value();
}

const PlannedScheme& best_of(const Plan& plan) {
  return plan.schemes[plan.best];
}

const PlannedScheme* find(const Plan& plan, SchemeKind kind, bool tuned) {
  const auto found = std::find_if(plan.schemes.begin(), plan.schemes.end(),
                                  [&](const PlannedScheme& s) { return s.scheme.kind == kind && s.tuned == tuned; });
  return found == plan.schemes.end() ? nullptr : &*found;
}

// --- choosing ---

PlannedScheme scheme_with(SchemeKind kind, int p999_us, int mean_us, double repairs = 0) {
  PlannedScheme scheme;
  scheme.scheme.kind = kind;
  scheme.time.p999 = std::chrono::microseconds(p999_us);
  scheme.time.mean = std::chrono::microseconds(mean_us);
  scheme.repairs = repairs;
  return scheme;
}

TEST(Choose, TheTailDecidesFirst_ThenTheMean_ThenTheBytes) {
  const auto slow = scheme_with(SchemeKind::SrRto, 90'000, 30'000);
  EXPECT_EQ(choose({slow, scheme_with(SchemeKind::EcRs, 50'000, 40'000, 0.3)}), 1U);
  EXPECT_EQ(choose({slow, scheme_with(SchemeKind::EcRs, 90'000, 20'000, 0.3)}), 1U);
  EXPECT_EQ(choose({slow, scheme_with(SchemeKind::EcRs, 90'000, 30'000, 0.3)}), 0U);
}

TEST(Choose, OnePercent_IsNoDifference) {
  const auto plain = scheme_with(SchemeKind::SrRto, 100'900, 50'400);
  EXPECT_EQ(choose({scheme_with(SchemeKind::EcRs, 100'000, 50'000, 0.01), plain}), 1U);
  EXPECT_EQ(choose({scheme_with(SchemeKind::EcRs, 99'000, 50'000, 0.01), plain}), 0U);
}

TEST(Choose, AmongEquals_TakesSrNack) {
  EXPECT_EQ(choose({scheme_with(SchemeKind::SrRto, 100, 100), scheme_with(SchemeKind::SrNack, 100, 100)}), 1U);
}

TEST(Choose, WhatIsOverBudget_IsNotTaken) {
  PlannedScheme fast = scheme_with(SchemeKind::EcRs, 10, 10);
  fast.within_budget = false;
  EXPECT_EQ(choose({fast, scheme_with(SchemeKind::SrRto, 100, 100)}), 1U);
}

// --- tuning ---

TEST(Tune, KeepsToItsRanges) {
  for (const double budget : {0.02, 0.1, 0.3, 1.0}) {
    for (const double loss : {1e-5, 1e-3, 3e-2}) {
      for (const SchemeKind code : {SchemeKind::EcXor, SchemeKind::EcRs}) {
        const std::optional<SchemeSpec> tuned = tune(code, transfer_of(16_MiB, loss), budget);
        SCOPED_TRACE(std::to_string(budget) + " " + std::to_string(loss) + " " + std::string(to_string(code)));
        if (!tuned) continue;
        EXPECT_TRUE(check(*tuned).ok());
        EXPECT_GE(tuned->data_chunks, kLeastTunedK);
        EXPECT_LE(tuned->data_chunks, kMostTunedK);
        // A message of 4096 chunks: rounding up to whole submessages is little.
        EXPECT_LE(tuned->parity_chunks, budget * tuned->data_chunks * 1.01);
        EXPECT_EQ(tuned->rto_rtts, 1) << "coded schemes fall back as sr-nack";
      }
    }
  }
}

TEST(Tune, FindsWhatASearchOfEveryShapeFinds) {
  const double budget = 0.12;
  for (const double loss : {1e-4, 1e-2}) {
    const Transfer transfer = transfer_of(2_MiB, loss);  // 512 chunks
    double least = std::numeric_limits<double>::infinity();
    for (unsigned k = kLeastTunedK; k <= kMostTunedK; ++k) {
      if (512 % k != 0) continue;  // where the theory's submessages are the library's
      for (unsigned m = 1; m <= budget * k; ++m) {
        SchemeSpec scheme{.kind = SchemeKind::EcRs, .data_chunks = k, .parity_chunks = m, .rto_rtts = 1};
        least = std::min(least, to_seconds(CompletionTime::of(transfer, scheme)->percentile(0.999).value()));
      }
    }
    const Plan plan = plan_of(paper_path(loss), 2_MiB, budget);
    const PlannedScheme* tuned = find(plan, SchemeKind::EcRs, true);
    ASSERT_NE(tuned, nullptr);
    EXPECT_LE(to_seconds(tuned->time.p999), least * (1 + 2 * kAlike)) << loss;
  }
}

TEST(Tune, MoreLoss_TakesMoreParity) {
  double before = 0;
  for (const double loss : {1e-6, 1e-4, 1e-3, 1e-2, 3e-2}) {
    const std::optional<SchemeSpec> tuned = tune(SchemeKind::EcRs, transfer_of(128_MiB, loss), 0.25);
    ASSERT_TRUE(tuned);
    const double ratio = static_cast<double>(tuned->parity_chunks) / tuned->data_chunks;
    EXPECT_GE(ratio, before) << loss;
    before = ratio;
  }
}

TEST(Tune, WithoutABudget_FindsNothing) {
  EXPECT_FALSE(tune(SchemeKind::EcRs, transfer_of(1_MiB, 1e-3), 0));
  EXPECT_FALSE(tune(SchemeKind::EcXor, transfer_of(1_MiB, 1e-3), 0.001));
  // One chunk: a parity chunk for it is a second copy.
  EXPECT_FALSE(tune(SchemeKind::EcRs, transfer_of(1_KiB, 1e-3), 0.5));
  EXPECT_TRUE(tune(SchemeKind::EcRs, transfer_of(1_KiB, 1e-3), 1));
}

TEST(Tune, InRunsOfLosses_TakesMoreParityThanWithoutThem) {
  const auto ratio = [](double burst) {
    const SchemeSpec tuned = tune(SchemeKind::EcRs, transfer_of(1_MiB, 1e-3, burst), 0.25).value();
    return static_cast<double>(tuned.parity_chunks) / tuned.data_chunks;
  };
  EXPECT_GT(ratio(16), ratio(1));
}

// --- plans ---

TEST(Plan, HasEverySchemeInOrder) {
  const Plan plan = plan_of(paper_path(1e-3), 128_MiB);
  std::string names;
  for (const PlannedScheme& s : plan.schemes) names += to_text(s.scheme).substr(0, 6) + (s.tuned ? "* " : " ");
  EXPECT_EQ(names, "sr-rto sr-nac ec-xor ec-xor* ec-rs: ec-rs:* adapti ");
  EXPECT_TRUE(plan.untunable.empty());
}

TEST(Plan, OfThePapersMessage_TakesAdaptiveAtOnePercent) {
  const Plan plan = plan_of(paper_path(1e-2), 128_MiB);
  EXPECT_EQ(best_of(plan).scheme.kind, SchemeKind::Adaptive);
  const PlannedScheme* coded = find(plan, SchemeKind::EcRs, true);
  for (const PlannedScheme* scheme : {&best_of(plan), coded}) {
    EXPECT_LE(scheme->overhead(), 0.1);
    EXPECT_LT(scheme->fallback, kRare);
    EXPECT_LT(scheme->slowdown, 1.1);
  }
  EXPECT_FALSE(find(plan, SchemeKind::EcRs, false)->within_budget) << "(32, 8) is 25 % more bytes";
  EXPECT_TRUE(find(plan_of(paper_path(1e-2), 128_MiB, 0.25), SchemeKind::EcRs, false)->within_budget);
}

TEST(Plan, WithoutLoss_TakesSrNack) {
  EXPECT_EQ(best_of(plan_of(paper_path(0), 128_MiB)).scheme.kind, SchemeKind::SrNack);
}

TEST(Plan, WhereTheWireIsTheTime_TakesSelectiveRepeat) {
  PathSpec path = paper_path(1e-2);
  path.rtt = std::chrono::microseconds(100);
  const Plan plan = plan_of(path, 8_GiB);
  EXPECT_EQ(best_of(plan).scheme.kind, SchemeKind::SrNack);
}

TEST(Plan, WithoutABudget_TakesSrNackAndSaysWhatIsMissing) {
  const Plan plan = plan_of(paper_path(1e-2), 128_MiB, 0);
  EXPECT_EQ(best_of(plan).scheme.kind, SchemeKind::SrNack);
  EXPECT_EQ(plan.untunable, (std::vector{SchemeKind::EcXor, SchemeKind::EcRs}));
  EXPECT_NE(reason(plan).find("no code keeps to"), std::string::npos) << reason(plan);
}

TEST(Plan, TheTunedShape_IsNoWorseThan32And8WithinTheSameBudget) {
  for (const double loss : {1e-5, 1e-3, 1e-2, 3e-2}) {
    for (const Bytes size : {128_KiB, 4_MiB, 128_MiB}) {
      const Plan plan = plan_of(paper_path(loss), size, 0.25);
      for (const SchemeKind code : {SchemeKind::EcXor, SchemeKind::EcRs}) {
        const PlannedScheme* plain = find(plan, code, false);
        const PlannedScheme* tuned = find(plan, code, true);
        if (!plain->within_budget) continue;
        ASSERT_NE(tuned, nullptr);
        EXPECT_LE(to_seconds(tuned->time.p999), to_seconds(plain->time.p999) * (1 + 2 * kAlike))
            << loss << " " << to_string(code) << " " << size.count;
      }
    }
  }
}

TEST(Plan, MeanIsNeverBelowTheFloor) {
  const Plan plan = plan_of(paper_path(5e-2), 256_GiB);
  for (const PlannedScheme& scheme : plan.schemes) {
    EXPECT_GE(scheme.time.mean, plan.transfer.floor()) << to_text(scheme.scheme);
  }
  EXPECT_TRUE(find(plan, SchemeKind::SrNack, false)->at_floor);
  EXPECT_FALSE(find(plan_of(paper_path(5e-2), 1_MiB), SchemeKind::SrNack, false)->at_floor);
}

TEST(Plan, Overhead_CountsParityAndRepairs) {
  const Plan plan = plan_of(paper_path(1e-2), 128_MiB);
  EXPECT_NEAR(find(plan, SchemeKind::SrNack, false)->overhead(), 0.01 / 0.99, 1e-12);
  const PlannedScheme* rs = find(plan, SchemeKind::EcRs, false);
  EXPECT_NEAR(rs->parity, 0.25, 1e-12);
  EXPECT_LT(rs->repairs, 1e-8);
  // Two of a group's five chunks lost: 10 p^2 of 4 chunks, nearly.
  EXPECT_NEAR(find(plan, SchemeKind::EcXor, false)->repairs, 10 * 1e-4 / 4, 2e-5);
}

TEST(Plan, ShortMessages_PayForAllTheirParity) {
  // As the library sends it: one submessage of one data chunk and 8 parity chunks.
  const Plan plan = plan_of(paper_path(1e-3), 4_KiB, 1);
  EXPECT_EQ(find(plan, SchemeKind::EcRs, false)->parity, 8);
  EXPECT_EQ(find(plan, SchemeKind::EcXor, false)->parity, 1) << "a parity of no data is not sent";
}

TEST(Plan, HoldsTo_IsWhereTheFallbackIsRare) {
  const PathSpec path = paper_path(1e-4);
  const PlannedScheme rs = *find(plan_of(path, 128_MiB), SchemeKind::EcRs, false);
  ASSERT_TRUE(rs.holds_to);
  for (const double beside : {0.98, 1.02}) {
    PathSpec there = path;
    there.loss = *rs.holds_to * beside;
    const CompletionTime time = CompletionTime::of(Transfer::create(there, 128_MiB).value(), rs.scheme).value();
    EXPECT_EQ(time.fallback() < kRare, beside < 1) << time.fallback();
  }
  EXPECT_FALSE(find(plan_of(path, 128_MiB), SchemeKind::SrNack, false)->holds_to);
}

TEST(Plan, OnAPathThatLosesNearlyAll_NoParitySuffices) {
  const Plan plan = plan_of(paper_path(0.999), 1_MiB);
  for (const PlannedScheme& scheme : plan.schemes) {
    EXPECT_TRUE(!scheme.scheme.coded() || scheme.fallback > 0.999) << to_text(scheme.scheme);
  }
  EXPECT_EQ(best_of(plan).scheme.kind, SchemeKind::SrNack);
}

TEST(Plan, Cores_AreTheRateOverTheSpeedOfOne) {
  const Plan plan = plan_of(paper_path(1e-3), 1_MiB);
  EXPECT_NEAR(find(plan, SchemeKind::EcRs, false)->cores, 8, 1e-9);
  EXPECT_EQ(find(plan, SchemeKind::SrRto, false)->cores, 0);
  const Plan unknown =
      model::plan(paper_path(1e-2), 128_MiB, 0.1, [](const SchemeSpec&) { return Bandwidth{}; }).value();
  EXPECT_FALSE(find(unknown, SchemeKind::EcRs, false)->encode.limited());
  EXPECT_EQ(reason(unknown).find("cores"), std::string::npos) << reason(unknown);
}

TEST(Plan, Reason_NamesEveryKindOfScheme) {
  const std::string adaptive = reason(plan_of(paper_path(1e-2), 128_MiB));
  EXPECT_TRUE(adaptive.starts_with("adaptive:")) << adaptive;
  for (const char* part : {"sr-nack", "ec-rs:", "25.0 ms", "more bytes", "cores"}) {
    EXPECT_NE(adaptive.find(part), std::string::npos) << part << " in: " << adaptive;
  }
  Plan without = plan_of(paper_path(1e-2), 128_MiB);
  std::erase_if(without.schemes, [](const PlannedScheme& s) { return s.scheme.kind == SchemeKind::Adaptive; });
  without.best = choose(without.schemes);
  const std::string coded = reason(without);
  EXPECT_TRUE(coded.starts_with("ec-rs:")) << coded;
  for (const char* part : {"sr-nack", "25.0 ms", "more bytes", "cores"}) {
    EXPECT_NE(coded.find(part), std::string::npos) << part << " in: " << coded;
  }
  PathSpec path = paper_path(1e-2);
  path.rtt = std::chrono::microseconds(100);
  const std::string repeated = reason(plan_of(path, 8_GiB));
  EXPECT_TRUE(repeated.starts_with("sr-nack: ")) << repeated;
}

TEST(Plan, OutOfRange_IsRefusedByFieldValueAndRange) {
  const auto message_of = [](double loss, Bytes size, double budget) {
    return plan(paper_path(loss), size, budget, fifty_gigabit).error().message;
  };
  EXPECT_NE(message_of(1.5, 1_MiB, 0.1).find("loss 1.5 is not from 0 to 0.999"), std::string::npos);
  EXPECT_NE(message_of(0, 0_B, 0.1).find("size 0 bytes"), std::string::npos);
  EXPECT_NE(message_of(0, 1_MiB, 1.5).find("budget 150 % is not from 0 to 100 %"), std::string::npos);
  EXPECT_NE(message_of(0, 1_MiB, std::numeric_limits<double>::quiet_NaN()).find("budget"), std::string::npos);
}

}  // namespace
}  // namespace sdr::model::testing

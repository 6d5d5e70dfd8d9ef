// Timeline: what crossed the link is told apart, and placed.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/experiment/trial.hpp"

namespace sdr::testing {
namespace {

using experiment::Cargo;
using experiment::Passage;
using experiment::Timeline;
using experiment::TrialResult;

struct Recorded {
  Timeline timeline;
  TrialResult result;

  [[nodiscard]] std::uint64_t count(Cargo cargo) const {
    return static_cast<std::uint64_t>(std::count_if(timeline.passages().begin(), timeline.passages().end(),
                                                    [cargo](const Passage& p) { return p.cargo == cargo; }));
  }
  [[nodiscard]] std::uint64_t lost() const {
    return static_cast<std::uint64_t>(
        std::count_if(timeline.passages().begin(), timeline.passages().end(),
                      [](const Passage& p) { return p.arrived == kNever && !p.backward; }));
  }
};

Recorded record(const experiment::WriteTrial& trial) {
  Recorded recorded;
  recorded.result = experiment::run(trial, 0, &recorded.timeline).value();
  return recorded;
}

TEST(Timeline, OfARepairedWrite_HasEveryPacketOnce) {
  const auto what = trial("rtt=10ms,rate=10Gbit,loss=1e-2", Scheme::SrNack, 4_MiB);
  const Recorded seen = record(what);
  EXPECT_EQ(seen.count(Cargo::Data), seen.result.chunks_sent);
  EXPECT_EQ(seen.count(Cargo::Repair), seen.result.chunks_retransmitted);
  EXPECT_EQ(seen.lost(), seen.result.packets_lost);
  EXPECT_GT(seen.count(Cargo::Nack), 0U);
  EXPECT_GT(seen.count(Cargo::Done), 0U);
  EXPECT_EQ(seen.result, experiment::run(what, 0).value()) << "being watched changes nothing";
  EXPECT_EQ(seen.timeline.completed() - seen.timeline.begin(), seen.result.completion);
}

TEST(Timeline, ARepair_StandsWhereTheLossWas) {
  const Recorded seen = record(trial("rtt=10ms,rate=10Gbit,loss=5e-3", Scheme::SrNack, 4_MiB));
  const auto& passages = seen.timeline.passages();
  for (const Passage& repair : passages) {
    if (repair.cargo != Cargo::Repair) continue;
    const bool was_lost = std::any_of(passages.begin(), passages.end(), [&](const Passage& p) {
      return p.arrived == kNever && p.position == repair.position && p.sent < repair.sent && !p.backward;
    });
    EXPECT_TRUE(was_lost) << "at byte " << repair.position;
  }
}

TEST(Timeline, OfSeveralTransfers_PlacesEachInTheWrite) {
  auto what = trial("rtt=10ms,rate=100Gbit", Scheme::EcRs, 5_MiB);
  what.connection.queue_pair.max_message = 1_MiB;
  const Recorded seen = record(what);
  EXPECT_EQ(seen.count(Cargo::Parity), seen.result.parity_chunks_sent);
  std::vector<std::uint64_t> places;
  for (const Passage& passage : seen.timeline.passages()) {
    if (passage.cargo == Cargo::Data) places.push_back(passage.position);
  }
  std::sort(places.begin(), places.end());
  ASSERT_EQ(places.size(), 5U * 256);
  for (std::size_t i = 0; i < places.size(); ++i) ASSERT_EQ(places[i], i * 4096);
}

TEST(Timeline, Duplicates_AreMarked) {
  const Recorded seen = record(trial("rtt=10ms,rate=10Gbit,dup=0.1", Scheme::SrRto, 1_MiB));
  const auto& passages = seen.timeline.passages();
  EXPECT_GT(std::count_if(passages.begin(), passages.end(), [](const Passage& p) { return p.duplicate; }), 5);
}

}  // namespace
}  // namespace sdr::testing

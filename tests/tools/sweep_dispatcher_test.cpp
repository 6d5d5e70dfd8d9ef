// Who computes what in a sweep, when ranks are slow, die, come back, or take cells with them.
#include "sdr/sweep_dispatcher.hpp"

#include <gtest/gtest.h>

#include <random>
#include <set>

#include "tests/core/seed.hpp"

namespace sdr::cli {
namespace {

using std::chrono::seconds;

constexpr Duration kPatience = seconds(10);

TimePoint at(int second) {
  return TimePoint(seconds(second));
}

SweepDispatcher three_ranks(std::vector<SweepDispatcher::Work> open) {
  SweepDispatcher dispatcher(std::move(open), kPatience);
  dispatcher.expect_always(0);
  for (const int rank : {1, 2}) {
    dispatcher.expect(rank, at(0));
    dispatcher.ready(rank);
  }
  return dispatcher;
}

TEST(SweepDispatcher, TheDearestCell_GoesOutFirst) {
  SweepDispatcher dispatcher = three_ranks({{.cell = 0, .cost = 1}, {.cell = 1, .cost = 5}, {.cell = 2, .cost = 5}});
  EXPECT_EQ(dispatcher.assign(1), 1U);
  EXPECT_EQ(dispatcher.assign(1), std::nullopt) << "busy";
  EXPECT_EQ(dispatcher.assign(2), 2U);
  EXPECT_EQ(dispatcher.assign(0), 0U);
  EXPECT_TRUE(dispatcher.finish(1, 1));
  EXPECT_EQ(dispatcher.assign(1), std::nullopt) << "none waits";
  EXPECT_FALSE(dispatcher.done());
  EXPECT_TRUE(dispatcher.finish(2, 2));
  EXPECT_TRUE(dispatcher.finish(0, 0));
  EXPECT_TRUE(dispatcher.done());
}

TEST(SweepDispatcher, ARankThatHasNotSaidHello_GetsNothing) {
  SweepDispatcher dispatcher({{.cell = 0, .cost = 1}}, kPatience);
  dispatcher.expect(1, at(0));
  EXPECT_EQ(dispatcher.assign(1), std::nullopt);
  dispatcher.ready(1);
  EXPECT_EQ(dispatcher.assign(1), 0U);
}

TEST(SweepDispatcher, ASilentRank_IsLostAndItsCellGoesToAnother) {
  SweepDispatcher dispatcher = three_ranks({{.cell = 7, .cost = 1}});
  ASSERT_EQ(dispatcher.assign(1), 7U);
  dispatcher.heard(2, at(5));
  EXPECT_TRUE(dispatcher.expire(at(10)).empty()) << "not longer than the patience";
  const auto losses = dispatcher.expire(at(11));
  ASSERT_EQ(losses.size(), 1U);
  EXPECT_EQ(losses[0].rank, 1);
  EXPECT_EQ(losses[0].cell, 7U);
  EXPECT_EQ(losses[0].silence, seconds(11));
  EXPECT_FALSE(losses[0].given_up);
  EXPECT_TRUE(dispatcher.expire(at(12)).empty()) << "told once";
  EXPECT_EQ(dispatcher.lost(), std::vector<int>{1});
  EXPECT_EQ(dispatcher.assign(1), std::nullopt);
  EXPECT_EQ(dispatcher.assign(2), 7U);
}

TEST(SweepDispatcher, ARankThatComesBack_CountsAgainAndOneResultIsTaken) {
  SweepDispatcher dispatcher = three_ranks({{.cell = 7, .cost = 1}});
  ASSERT_EQ(dispatcher.assign(1), 7U);
  dispatcher.heard(2, at(11));
  ASSERT_EQ(dispatcher.expire(at(11)).size(), 1U);
  ASSERT_EQ(dispatcher.assign(2), 7U);
  EXPECT_TRUE(dispatcher.heard(1, at(12)));
  EXPECT_FALSE(dispatcher.heard(1, at(12)));
  EXPECT_TRUE(dispatcher.lost().empty());
  EXPECT_TRUE(dispatcher.finish(1, 7));
  EXPECT_FALSE(dispatcher.finish(2, 7)) << "the second one";
  EXPECT_TRUE(dispatcher.done());
}

TEST(SweepDispatcher, AResultOfALostRank_TakesTheCellBackFromTheQueue) {
  SweepDispatcher dispatcher = three_ranks({{.cell = 7, .cost = 1}});
  ASSERT_EQ(dispatcher.assign(1), 7U);
  dispatcher.heard(2, at(11));
  ASSERT_EQ(dispatcher.expire(at(11)).size(), 1U);
  dispatcher.heard(1, at(12));
  EXPECT_TRUE(dispatcher.finish(1, 7));
  EXPECT_EQ(dispatcher.assign(2), std::nullopt);
}

TEST(SweepDispatcher, ACellThatTakesTwoRanksWithIt_IsGivenUp) {
  SweepDispatcher dispatcher = three_ranks({{.cell = 7, .cost = 1}});
  ASSERT_EQ(dispatcher.assign(1), 7U);
  dispatcher.heard(2, at(11));
  ASSERT_FALSE(dispatcher.expire(at(11)).front().given_up);
  ASSERT_EQ(dispatcher.assign(2), 7U);
  const auto losses = dispatcher.expire(at(22));
  ASSERT_EQ(losses.size(), 1U);
  EXPECT_TRUE(losses[0].given_up);
  EXPECT_EQ(losses[0].cell, 7U);
  EXPECT_TRUE(dispatcher.done());
}

TEST(SweepDispatcher, WhateverHappens_EachCellIsSettledOnce) {
  const std::uint64_t seed = testing_support::test_seed();
  SCOPED_TRACE(testing_support::seed_trace(seed));
  std::mt19937_64 random(seed);
  for (int round = 0; round < 200; ++round) {
    std::vector<SweepDispatcher::Work> open;
    for (std::uint64_t cell = 0; cell < 20; ++cell)
      open.push_back({.cell = cell, .cost = static_cast<double>(random() % 5)});
    SweepDispatcher dispatcher = three_ranks(open);
    std::multiset<std::uint64_t> settled;
    std::vector<std::pair<int, std::uint64_t>> under_way;
    for (int second = 0; !dispatcher.done(); ++second) {
      ASSERT_LT(second, 5000);
      for (const int rank : {0, 1, 2}) {
        if (rank == 0 || random() % 8 != 0) dispatcher.heard(rank, at(second));
        if (const auto cell = dispatcher.assign(rank)) under_way.emplace_back(rank, *cell);
      }
      if (!under_way.empty() && random() % 3 == 0) {
        const auto [rank, cell] = under_way[random() % under_way.size()];
        std::erase(under_way, std::pair(rank, cell));
        if (dispatcher.finish(rank, cell)) settled.insert(cell);
      }
      if (random() % 10 == 0) second += 8;
      for (const auto& loss : dispatcher.expire(at(second))) {
        if (loss.given_up) settled.insert(*loss.cell);
      }
    }
    EXPECT_EQ(settled.size(), 20U);
    EXPECT_EQ(std::set<std::uint64_t>(settled.begin(), settled.end()).size(), 20U);
  }
}

}  // namespace
}  // namespace sdr::cli

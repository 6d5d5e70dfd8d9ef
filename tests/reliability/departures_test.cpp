// What was handed out and has not left in time: its loss is not told, nor its timeout run, before it has.
#include "reliability/departures.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "tests/reliability/pair.hpp"

namespace sdr::reliability {
namespace {

using std::chrono::milliseconds;
using Kind = TransferSender::Kind;

constexpr TimePoint kStart{std::chrono::seconds(1)};
constexpr Duration kRto = milliseconds(75);

struct Looked {
  std::vector<std::uint64_t> left;
  std::vector<std::uint64_t> late;
};

Looked look(Departures& departures, std::uint64_t backlog, TimePoint now) {
  Looked looked;
  departures.look(
      backlog, now, [&](const Departures::Entry& entry) { looked.left.push_back(entry.transfer); },
      [&](const Departures::Entry& entry) { looked.late.push_back(entry.transfer); });
  return looked;
}

TEST(Departures, WhatLeavesInTime_IsNotMentioned) {
  Departures departures;
  departures.handed_out(1, {}, 1000, kStart + milliseconds(1));
  departures.handed_out(2, {}, 1000, kStart + milliseconds(2));
  for (const auto& looked : {look(departures, 1000, kStart), look(departures, 0, kStart + milliseconds(2))}) {
    EXPECT_TRUE(looked.left.empty());
    EXPECT_TRUE(looked.late.empty());
  }
}

TEST(Departures, WhatDoesNot_IsLateOnce_AndLeavesOnce) {
  Departures departures;
  departures.handed_out(1, {}, 1000, kStart + milliseconds(1));
  departures.handed_out(2, {}, 500, kStart + milliseconds(2));
  EXPECT_EQ(look(departures, 1500, kStart + milliseconds(1)).late, std::vector<std::uint64_t>{1});
  const Looked then = look(departures, 500, kStart + milliseconds(2));
  EXPECT_EQ(then.left, std::vector<std::uint64_t>{1});
  EXPECT_EQ(then.late, std::vector<std::uint64_t>{2});
  EXPECT_TRUE(look(departures, 500, kStart + milliseconds(3)).late.empty());
  EXPECT_EQ(look(departures, 0, kStart + milliseconds(4)).left, std::vector<std::uint64_t>{2});
  EXPECT_TRUE(look(departures, 0, kStart + milliseconds(5)).left.empty());
}

class Sender {
 public:
  explicit Sender(Scheme scheme)
      : data_(testing::random_bytes(1000, 1)),
        sender_({.data = data_, .chunk_bytes = 100, .layout = CodingLayout::uncoded(10)}, SchemeRules{scheme}, nullptr,
                executor_) {
    while (const auto extent = sender_.next_fresh(16)) sender_.sent(*extent, kStart, kRto, {});
  }
  void report_gap_at_3(TimePoint echo) {
    EXPECT_TRUE(sender_.handle({.base = 3, .horizon = 10, .missing = {{3, 1}}}, to_stamp(echo)).ok());
  }
  TransferSender* operator->() { return &sender_; }

 private:
  InlineExecutor executor_;
  std::vector<std::byte> data_;
  TransferSender sender_;
};

TEST(Departures, ARepairThatIsHeldUp_IsNotLost_WhateverTheOffersSay) {
  Sender sender(Scheme::SrNack);
  sender.report_gap_at_3(kStart);
  const auto repair = sender->next_repair(16);
  ASSERT_TRUE(repair);
  sender->sent(*repair, kStart + milliseconds(1), kRto, {});
  sender->held_up(*repair);
  sender.report_gap_at_3(kStart + milliseconds(20));
  EXPECT_FALSE(sender->next_repair(16));
  sender->left_late(*repair, kRto, kStart + milliseconds(30));
  sender.report_gap_at_3(kStart + milliseconds(29));
  EXPECT_FALSE(sender->next_repair(16)) << "that offer was sent before it";
  sender.report_gap_at_3(kStart + milliseconds(30));
  EXPECT_TRUE(sender->next_repair(16));
}

TEST(Departures, ATimeoutBegins_WhenTheChunkHasLeft) {
  Sender sender(Scheme::SrRto);
  sender->held_up({Kind::Fresh, 0, 10});
  EXPECT_EQ(sender->next_timeout(), kNever);
  sender->expire(kStart + 2 * kRto);
  EXPECT_FALSE(sender->next_repair(16));
  sender->left_late({Kind::Fresh, 0, 10}, kRto, kStart + 2 * kRto);
  EXPECT_EQ(sender->next_timeout(), kStart + 3 * kRto);
}

TEST(Departures, AnAbsenceWhileItIsHeldUp_StartsNoTimeout) {
  Sender sender(Scheme::SrRto);
  sender->held_up({Kind::Fresh, 0, 10});
  sender->postpone(std::chrono::hours(1));
  EXPECT_EQ(sender->next_timeout(), kNever);
  sender->expire(kStart + std::chrono::hours(2));
  EXPECT_FALSE(sender->next_repair(16));
  sender->left_late({Kind::Fresh, 0, 10}, kRto, kStart + kRto);
  sender->postpone(kRto);
  EXPECT_EQ(sender->next_timeout(), kStart + 3 * kRto);
}

}  // namespace
}  // namespace sdr::reliability

// What the peer's word on what had landed says of a path.
#include "reliability/flight_record.hpp"

#include <gtest/gtest.h>

namespace sdr::reliability {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr std::uint64_t kPacket = 1000;
constexpr TimePoint kStart{std::chrono::seconds(1)};

class FlightRecordTest : public ::testing::Test {
 protected:
  // An offer at `ms` behind so many packets.
  void offer(int ms, std::uint64_t packets) {
    record_.offered(to_stamp(kStart + milliseconds(ms)), packets, packets * kPacket, {}, false);
  }
  // The answer to the offer of `ms`, that `landed` packets had landed; here 20 ms later, on another clock.
  auto answer(int ms, std::uint64_t landed, Duration queued = Duration::zero()) {
    return record_.landed(
        {.echo = to_stamp(kStart + milliseconds(ms)),
         .landed = landed,
         .arrival = 777'000'000 + static_cast<std::uint64_t>((milliseconds(ms + 10) + queued) / Duration(1))},
        kStart + milliseconds(ms + 20) + queued);
  }
  FlightRecord record_;
};

TEST_F(FlightRecordTest, WhatIsAnswered_IsNoLongerInFlight) {
  offer(0, 10);
  offer(5, 30);
  EXPECT_EQ(record_.in_flight(40 * kPacket), 40 * kPacket);
  const auto sample = answer(0, 10);
  ASSERT_TRUE(sample);
  EXPECT_EQ(sample->delivered, 10 * kPacket);
  EXPECT_EQ(sample->rtt, Duration(milliseconds(20)));
  EXPECT_EQ(record_.in_flight(40 * kPacket), 30 * kPacket);
}

TEST_F(FlightRecordTest, AnOldOrUnknownWord_SaysNothing) {
  offer(0, 10);
  offer(5, 30);
  EXPECT_TRUE(answer(5, 30));
  EXPECT_FALSE(answer(0, 10)) << "overtaken";
  EXPECT_FALSE(answer(5, 30)) << "twice";
  EXPECT_FALSE(answer(7, 30)) << "never asked";
}

TEST_F(FlightRecordTest, ARate_IsOfTheLastRoundTrip_ByThePeersClock) {
  for (int ms = 0; ms <= 40; ms += 5) {
    offer(ms, static_cast<std::uint64_t>(ms) * 10);
    if (ms >= 20) {
      const auto sample = answer(ms - 20, static_cast<std::uint64_t>(ms - 20) * 10);
      if (ms < 25) continue;
      ASSERT_TRUE(sample);
      EXPECT_EQ(sample->apart_there, Duration(milliseconds(5)));
      EXPECT_EQ(sample->sent, 50 * kPacket);
    }
  }
  const auto sample = answer(40, 400, milliseconds(10));
  ASSERT_TRUE(sample);
  EXPECT_EQ(sample->sent_in, Duration(milliseconds(25))) << "since the offer that was answered when this one went out";
  EXPECT_EQ(sample->landed_in, Duration(milliseconds(35))) << "it waited";
}

TEST_F(FlightRecordTest, DataThatAnOfferOvertakes_IsNotLost) {
  for (int ms = 0; ms < 10; ++ms) offer(ms, static_cast<std::uint64_t>(ms + 1) * 10);
  std::uint64_t lost = 0;
  for (int ms = 0; ms < 10; ++ms) {
    // Every other offer is read before the last five packets in front of it are.
    const std::uint64_t behind = ms % 2 == 0 ? 5 : 0;
    const auto sample = answer(ms, static_cast<std::uint64_t>(ms + 1) * 10 - behind);
    ASSERT_TRUE(sample);
    lost += sample->packets_lost;
  }
  EXPECT_EQ(lost, 0U);
}

TEST_F(FlightRecordTest, WhatStaysMissing_IsLost_Once) {
  for (int ms = 0; ms < 10; ++ms) offer(ms, static_cast<std::uint64_t>(ms + 1) * 10);
  std::uint64_t lost = 0;
  for (int ms = 0; ms < 10; ++ms) {
    const std::uint64_t missing = ms >= 3 ? 7 : 0;
    const auto sample = answer(ms, static_cast<std::uint64_t>(ms + 1) * 10 - missing);
    ASSERT_TRUE(sample);
    lost += sample->packets_lost;
  }
  EXPECT_EQ(lost, 7U);
}

TEST_F(FlightRecordTest, AnAnswerThatWasHeld_IsNoRttSample) {
  offer(0, 10);
  const auto sample = record_.landed({.echo = to_stamp(kStart), .landed = 10, .arrival = 1, .held = microseconds(300)},
                                     kStart + milliseconds(20));
  ASSERT_TRUE(sample);
  EXPECT_EQ(sample->rtt, Duration::zero());
}

}  // namespace
}  // namespace sdr::reliability

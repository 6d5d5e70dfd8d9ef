// Connections that are not told the rate of their path.
#include <gtest/gtest.h>

#include "tests/reliability/pair.hpp"

namespace sdr {
namespace {

using namespace testing;
using std::chrono::seconds;

ConnectionOptions options() {
  ConnectionOptions options;
  options.queue_pair.mtu = Bytes{1456};
  options.queue_pair.max_message = 16_MiB;
  return options;
}

transport::SimulatedOptions path(const std::string& link) {
  return {.link = simulation::LinkSpec::parse(link).value(), .carry_payload = false};
}

// One Write from A to B; how long it took.
Duration write(ConnectionPair& pair, std::uint64_t bytes) {
  EXPECT_TRUE(pair.get_ready());
  std::vector<std::byte> data(bytes);
  EXPECT_TRUE(pair.b().post_receive(data));
  EXPECT_TRUE(pair.get_quiet());
  const TimePoint begin = pair.now();
  EXPECT_TRUE(pair.a().post_write(data));
  EXPECT_TRUE(pair.run_until([&] { return pair.a().poll_write().has_value(); }, seconds(200)));
  return pair.now() - begin;
}

double seconds_of(Duration d) {
  return static_cast<double>(d.count()) * 1e-9;
}

TEST(FoundRate, AWrite_TakesLittleLongerThanIfTheRateWereKnown) {
  for (const char* link : {"rtt=20ms,rate=100Mbit,queue=20ms", "rtt=50ms,rate=2Mbit,queue=100ms",
                           "rtt=50ms,rate=1Gbit,queue=50ms,loss=1e-3", "rtt=1ms,rate=10Mbit,queue=20ms"}) {
    SCOPED_TRACE(link);
    ConnectionPair pair(path(link), options());
    const double rate = simulation::LinkSpec::parse(link).value().rate.bits_per_second;
    const double length = rate > 1e8 ? 1 : 3;  // seconds at that rate
    const auto bytes = static_cast<std::uint64_t>(rate * length / 8);
    const Duration took = write(pair, bytes);
    EXPECT_LT(seconds_of(took), length * 1500.0 / 1456 / 0.9 + 1);
    const RateStatus status = pair.a().statistics().rate;
    EXPECT_EQ(status.controller, RateMode::Model);
    EXPECT_NEAR(status.bandwidth.bits_per_second, rate, 0.1 * rate);
    EXPECT_GT(status.window, 0U);
  }
}

TEST(FoundRate, AGivenRate_IsKept_AndNothingElseIsAsked) {
  ConnectionOptions own = options();
  own.queue_pair.rate = {5e7};
  ConnectionPair pair(path("rtt=20ms,rate=100Mbit,queue=20ms"), own);
  write(pair, 4 << 20);
  const ConnectionStatistics statistics = pair.a().statistics();
  EXPECT_EQ(statistics.rate.controller, RateMode::Fixed);
  EXPECT_EQ(statistics.rate.pace, Bandwidth{5e7});
}

TEST(FoundRate, TheMost_IsNotExceeded_GivenOrFound) {
  for (const RateMode mode : {RateMode::Fixed, RateMode::Model, RateMode::Background}) {
    SCOPED_TRACE(to_string(mode));
    ConnectionOptions own = options();
    own.rate_mode = mode;
    own.max_rate = {2e7};
    ConnectionPair pair(path("rtt=20ms,rate=100Mbit,queue=20ms"), own);
    EXPECT_GT(seconds_of(write(pair, 5'000'000)), 2.0);
    EXPECT_LE(pair.a().statistics().rate.pace, Bandwidth{2.001e7});
  }
}

TEST(FoundRate, WhatOurOwnOvershootLoses_IsNotTakenForThePathsLoss) {
  ConnectionPair pair(path("rtt=20ms,rate=100Mbit,queue=2ms"), options());
  write(pair, 50'000'000);
  const ConnectionStatistics statistics = pair.a().statistics();
  EXPECT_GT(statistics.rate.packets_lost_congestion, 50U) << "start-up has overrun so short a queue";
  EXPECT_LT(pair.a().link().loss, 2e-3);
}

TEST(FoundRate, AControllerThatIsGiven_IsUsed_AndKeepsWhatItFound) {
  ConnectionOptions own = options();
  own.path_rate = std::make_shared<PathRate>(PathRate::Options{});
  {
    ConnectionPair pair(path("rtt=20ms,rate=100Mbit,queue=20ms"), own);
    write(pair, 20'000'000);
  }
  const RateStatus status = own.path_rate->status();
  EXPECT_NEAR(status.bandwidth.bits_per_second, 1e8, 1e7);
  EXPECT_EQ(status.in_flight, 0U) << "of connections that are gone";
}

TEST(FoundRate, ModesByName_ComeBack_AndOthersAreNamed) {
  for (const RateMode mode : {RateMode::Automatic, RateMode::Fixed, RateMode::Model, RateMode::Background})
    EXPECT_EQ(parse_rate_mode(to_string(mode)).value(), mode);
  const auto wrong = parse_rate_mode("bbr");
  ASSERT_FALSE(wrong);
  EXPECT_NE(wrong.error().message.find("\"bbr\""), std::string::npos);
  EXPECT_NE(wrong.error().message.find("background"), std::string::npos);
}

}  // namespace
}  // namespace sdr

// What Connection refuses, by name and value.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "tests/reliability/pair.hpp"

namespace sdr::testing {
namespace {

struct Ends {
  static Result<std::unique_ptr<Connection>> make(transport::SimulatedNetwork& network, Site site,
                                                  ConnectionOptions options) {
    options.queue_pair.token = site == Site::A ? 1 : 2;
    return Connection::create(DevicePtr(&network.device(site), [](transport::Device*) {}), options);
  }
  transport::SimulatedNetwork network{{.link = simulation::LinkSpec::parse("rtt=2ms").value()}};
};

TEST(ConnectionOptions, OutsideTheirLimits_AreRefusedWithTheValue) {
  const std::vector<std::pair<std::string, std::function<void(ConnectionOptions&)>>> cases{
      {"77", [](auto& o) { o.scheme = static_cast<Scheme>(77); }},
      {"0 is none of the schemes", [](auto& o) { o.scheme = static_cast<Scheme>(0); }},
      {"99", [](auto& o) { o.rate_mode = static_cast<RateMode>(99); }},
      {"nan", [](auto& o) { o.rto_factor = std::nan(""); }},
      {"inf", [](auto& o) { o.rto_factor = HUGE_VAL; }},
      {"0.5", [](auto& o) { o.rto_factor = 0.5; }},
      {"nan", [](auto& o) { o.reorder_tolerance = std::nan(""); }},
      {"1.5", [](auto& o) { o.reorder_tolerance = 1.5; }},
      {"nan", [](auto& o) { o.repair_target = std::nan(""); }},
      {"nan", [](auto& o) { o.max_overhead = std::nan(""); }},
      {"0 ns", [](auto& o) { o.queue_pair.initial_rtt = Duration(0); }},
      {"-5 ns", [](auto& o) { o.queue_pair.initial_rtt = Duration(-5); }},
      {"peer timeout", [](auto& o) { o.peer_timeout = Duration(0); }},
      {"max_outstanding", [](auto& o) { o.max_outstanding = 0; }},
  };
  Ends ends;
  for (const auto& [value, change] : cases) {
    ConnectionOptions options;
    change(options);
    const auto made = Ends::make(ends.network, Site::A, options);
    ASSERT_FALSE(made.ok()) << value;
    EXPECT_EQ(made.error().code, ErrorCode::InvalidArgument);
    EXPECT_NE(made.error().message.find(value), std::string::npos) << value << " in: " << made.error().message;
  }
}

TEST(ConnectionOptions, WithoutADevice_AreRefused) {
  for (const auto& error : {Connection::create(nullptr, {}).error(), QueuePair::create(nullptr, {}).error()}) {
    EXPECT_EQ(error.code, ErrorCode::InvalidArgument);
    EXPECT_NE(error.message.find("no device"), std::string::npos) << error.message;
  }
}

TEST(Posting, BytesAtANullAddress_AreRefusedWithTheirNumber) {
  Ends ends;
  auto a = Ends::make(ends.network, Site::A, {}).value();
  const std::span<std::byte> nowhere(static_cast<std::byte*>(nullptr), 100);
  EXPECT_NE(a->post_write(nowhere).error().message.find("100 bytes"), std::string::npos);
  EXPECT_NE(a->post_receive(nowhere).error().message.find("100 bytes"), std::string::npos);
  EXPECT_TRUE(a->post_write(nowhere.first(0)));
}

TEST(Connecting, ASecondTime_IsRefused) {
  Ends ends;
  auto a = Ends::make(ends.network, Site::A, {}).value();
  auto b = Ends::make(ends.network, Site::B, {}).value();
  ASSERT_TRUE(a->connect(b->info()));
  const Result<void> again = a->connect(b->info());
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, ErrorCode::InvalidArgument);
  EXPECT_NE(again.error().message.find("connected already"), std::string::npos);
}

}  // namespace
}  // namespace sdr::testing

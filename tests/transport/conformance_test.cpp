// The contract of transport.hpp, in tests: what holds on every network that registered itself (conformance.hpp).
#include "conformance_suite.hpp"

namespace sdr::transport::conformance {
namespace {

// GoogleTest reads the registry when it expands the suites, which is after all registrations.
INSTANTIATE_TEST_SUITE_P(, TransportConformance, testing::ValuesIn(network_factories()), network_name);

TEST_P(TransportConformance, Facts_AreWithinTheContract) {
  const EndpointFacts& facts = b().facts();
  EXPECT_LE(facts.aim_size, Aim::kCapacity);
  EXPECT_GE(facts.max_control, 512);
  EXPECT_FALSE(b().peer_name().empty());
  EXPECT_FALSE(network_->device().name().empty());
  const auto payload = network_->device().max_payload("");
  ASSERT_TRUE(payload.ok()) << payload.error().message;
  EXPECT_EQ(*payload % 8, 0);
  EXPECT_GE(*payload, 64);
}

TEST_P(TransportConformance, Write_OfNothing_TakesNothing) {
  EXPECT_EQ(a().write({}, network_->now()), 0U);
}

TEST_P(TransportConformance, ControlDatagram_BeyondTheLimit_IsRefused) {
  const auto datagram = pattern(a().facts().max_control + 1U, 1);
  EXPECT_FALSE(a().send_control(datagram, network_->now()));
}

TEST_P(TransportConformance, Poll_WithNothingWaiting_ReturnsZero) {
  std::array<Completion, Endpoint::kPollBatch> batch;
  for (std::uint8_t c = 0; c < options_.channels; ++c) {
    EXPECT_EQ(b().poll(ChannelIndex(c), batch, network_->now()), 0U);
  }
  std::vector<std::byte> into(b().facts().max_control);
  EXPECT_FALSE(b().receive_control(into, network_->now()).has_value());
}

TEST_P(TransportConformance, Connect_WithGarbageInfo_IsAnErrorThatSaysSo) {
  auto made = network_->device().create_endpoint(default_options());
  ASSERT_TRUE(made.ok()) << made.error().message;
  Endpoint& endpoint = **made;
  const auto good = a().info();
  std::vector<std::vector<std::byte>> garbage{{}, {std::byte{0}}, pattern(5, 1), pattern(200, 1)};
  for (std::size_t length = 0; length < good.size(); ++length)
    garbage.emplace_back(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(length));
  garbage.push_back(good);
  garbage.back().push_back(std::byte{0});
  for (const auto& info : garbage) {
    const auto connected = endpoint.connect(info);
    ASSERT_FALSE(connected.ok()) << "info of " << info.size() << " bytes was taken";
    EXPECT_FALSE(connected.error().message.empty());
  }
}

TEST_P(TransportConformance, CreateEndpoint_WithOptionsBeyondTheLimits_IsInvalidArgument) {
  const auto refused = [&](auto change) {
    EndpointOptions options = default_options();
    change(options);
    const auto made = network_->device().create_endpoint(options);
    return !made.ok() && made.error().code == ErrorCode::InvalidArgument && !made.error().message.empty();
  };
  EXPECT_TRUE(refused([](auto& o) { o.payload = 0; }));
  EXPECT_TRUE(refused([](auto& o) { o.payload = 63; }));
  EXPECT_TRUE(refused([](auto& o) { o.payload = 1025; }));
  EXPECT_TRUE(refused([](auto& o) { o.slots = 0; }));
  EXPECT_TRUE(refused([](auto& o) { o.slots = o.layout.max_slots() + 1; }));
  EXPECT_TRUE(refused([](auto& o) { o.channels = 0; }));
  EXPECT_TRUE(refused([](auto& o) { o.generations = 1; }));
  EXPECT_TRUE(refused([](auto& o) { o.layout.user_bits = 3; }));
}

}  // namespace
}  // namespace sdr::transport::conformance

// What statistics() says of lost packets, beside what the path took.
#include <gtest/gtest.h>

#include "tests/reliability/traffic.hpp"

namespace sdr::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class PacketsLost : public ::testing::TestWithParam<Scheme> {};

TEST_P(PacketsLost, OfWritesOneByOne_AreThoseThatThePathTook) {
  const std::uint64_t seed = test_seed(7);
  SCOPED_TRACE(seed_trace(seed));
  transport::SimulatedOptions network;
  network.link.rtt = milliseconds(20);
  network.link.rate = {4e8};
  network.link.queue = seconds(1);
  ConnectionOptions options;
  options.scheme = GetParam();
  options.queue_pair.mtu = {1456};
  options.queue_pair.rate = network.link.rate;
  ConnectionPair pair(network, options);
  ASSERT_TRUE(pair.get_ready());
  std::mt19937_64 random(seed);
  std::uint64_t taken = 0;
  pair.network().set_filter(Site::A, [&](const PacketView& view) {
    if (view.kind != PacketView::Kind::Data || random() % 100 != 0) return Verdict::Pass;
    ++taken;
    return Verdict::Drop;
  });
  Traffic traffic(pair, Site::A, std::vector<Message>(8, Message{.size = 1 << 20, .capacity = 1 << 20}), 1);
  ASSERT_TRUE(pair.run_until([&] { return traffic.step(); }, seconds(60))) << traffic.progress();
  ASSERT_EQ(traffic.problem(), "");
  ASSERT_TRUE(pair.get_quiet());
  const ConnectionStatistics statistics = pair.a().statistics();
  ASSERT_GT(taken, 40U);
  // The peer's last word was on what had been sent before the last offers it answered.
  EXPECT_NEAR(static_cast<double>(statistics.packets_lost), static_cast<double>(taken),
              0.2 * static_cast<double>(taken));
}

INSTANTIATE_TEST_SUITE_P(Schemes, PacketsLost, ::testing::ValuesIn(kAllSchemes),
                         [](const auto& scheme) { return identifier(scheme.param); });

}  // namespace
}  // namespace sdr::testing

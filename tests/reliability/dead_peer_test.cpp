// Peers that die, paths that go dark, ends that stall: an error in bounded time, or patience without a storm.
#include <gtest/gtest.h>

#include "tests/reliability/traffic.hpp"

namespace sdr::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::uint64_t kLarge = 16 << 20;

transport::SimulatedOptions long_path() {
  transport::SimulatedOptions network;
  network.link = simulation::LinkSpec::parse("rtt=25ms,rate=1Gbit,queue=50ms,loss=1e-4,seed=3").value();
  return network;
}

ConnectionOptions options_for(Scheme scheme) {
  ConnectionOptions options;
  options.scheme = scheme;
  options.queue_pair.mtu = {1456};
  options.queue_pair.max_message = 1_MiB;
  options.queue_pair.rate = {1e9};
  options.peer_timeout = seconds(3);
  return options;
}

class DeadPeer : public ::testing::TestWithParam<Scheme> {
 protected:
  DeadPeer() : pair_(long_path(), options_for(GetParam())), data_(random_bytes(kLarge, 1)), buffer_(kLarge) {
    pair_.set_step(std::chrono::microseconds(20));
    EXPECT_TRUE(pair_.get_ready());
  }
  // A large Write from `from`, a third of it on its way.
  void begin_write(Site from) {
    ASSERT_TRUE(pair_.at(other(from)).post_receive(buffer_));
    ASSERT_TRUE(pair_.at(from).post_write(data_));
    pair_.run_for(milliseconds(60));
  }
  void expect_told(const Error& error, const Connection& end, const std::string& how_far) {
    EXPECT_EQ(error.code, ErrorCode::PeerUnreachable);
    EXPECT_NE(error.message.find(end.peer_name()), std::string::npos) << error.message;
    EXPECT_NE(error.message.find("3.00 s"), std::string::npos) << error.message;
    EXPECT_NE(error.message.find(how_far), std::string::npos) << error.message;
  }
  // Passes everything until dark() says otherwise.
  void watch(Site from) {
    pair_.network().set_filter(from, [this, from](const PacketView& view) {
      (view.kind == PacketView::Kind::Data ? data_packets_ : controls_)[static_cast<std::size_t>(from)] += 1;
      return dark_ ? Verdict::Drop : Verdict::Pass;
    });
  }

  ConnectionPair pair_;
  std::vector<std::byte> data_;
  std::vector<std::byte> buffer_;
  bool dark_ = false;
  std::array<std::uint64_t, 2> data_packets_{};
  std::array<std::uint64_t, 2> controls_{};
};

TEST_P(DeadPeer, EndsWritesAndReceives_WithinTheTimeout_AndSaysWhoAndHowFar) {
  begin_write(Site::A);
  std::vector<std::byte> unused(100);
  ASSERT_TRUE(pair_.a().post_receive(unused));
  pair_.kill_b();
  const TimePoint died = pair_.now();
  const Connection& a = pair_.a();
  ASSERT_TRUE(pair_.run_until([&] { return a.failure().has_value(); }, seconds(10)));
  EXPECT_LE(pair_.now() - died, seconds(3) + milliseconds(100));
  EXPECT_GE(pair_.now() - died, seconds(3) - milliseconds(1));
  const auto write = pair_.a().poll_write();
  const auto receive = pair_.a().poll_receive();
  ASSERT_TRUE(write && write->error);
  ASSERT_TRUE(receive && receive->error);
  expect_told(*write->error, a, "of " + std::to_string(kLarge) + " bytes written");
  EXPECT_EQ(receive->error->code, ErrorCode::PeerUnreachable);
  EXPECT_FALSE(pair_.a().poll_write());
  EXPECT_FALSE(pair_.a().poll_receive());
  const auto after = pair_.a().post_write(data_);
  ASSERT_FALSE(after);
  EXPECT_EQ(after.error().code, ErrorCode::Closed);
}

TEST_P(DeadPeer, ReceiverWhoseSenderDies_FailsLikewise) {
  begin_write(Site::B);
  pair_.kill_b();
  const TimePoint died = pair_.now();
  const Connection& a = pair_.a();
  ASSERT_TRUE(pair_.run_until([&] { return a.failure().has_value(); }, seconds(10)));
  EXPECT_LE(pair_.now() - died, seconds(3) + milliseconds(100));
  const auto receive = pair_.a().poll_receive();
  ASSERT_TRUE(receive && receive->error);
  expect_told(*receive->error, a, "of " + std::to_string(kLarge) + " bytes to receive");
}

// Between two transfers of one Write nothing is offered, and still it is under way.
TEST_P(DeadPeer, ReceiverBetweenTwoTransfers_FailsLikewise) {
  ASSERT_TRUE(pair_.a().post_receive(buffer_));
  ASSERT_TRUE(pair_.b().post_write(data_));
  const Connection& a = pair_.a();
  for (int i = 0; i < 7; ++i) pair_.run_for(milliseconds(11));
  ASSERT_GT(a.bytes_landed(), 0U);
  ASSERT_LT(a.bytes_landed(), kLarge);
  pair_.kill_b();
  EXPECT_TRUE(pair_.run_until([&] { return a.failure().has_value(); }, seconds(4)));
}

TEST_P(DeadPeer, OfAnIdleConnection_IsNoError) {
  pair_.run_for(seconds(1));
  pair_.kill_b();
  pair_.run_for(seconds(60));
  EXPECT_FALSE(pair_.a().failure());
}

TEST_P(DeadPeer, OfUnusedReceives_IsNoError) {
  std::vector<std::byte> unused(100);
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(pair_.a().post_receive(unused));
  pair_.run_for(seconds(1));
  pair_.kill_b();
  pair_.run_for(seconds(60));
  EXPECT_FALSE(pair_.a().failure());
}

// The peer lives, but has posted nothing: that is no silence, however long it takes.
TEST_P(DeadPeer, WriteWithoutReceive_WaitsAsLongAsThePeerLives_AndThenGoesAtOnce) {
  const auto small = std::span(data_).first(100'000);
  ASSERT_TRUE(pair_.a().post_write(small));
  pair_.run_for(seconds(20) + milliseconds(123));
  ASSERT_FALSE(pair_.a().failure());
  ASSERT_TRUE(pair_.b().post_receive(buffer_));
  const TimePoint posted = pair_.now();
  ASSERT_TRUE(pair_.run_until([&] { return pair_.b().poll_receive().has_value(); }, seconds(5)));
  EXPECT_LE(pair_.now() - posted, milliseconds(110));  // CTS, data, perhaps a repair
}

TEST_P(DeadPeer, PathDarkForLessThanTheTimeout_IsSurvived_WithoutAStorm) {
  watch(Site::A);
  watch(Site::B);
  begin_write(Site::A);
  dark_ = true;
  const auto sent_before = data_packets_;
  const auto controls_before = controls_;
  pair_.run_for(milliseconds(2500));
  dark_ = false;
  // What was sent until the silence was noticed (four RTTs at least) and not one packet more.
  const double window = 1e9 / 8 / 1500 * 0.025;
  EXPECT_LE(static_cast<double>(data_packets_[0] - sent_before[0]), 6.5 * window);
  EXPECT_LE(controls_[0] - controls_before[0], 150U);
  EXPECT_LE(controls_[1] - controls_before[1], 150U);
  const std::uint64_t lost = data_packets_[0] - sent_before[0];
  const auto sent_then = data_packets_[0];
  std::optional<WriteCompletion> write;
  ASSERT_TRUE(pair_.run_until([&] { return (write = pair_.a().poll_write()).has_value(); }, seconds(5)));
  ASSERT_FALSE(write->error) << write->error->message;
  EXPECT_EQ(buffer_, data_);
  // Each packet lost in the dark is repeated about once.
  const std::uint64_t all = kLarge / 1456 + 1;
  const double parity = GetParam() == Scheme::EcRs || GetParam() == Scheme::EcXor ? 1.25 : 1;
  EXPECT_LE(static_cast<double>(data_packets_[0] - sent_then),
            parity * static_cast<double>(all) + 1.3 * static_cast<double>(lost) + 200);
}

TEST_P(DeadPeer, StalledReceiver_LooksLikeADelay) {
  for (const auto stall : {milliseconds(50), milliseconds(400), milliseconds(2000)}) {
    SCOPED_TRACE(stall.count());
    begin_write(Site::A);
    const auto before = pair_.a().statistics();
    pair_.stop(Site::B);
    pair_.run_for(stall);
    pair_.resume(Site::B);
    ASSERT_TRUE(pair_.run_until([&] { return pair_.a().poll_write().has_value(); }, seconds(5)));
    ASSERT_TRUE(pair_.run_until([&] { return pair_.b().poll_receive().has_value(); }, seconds(1)));
    const auto after = pair_.a().statistics();
    // Selective repeat by timeout alone cannot tell a stall longer than its timeout from loss; at most once over.
    const std::uint64_t repeated = after.chunks_retransmitted - before.chunks_retransmitted;
    EXPECT_LE(repeated, GetParam() == Scheme::SrRto && stall > milliseconds(60) ? 10'500U : 60U);
    EXPECT_EQ(buffer_, data_);
    std::fill(buffer_.begin(), buffer_.end(), std::byte{0});
  }
}

TEST_P(DeadPeer, StalledSender_LooksLikeADelay) {
  for (const auto stall : {milliseconds(50), milliseconds(400), milliseconds(2000), milliseconds(20'000)}) {
    SCOPED_TRACE(stall.count());
    begin_write(Site::A);
    const auto before = pair_.a().statistics();
    if (stall > seconds(3)) pair_.stop(Site::B);  // both away: the machine slept
    pair_.stop(Site::A);
    pair_.run_for(stall);
    pair_.resume(Site::A);
    pair_.resume(Site::B);
    ASSERT_TRUE(pair_.run_until([&] { return pair_.a().poll_write().has_value(); }, seconds(5)));
    ASSERT_TRUE(pair_.run_until([&] { return pair_.b().poll_receive().has_value(); }, seconds(1)));
    EXPECT_LE(pair_.a().statistics().chunks_retransmitted - before.chunks_retransmitted, 60U);
    EXPECT_EQ(buffer_, data_);
    std::fill(buffer_.begin(), buffer_.end(), std::byte{0});
  }
}

INSTANTIATE_TEST_SUITE_P(Schemes, DeadPeer, ::testing::ValuesIn(kAllSchemes),
                         [](const auto& test) { return identifier(test.param); });

class BlackHole : public ::testing::TestWithParam<std::tuple<Scheme, int>> {};

// Below the largest control datagram the padded ping shows it, above it the data that never lands.
TEST_P(BlackHole, IsAnErrorAboutTheMtu) {
  const auto [scheme, mtu] = GetParam();
  ConnectionOptions options = options_for(scheme);
  options.queue_pair.mtu = {static_cast<std::uint64_t>(mtu)};
  ConnectionPair pair(long_path(), options);
  for (const Site from : {Site::A, Site::B})
    pair.network().set_filter(from, [mtu = static_cast<std::uint16_t>(mtu)](const PacketView& view) {
      return view.length >= mtu ? Verdict::Drop : Verdict::Pass;
    });
  const auto data = random_bytes(1'000'000, 1);
  std::vector<std::byte> buffer(data.size());
  ASSERT_TRUE(pair.b().post_receive(buffer));
  ASSERT_TRUE(pair.a().post_write(data));
  const Connection& a = pair.a();
  ASSERT_TRUE(pair.run_until([&] { return a.failure().has_value(); }, seconds(10)));
  EXPECT_EQ(a.failure()->code, ErrorCode::PeerUnreachable);
  EXPECT_NE(a.failure()->message.find("MTU"), std::string::npos) << a.failure()->message;
  EXPECT_NE(a.failure()->message.find(std::to_string(mtu)), std::string::npos) << a.failure()->message;
}

// The route changes while the connection is in use.
TEST_P(BlackHole, ThatOpensLater_IsAnErrorAboutTheMtu) {
  const auto [scheme, mtu] = GetParam();
  ConnectionOptions options = options_for(scheme);
  options.queue_pair.mtu = {static_cast<std::uint64_t>(mtu)};
  ConnectionPair pair(long_path(), options);
  const auto data = random_bytes(kLarge, 1);
  std::vector<std::byte> buffer(data.size());
  ASSERT_TRUE(pair.b().post_receive(buffer));
  ASSERT_TRUE(pair.a().post_write(data));
  pair.run_for(milliseconds(80));
  pair.network().set_filter(Site::A, [mtu = static_cast<std::uint16_t>(mtu)](const PacketView& view) {
    return view.length >= mtu ? Verdict::Drop : Verdict::Pass;
  });
  const Connection& a = pair.a();
  ASSERT_TRUE(pair.run_until([&] { return a.failure().has_value(); }, seconds(20)));
  EXPECT_NE(a.failure()->message.find("MTU"), std::string::npos) << a.failure()->message;
}

INSTANTIATE_TEST_SUITE_P(Schemes, BlackHole,
                         ::testing::Combine(::testing::ValuesIn(kAllSchemes), ::testing::Values(1024, 1456)),
                         [](const auto& test) {
                           return identifier(std::get<0>(test.param)) + "_" + std::to_string(std::get<1>(test.param));
                         });

}  // namespace
}  // namespace sdr::testing

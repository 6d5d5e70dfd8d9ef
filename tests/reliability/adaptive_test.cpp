// The adaptive scheme between two ends: what is coded, what goes again and how often, what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "reliability/adaptive_tail.hpp"
#include "reliability/control_message.hpp"
#include "tests/reliability/pair.hpp"
#include "tests/reliability/traffic.hpp"

namespace sdr::testing {
namespace {

using reliability::AdaptiveTail;
using reliability::CodingLayout;
using reliability::Timing;
using reliability::TransferShape;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;

transport::SimulatedOptions path(std::string_view text) {
  transport::SimulatedOptions network;
  network.link = simulation::LinkSpec::parse(text).value();
  return network;
}

ConnectionOptions options(double rate = 1e9) {
  ConnectionOptions options;
  options.scheme = Scheme::Adaptive;
  options.queue_pair.mtu = {1024};
  options.queue_pair.rate = {rate};
  return options;
}

// --- what is coded ---

class Tail : public ::testing::Test {
 protected:
  Tail() {
    shape_.rules = {Scheme::Adaptive};
    shape_.chunk_bytes = 1000;
    shape_.packets_per_chunk = 1;
    shape_.transfer_bytes = 1'000'000'000;
    timing_.rtt.sample(milliseconds(16));  // at 1 GB/s 16,000 chunks; what is exposed is 19/16 of it
  }
  CodingLayout layout(std::uint64_t bytes, std::uint64_t offset, std::uint64_t write, bool alone = true) {
    tail_.assume(link_, {8e9}, timing_);
    return tail_.layout(shape_, bytes, offset, write, alone);
  }
  static constexpr std::uint32_t kExposed = 19'000;

  AdaptiveTail tail_;
  TransferShape shape_;
  Timing timing_{.rtt = reliability::RttEstimator(milliseconds(1))};
  LinkEstimate link_{.loss = 1e-3, .loss_upper = 1e-3};
};

TEST_F(Tail, OfAShortWrite_IsAllOfIt) {
  EXPECT_EQ(layout(5'000'000, 0, 5'000'000).first, 0U);
  EXPECT_GT(layout(5'000'000, 0, 5'000'000).parity_each, 0U);
  EXPECT_EQ(layout(kExposed * 1000ULL, 0, kExposed * 1000ULL).first, 0U);
}

TEST_F(Tail, OfALongWrite_IsWhatARoundTripCarries) {
  const CodingLayout one = layout(100'000'000, 0, 100'000'000);
  EXPECT_EQ(one.first, 100'000 - kExposed);
  EXPECT_EQ(one.coded, kExposed);
  EXPECT_EQ(layout(100'000'000, 0, 200'000'000).parity_chunks(), 0U) << "the tail is in the next transfer";
  EXPECT_EQ(layout(100'000'000, 0, 105'000'000).coded, kExposed - 5000) << "and partly in this one";
  EXPECT_EQ(layout(5'000'000, 100'000'000, 105'000'000).coded, 5000U);
}

TEST_F(Tail, OfManyTransfers_ShareOneTarget) {
  link_.loss_upper = 1e-2;
  const CodingLayout alone = layout(2'000'000, 0, 2'000'000);
  const CodingLayout part = layout(2'000'000, 0, 19'000'000);
  EXPECT_GE(part.parity_each, alone.parity_each);
}

TEST_F(Tail, OnAPathThatLosesNothing_IsNotCoded) {
  link_ = {};
  EXPECT_EQ(layout(5'000'000, 0, 5'000'000).parity_chunks(), 0U);
}

TEST_F(Tail, KeepsToItsBudget) {
  link_.loss_upper = 0.2;
  const auto parity = [this](bool alone) { return layout(1'000'000, 0, 1'000'000, alone).parity_chunks(); };
  EXPECT_GT(parity(true), 400U);
  EXPECT_LE(parity(false), 250U) << "other Writes wait";
  shape_.max_overhead = 0.1;
  EXPECT_LE(parity(true), 100U);
  EXPECT_LE(parity(false), 100U);
  EXPECT_LE(layout(3'000, 0, 3'000).parity_chunks(), 8U);
  EXPECT_GE(layout(3'000, 0, 3'000).parity_chunks(), 7U) << "a few copies always";
}

TEST_F(Tail, OfManyPacketsAChunk_TakesTheirLossTogether) {
  const std::uint32_t one = layout(5'000'000, 0, 5'000'000).parity_each;
  shape_.packets_per_chunk = 16;
  EXPECT_GT(layout(5'000'000, 0, 5'000'000).parity_each, 2 * one);
}

TEST_F(Tail, Covering_IsForWhatTheRoundTripExposes) {
  link_.loss_upper = 1e-2;
  tail_.assume(link_, {8e9}, timing_);
  EXPECT_EQ(tail_.covering(shape_, 100'000'000, 100'000, 0).copies, 0U) << "its loss is known in time";
  const auto few = tail_.covering(shape_, 0, 10, 0);
  const auto many = tail_.covering(shape_, 0, 10'000, 0);
  EXPECT_EQ(few.copies, 2U);
  EXPECT_GT(many.copies, few.copies);
  EXPECT_GT(tail_.covering(shape_, 0, 10'000, 0.2).copies, many.copies) << "more is lost than was believed";
  EXPECT_EQ(many.spacing, Duration::zero());
  link_.burst = 10;
  tail_.assume(link_, {8e9}, timing_);
  EXPECT_GE(tail_.covering(shape_, 0, 10, 0).spacing, std::chrono::microseconds(40));
}

// --- between two ends ---

TEST(Adaptive, ALossInTheTail_CostsNoRoundTrip) {
  ConnectionPair pair(path("rtt=20ms,rate=1Gbit,queue=100ms"), options());
  ASSERT_TRUE(pair.get_ready());
  const auto data = random_bytes(100'000, 1);
  std::vector<std::byte> buffer(data.size());
  int count = 0;
  pair.network().set_filter(Site::A, [&count](const PacketView& view) {
    return view.kind == PacketView::Kind::Data && ++count == 50 ? Verdict::Drop : Verdict::Pass;
  });
  ASSERT_TRUE(pair.b().post_receive(buffer));
  ASSERT_TRUE(pair.get_quiet());
  const TimePoint begin = pair.now();
  ASSERT_TRUE(pair.a().post_write(data));
  ASSERT_TRUE(pair.run_until([&] { return pair.a().poll_write().has_value(); }, seconds(5)));
  EXPECT_LT(pair.now() - begin, milliseconds(23));
  EXPECT_EQ(buffer, data);
  EXPECT_EQ(pair.b().statistics().chunks_recovered, 1U);
  EXPECT_EQ(pair.a().statistics().chunks_retransmitted, 0U);
}

TEST(Adaptive, TheOfferOrTheAcknowledgementLost_CostsLittle) {
  for (const Site site : {Site::A, Site::B}) {
    ConnectionPair pair(path("rtt=20ms,rate=1Gbit"), options());
    ASSERT_TRUE(pair.get_ready());
    const auto data = random_bytes(20'000, 2);
    std::vector<std::byte> buffer(data.size());
    ASSERT_TRUE(pair.b().post_receive(buffer));
    ASSERT_TRUE(pair.get_quiet());
    int dropped = 0;
    pair.network().set_filter(site, [&dropped](const PacketView& view) {
      return view.kind == PacketView::Kind::Control && ++dropped <= 2 ? Verdict::Drop : Verdict::Pass;
    });
    const TimePoint begin = pair.now();
    ASSERT_TRUE(pair.a().post_write(data));
    ASSERT_TRUE(pair.run_until([&] { return pair.a().poll_write().has_value(); }, seconds(5)));
    EXPECT_LT(pair.now() - begin, milliseconds(21));
    EXPECT_GE(dropped, 2);
  }
}

// The tail is all lost, and then some: repairs, their covers, and the end.
TEST(Adaptive, MoreLossThanParity_IsRepairedAllTheSame) {
  const std::uint64_t seed = test_seed(5);
  SCOPED_TRACE(seed_trace(seed));
  for (const char* loss : {"0.2", "0.4"}) {
    SCOPED_TRACE(loss);
    auto network = path(std::string("rtt=4ms,rate=1Gbit,queue=100ms,loss=") + loss);
    network.link.seed = seed;
    ConnectionPair pair(network, options());
    ASSERT_TRUE(pair.get_ready(seconds(300)));
    Traffic traffic(pair, Site::A, {{.size = 300'000, .capacity = 300'000}, {.size = 1, .capacity = 9}, {}});
    EXPECT_TRUE(pair.run_until([&] { return traffic.step(); }, seconds(120))) << traffic.progress();
    EXPECT_EQ(traffic.problem(), "");
    // An end that asks to be called at once, again and again, would be driven every nanosecond.
    EXPECT_LT(pair.drives(), 100'000U);
  }
}

TEST(Adaptive, ConnectionsToOnePeer_LearnFromOneAnother) {
  const auto link = std::make_shared<LinkEstimator>();
  ConnectionOptions shared = options();
  shared.link = link;
  const auto write = [&shared](std::string_view text) {
    ConnectionPair pair(path(text), shared);
    EXPECT_TRUE(pair.get_ready());
    const auto data = random_bytes(2'000'000, 3);
    std::vector<std::byte> buffer(data.size());
    EXPECT_TRUE(pair.b().post_receive(buffer));
    EXPECT_TRUE(pair.a().post_write(data));
    EXPECT_TRUE(pair.run_until([&] { return pair.a().poll_write().has_value(); }, seconds(20)));
    pair.run_for(milliseconds(100));
    return pair.a().statistics().parity_chunks_sent;
  };
  const std::uint64_t first = write("rtt=10ms,rate=1Gbit,queue=100ms,loss=0.05");
  EXPECT_NEAR(link->estimate().loss, 0.05, 0.02);
  EXPECT_GE(link->estimate().rtt_min, milliseconds(10));
  EXPECT_GT(write("rtt=10ms,rate=1Gbit,queue=100ms,loss=0.05"), first + first / 2);
}

TEST(Adaptive, OptionsOutOfRange_AreRefusedWithTheValue) {
  const DevicePtr device;  // looked at later than the options
  for (const double target : {0.0, 1.0, -1.0}) {
    ConnectionOptions bad = options();
    bad.repair_target = target;
    EXPECT_THAT(Connection::create(device, bad).error().message, HasSubstr("repair target"));
  }
  ConnectionOptions bad = options();
  bad.max_overhead = 1.5;
  EXPECT_THAT(Connection::create(device, bad).error().message, HasSubstr("1.5"));
}

// A chunk with a hole is repaired by the packets that it lacks.
TEST(ConnectionRepairs, OfChunksOfManyPackets_AreThePacketsThatWereLost) {
  for (const Scheme scheme : {Scheme::SrNack, Scheme::SrRto, Scheme::Adaptive}) {
    SCOPED_TRACE(to_string(scheme));
    ConnectionOptions with = options();
    with.scheme = scheme;
    with.queue_pair.packets_per_chunk = 16;
    with.max_overhead = 0;  // no parity: repairs alone
    ConnectionPair pair(path("rtt=4ms,rate=2Gbit,loss=0.01,queue=50ms"), with);
    pair.set_step(std::chrono::microseconds(50));
    constexpr std::uint64_t kPackets = 20'000;
    Traffic traffic(pair, Site::A, {{.size = kPackets * 1024 - 300, .capacity = kPackets * 1024}});
    ASSERT_TRUE(pair.run_until([&] { return traffic.step(); }, seconds(20))) << traffic.progress();
    EXPECT_EQ(traffic.problem(), "");
    const ConnectionStatistics sent = pair.a().statistics();
    EXPECT_GT(sent.chunks_retransmitted, 0U);
    EXPECT_LT(sent.packets_sent, kPackets * 103 / 100) << "of whole chunks it would be a sixth more";
  }
}

}  // namespace
}  // namespace sdr::testing

#include "transport/simulated.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

namespace sdr::transport {
namespace {

using namespace std::chrono_literals;
using core::ChannelIndex;
using core::Completion;
using core::Generation;
using core::PacketOffset;
using core::SlotIndex;

constexpr std::byte kCanary{0xC5};
constexpr std::byte kFill{0x3A};
constexpr std::uint16_t kPayload = 1024;

simulation::LinkSpec parsed(std::string_view text) {
  const auto spec = simulation::LinkSpec::parse(text);
  EXPECT_TRUE(spec.ok()) << (spec.ok() ? "" : spec.error().message);
  return *spec;
}

// A connected pair, a buffer of eight packets at B's slot 3, generation 1, and the time.
class Simulated : public testing::Test {
 protected:
  static constexpr EndpointOptions kOptions{
      .token = 77, .slots = 16, .channels = 2, .generations = 4, .payload = kPayload};

  void start(std::string_view link, bool carry_payload = true) {
    a_.reset();
    b_.reset();
    network_ =
        std::make_unique<SimulatedNetwork>(SimulatedOptions{.link = parsed(link), .carry_payload = carry_payload});
    a_ = std::move(network_->device(Site::A).create_endpoint(kOptions)).value();
    b_ = std::move(network_->device(Site::B).create_endpoint(kOptions)).value();
    ASSERT_TRUE(a_->connect(b_->info()).ok());
    ASSERT_TRUE(b_->connect(a_->info()).ok());
    EXPECT_TRUE(b_->expose(SlotIndex(3), Generation(1), memory_).ok());
  }

  Packet packet(std::uint32_t offset, std::uint8_t generation = 1, std::uint32_t slot = 3) {
    return {.local = local_.data(),
            .immediate = kOptions.layout.encode(SlotIndex(slot), PacketOffset(offset), 0),
            .length = kPayload,
            .generation = Generation(generation),
            .channel = ChannelIndex(0)};
  }
  void write(const Packet& p) { ASSERT_EQ(a_->write({&p, 1}, now_), 1U); }

  // The offsets of the packets that B completes at the present time.
  std::vector<std::uint32_t> polled() {
    std::vector<std::uint32_t> offsets;
    std::array<Completion, Endpoint::kPollBatch> batch;
    for (std::uint8_t c = 0; c < kOptions.channels; ++c) {
      for (std::size_t n; (n = b_->poll(ChannelIndex(c), batch, now_)) != 0;) {
        for (std::size_t i = 0; i < n; ++i) {
          offsets.push_back(kOptions.layout.decode(batch[i].immediate).offset.value);
        }
      }
    }
    return offsets;
  }
  std::optional<std::size_t> polled_control() {
    std::vector<std::byte> into(b_->facts().max_control);
    return b_->receive_control(into, now_);
  }
  void expect_untouched() { EXPECT_THAT(memory_, testing::Each(kCanary)); }

  std::vector<std::byte> memory_ = std::vector<std::byte>(8 * kPayload, kCanary);
  std::vector<std::byte> local_ = std::vector<std::byte>(kPayload, kFill);
  std::unique_ptr<SimulatedNetwork> network_;
  std::unique_ptr<Endpoint> a_;
  std::unique_ptr<Endpoint> b_;
  TimePoint now_{1s};
};

TEST_F(Simulated, Packet_ArrivesWhenTheLinkSays_AndNotANanosecondBefore) {
  start("rtt=25ms,rate=1Gbit");
  const TimePoint arrival = now_ + 12500us + Duration((kPayload + 44) * 8);
  write(packet(2));
  EXPECT_EQ(b_->next_event(), arrival);
  EXPECT_EQ(a_->next_event(), kNever);
  EXPECT_EQ(network_->next_event(), arrival);
  now_ = arrival - 1ns;
  EXPECT_THAT(polled(), testing::IsEmpty());
  expect_untouched();
  now_ = arrival;
  EXPECT_THAT(polled(), testing::ElementsAre(2));
  EXPECT_EQ(memory_[2 * kPayload], kFill);
  EXPECT_EQ(memory_[3 * kPayload], kCanary);
  EXPECT_EQ(b_->next_event(), kNever);
}

TEST_F(Simulated, DataAndControl_ShareTheRateAndTheQueue) {
  start("rate=1Gbit,queue=10us");
  write(packet(0));                            // 8.5 us on the wire
  const std::vector<std::byte> datagram(206);  // 2 us with its headers
  EXPECT_TRUE(a_->send_control(datagram, now_));
  write(packet(1));  // would wait 10.5 us
  EXPECT_EQ(a_->counters().dropped_by_link, 1U);
  EXPECT_EQ(network_->counts(Site::A).dropped_by_queue, 1U);
  now_ += 10543ns;
  EXPECT_FALSE(polled_control());
  now_ += 1ns;
  EXPECT_EQ(polled_control(), 206U);
  EXPECT_THAT(polled(), testing::ElementsAre(0));
}

TEST_F(Simulated, Losses_HitControlToo_AndAreCountedAtTheSender) {
  start("loss=1");
  write(packet(0));
  EXPECT_TRUE(a_->send_control(std::vector<std::byte>(10), now_));
  EXPECT_EQ(b_->next_event(), kNever);
  EXPECT_EQ(a_->counters().dropped_by_link, 2U);
  EXPECT_EQ(a_->counters().packets_sent, 1U);
}

TEST_F(Simulated, WithoutPayload_PacketsCompleteAndNoByteIsTouched) {
  start("rtt=1ms", false);
  Packet p = packet(7);
  p.local = nullptr;
  write(p);
  write(packet(8));  // beyond the buffer: the bounds hold all the same
  EXPECT_TRUE(
      b_->expose(SlotIndex(4), Generation(0), std::span<std::byte>(static_cast<std::byte*>(nullptr), std::size_t{0}))
          .ok());
  now_ += 1ms;
  EXPECT_THAT(polled(), testing::ElementsAre(7));
  EXPECT_EQ(b_->counters().dropped_out_of_range, 1U);
  EXPECT_EQ(b_->counters().bytes_received, kPayload);
  expect_untouched();
}

TEST_F(Simulated, Packet_IsJudgedByWhatIsExposedWhenItArrives) {
  start("rtt=2ms");
  write(packet(0));
  b_->retract(SlotIndex(3));
  write(packet(1, 2));  // sent before its generation is exposed
  EXPECT_TRUE(b_->expose(SlotIndex(3), Generation(2), memory_).ok());
  now_ += 1ms;
  EXPECT_THAT(polled(), testing::ElementsAre(1));
  EXPECT_EQ(b_->counters().dropped_not_exposed, 1U);
  EXPECT_EQ(memory_[0], kCanary);
}

TEST_F(Simulated, HeldPackets_ArriveWhenReleased_InAnyOrder) {
  start("rtt=2ms");
  network_->set_filter(Site::A, [](const PacketView& view) {
    return view.kind == PacketView::Kind::Data ? Verdict::Hold : Verdict::Pass;
  });
  for (std::uint32_t i = 0; i < 4; ++i) write(packet(i));
  EXPECT_TRUE(a_->send_control(std::vector<std::byte>(10), now_));
  std::fill(local_.begin(), local_.end(), std::byte{0});  // the held ones are copies
  EXPECT_EQ(network_->held(Site::A), 4U);
  now_ += 1ms;
  EXPECT_THAT(polled(), testing::IsEmpty());
  EXPECT_TRUE(polled_control());
  network_->release(Site::A, 3, now_);
  network_->release(Site::A, 1, now_ + 5us);
  EXPECT_THAT(polled(), testing::ElementsAre(3));
  EXPECT_EQ(b_->next_event(), now_ + 5us);
  now_ += 5us;
  EXPECT_THAT(polled(), testing::ElementsAre(1));
  network_->release_all(Site::A, now_);
  EXPECT_EQ(network_->held(Site::A), 0U);
  EXPECT_THAT(polled(), testing::ElementsAre(0, 2));
  EXPECT_EQ(memory_[0], kFill);
}

TEST_F(Simulated, HeldPacketOfAnOldGeneration_TouchesNothing) {
  start("");
  network_->set_filter(Site::A, [](const PacketView&) { return Verdict::Hold; });
  write(packet(0, 1));
  b_->retract(SlotIndex(3));
  EXPECT_TRUE(b_->expose(SlotIndex(3), Generation(2), memory_).ok());
  network_->release(Site::A, 0, now_);
  EXPECT_THAT(polled(), testing::IsEmpty());
  EXPECT_EQ(b_->counters().dropped_not_exposed, 1U);
  expect_untouched();
}

TEST_F(Simulated, Filter_SeesEachPacketAsItIs_AndDropsOnlyWhatItSays) {
  start("");
  std::vector<std::uint32_t> seen;
  network_->set_filter(Site::A, [&](const PacketView& view) {
    if (view.kind == PacketView::Kind::Control) return Verdict::Drop;
    const std::uint32_t offset = kOptions.layout.decode(view.immediate).offset.value;
    seen.push_back(offset);
    EXPECT_EQ(view.length, kPayload);
    EXPECT_EQ(view.bytes.size(), kPayload);
    EXPECT_EQ(view.now, now_);
    return offset == 1 ? Verdict::Drop : Verdict::Pass;
  });
  for (std::uint32_t i = 0; i < 3; ++i) write(packet(i));
  EXPECT_TRUE(a_->send_control(std::vector<std::byte>(10), now_));
  EXPECT_TRUE(b_->send_control(std::vector<std::byte>(10), now_)) << "the way back has no filter";
  EXPECT_THAT(seen, testing::ElementsAre(0, 1, 2));
  EXPECT_THAT(polled(), testing::ElementsAre(0, 2));
  EXPECT_FALSE(polled_control());
  EXPECT_EQ(a_->next_event(), now_);
  EXPECT_EQ(a_->counters().dropped_by_link, 2U);
}

TEST_F(Simulated, ForgedPackets_AreCountedByNameAndTouchNothing) {
  start("");
  SimulatedEndpoint& target = *network_->endpoint(Site::B);
  const std::uint64_t token = target.token();
  target.inject(packet(0), token + 1, now_);
  target.inject(packet(0, 1, 15), token, now_);  // a slot that exposes nothing
  target.inject(packet(0, 1, 16), token, now_);  // no slot of the table
  target.inject(packet(0, 200), token, now_);    // a generation that does not exist
  target.inject(packet(262143), token, now_);    // far beyond the buffer
  Packet long_one = packet(0);
  long_one.length = kPayload + 1;
  target.inject(long_one, token, now_);
  Packet stray = packet(0);
  stray.channel = ChannelIndex(2);
  target.inject(stray, token, now_);
  target.inject_control(std::vector<std::byte>(10), token + 1, now_);
  EXPECT_THAT(polled(), testing::IsEmpty());
  EXPECT_FALSE(polled_control());
  const EndpointCounters counters = b_->counters();
  EXPECT_EQ(counters.dropped_wrong_token, 2U);
  EXPECT_EQ(counters.dropped_not_exposed, 2U);
  EXPECT_EQ(counters.dropped_out_of_range, 4U);
  EXPECT_EQ(counters.packets_received, 0U);
  expect_untouched();
  target.inject(packet(1), token, now_ + 1us);
  target.inject_control(std::vector<std::byte>(10), token, now_);
  EXPECT_TRUE(polled_control());
  now_ += 1us;
  EXPECT_THAT(polled(), testing::ElementsAre(1));
}

TEST_F(Simulated, Duplicates_CompleteTwice_WithTheirOwnCopies) {
  start("rtt=1ms,dup=1");
  write(packet(0));
  EXPECT_TRUE(a_->send_control(std::vector<std::byte>(10), now_));
  local_[0] = std::byte{0};
  now_ += 10ms;
  EXPECT_THAT(polled(), testing::ElementsAre(0, 0));
  EXPECT_EQ(memory_[0], kFill);
  EXPECT_TRUE(polled_control());
  EXPECT_TRUE(polled_control());
  EXPECT_FALSE(polled_control());
}

TEST_F(Simulated, SameSeed_RepeatsARunExactly_WithAndWithoutPayload) {
  const auto run = [&](std::string_view link, bool carry_payload) {
    start(link, carry_payload);
    now_ = TimePoint(1s);
    std::vector<std::pair<std::int64_t, std::uint32_t>> arrivals;
    for (std::uint32_t i = 0; i < 2000; ++i) {
      write(packet(i % 8));
      now_ += 5us;
      for (const std::uint32_t offset : polled()) arrivals.emplace_back(now_.time_since_epoch().count(), offset);
    }
    while (network_->next_event() != kNever) {
      now_ = network_->next_event();
      for (const std::uint32_t offset : polled()) arrivals.emplace_back(now_.time_since_epoch().count(), offset);
    }
    return arrivals;
  };
  const auto first = run("rtt=5ms,loss=0.1,burst=2,reorder=0.1,dup=0.1,seed=3", true);
  EXPECT_EQ(run("rtt=5ms,loss=0.1,burst=2,reorder=0.1,dup=0.1,seed=3", true), first);
  EXPECT_EQ(run("rtt=5ms,loss=0.1,burst=2,reorder=0.1,dup=0.1,seed=3", false), first);
  EXPECT_NE(run("rtt=5ms,loss=0.1,burst=2,reorder=0.1,dup=0.1,seed=4", true), first);
  EXPECT_EQ(network_->endpoint(Site::B)->in_flight(), 0U);
}

TEST_F(Simulated, SeveralPairs_ShareTheRateOfTheLink) {
  start("rate=1Gbit");
  auto a2 = std::move(network_->device(Site::A).create_endpoint(kOptions)).value();
  auto b2 = std::move(network_->device(Site::B).create_endpoint(kOptions)).value();
  ASSERT_TRUE(a2->connect(b2->info()).ok());
  const Packet p = packet(0);
  write(p);
  ASSERT_EQ(a2->write({&p, 1}, now_), 1U);
  EXPECT_EQ(b_->next_event(), now_ + 8544ns);
  EXPECT_EQ(b2->next_event(), now_ + 2 * 8544ns);
}

TEST_F(Simulated, PeerThatIsGone_IsSilent) {
  start("rtt=2ms");
  network_->set_filter(Site::A, [](const PacketView&) { return Verdict::Hold; });
  write(packet(0));
  network_->set_filter(Site::A, nullptr);
  write(packet(1));
  b_.reset();
  write(packet(2));
  network_->release_all(Site::A, now_);
  EXPECT_EQ(network_->endpoint(Site::B), nullptr);
  EXPECT_EQ(network_->next_event(), kNever);
}

TEST_F(Simulated, Connect_ToTheOwnSiteOrToNobody_NamesTheReason) {
  start("");
  auto lone = std::move(network_->device(Site::B).create_endpoint(kOptions)).value();
  const auto info = lone->info();
  EXPECT_THAT(lone->connect(b_->info()).error().message, testing::HasSubstr("both endpoints are at site B"));
  lone.reset();
  EXPECT_THAT(a_->connect(info).error().message, testing::HasSubstr("no endpoint 1 at site B"));
}

TEST_F(Simulated, BeforeConnect_NothingIsTaken) {
  start("");
  auto lone = std::move(network_->device(Site::A).create_endpoint(kOptions)).value();
  const Packet p = packet(0);
  EXPECT_EQ(lone->write({&p, 1}, now_), 0U);
  EXPECT_FALSE(lone->send_control(std::vector<std::byte>(10), now_));
}

TEST_F(Simulated, MtuThatWasGiven_BoundsThePayload) {
  SimulatedNetwork network({.link = parsed("mtu=1000")});
  EXPECT_EQ(*network.device(Site::A).max_payload(""), 952);
  EXPECT_THAT(network.device(Site::A).create_endpoint(kOptions).error().message,
              testing::HasSubstr("payload 1024 and 44 bytes of headers are more than the link's mtu 1000"));
  SimulatedNetwork bare({.link = parsed("mtu=4096"), .packet_overhead = 0});
  EXPECT_EQ(*bare.device(Site::B).max_payload(""), 4096);
}

}  // namespace
}  // namespace sdr::transport

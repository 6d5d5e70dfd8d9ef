#include "transport/emulated_link.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "transport/emulated_link_endpoint.hpp"
#include "transport/simulated.hpp"

namespace sdr::transport {
namespace {

using namespace std::chrono_literals;
using core::ChannelIndex;
using core::Completion;
using core::Generation;
using core::PacketOffset;
using core::SlotIndex;
using simulation::Direction;
using simulation::LinkModel;
using simulation::LinkSpec;

constexpr std::uint16_t kPayload = 1024;
constexpr EndpointOptions kOptions{.token = 5, .slots = 4, .channels = 1, .generations = 4, .payload = kPayload};

LinkSpec parsed(std::string_view text) {
  const Result<LinkSpec> spec = LinkSpec::parse(text);
  EXPECT_TRUE(spec.ok()) << (spec.ok() ? "" : spec.error().message);
  return *spec;
}

// An endpoint that records what it is given, takes as much as it is told, and may read the bytes after write().
class Recorder final : public Endpoint {
 public:
  explicit Recorder(bool copies_on_write) {
    facts_.packet_overhead = 44;
    facts_.max_control = 512;
    facts_.aim_size = 4;
    facts_.local_path = true;
    facts_.copies_on_write = copies_on_write;
  }

  struct Written {
    Packet packet;
    TimePoint at;
  };
  std::vector<Written> written;
  std::vector<std::size_t> batches;
  std::vector<std::vector<std::byte>> datagrams;
  std::size_t room = SIZE_MAX;  // packets it still takes
  std::uint64_t finished = 0;
  bool control_open = true;

  [[nodiscard]] const EndpointFacts& facts() const override { return facts_; }
  [[nodiscard]] EndpointCounters counters() const override { return {}; }
  [[nodiscard]] std::vector<std::byte> info() const override { return {}; }
  Result<void> connect(std::span<const std::byte>) override { return {}; }
  [[nodiscard]] std::string peer_name() const override { return "recorder"; }
  Result<Aim> expose(SlotIndex, Generation, std::span<std::byte>) override { return Aim{}; }
  void retract(SlotIndex) override {}
  std::size_t poll(ChannelIndex, std::span<Completion>, TimePoint) override { return 0; }
  std::size_t write(std::span<const Packet> packets, TimePoint now) override {
    const std::size_t taken = std::min(packets.size(), room);
    room -= taken;
    for (const Packet& packet : packets.first(taken)) written.push_back({packet, now});
    if (taken != 0) batches.push_back(taken);
    return taken;
  }
  [[nodiscard]] std::uint64_t writes_finished() const override { return finished; }
  bool send_control(std::span<const std::byte> datagram, TimePoint) override {
    if (control_open) datagrams.emplace_back(datagram.begin(), datagram.end());
    return control_open;
  }
  std::optional<std::size_t> receive_control(std::span<std::byte>, TimePoint) override { return std::nullopt; }
  void advance(TimePoint) override {}
  [[nodiscard]] int channel_fd(ChannelIndex) const override { return 40; }
  [[nodiscard]] int control_fd() const override { return 41; }
  [[nodiscard]] TimePoint next_event() const override { return kNever; }

 private:
  EndpointFacts facts_;
};

class EmulatedLink : public testing::Test {
 protected:
  void start(std::string_view link, bool copies_on_write = true, std::uint16_t payload = kPayload) {
    auto recorder = std::make_unique<Recorder>(copies_on_write);
    inner_ = recorder.get();
    endpoint_ = std::make_unique<EmulatedLinkEndpoint>(std::move(recorder), LinkModel(parsed(link), Direction::Forward),
                                                       payload);
    ASSERT_TRUE(endpoint_->connect({}).ok());
  }

  // Packets whose offsets count from `first`, the bytes of each being the low byte of its offset.
  std::size_t write(std::uint32_t first, std::uint32_t count) {
    std::vector<std::vector<std::byte>> bytes;
    std::vector<Packet> packets;
    std::vector<Aim> aims(count);
    for (std::uint32_t i = 0; i < count; ++i) {
      bytes.emplace_back(kPayload, static_cast<std::byte>(first + i));
      aims[i].size = 4;
      aims[i].bytes[0] = static_cast<std::byte>(first + i);
      packets.push_back({.local = bytes.back().data(),
                         .immediate = kOptions.layout.encode(SlotIndex(0), PacketOffset(first + i), 0),
                         .length = kPayload,
                         .generation = Generation(1),
                         .aim = &aims[i]});
    }
    return endpoint_->write(packets, now_);  // bytes and aims are gone when this returns
  }
  std::vector<std::uint32_t> written() {
    std::vector<std::uint32_t> offsets;
    for (const auto& w : inner_->written) offsets.push_back(offset(w.packet));
    return offsets;
  }
  static std::uint32_t offset(const Packet& packet) { return kOptions.layout.decode(packet.immediate).offset.value; }
  void advance_to(TimePoint to) {
    now_ = to;
    endpoint_->advance(now_);
  }
  // Runs until nothing is under way.
  void drain() {
    while (endpoint_->next_event() != kNever) advance_to(std::max(now_, endpoint_->next_event()));
  }

  Recorder* inner_ = nullptr;
  std::unique_ptr<EmulatedLinkEndpoint> endpoint_;
  TimePoint now_{1s};
};

TEST_F(EmulatedLink, Packets_ReachTheInnerEndpointWhenTheyAreDue) {
  start("rtt=20ms,rate=1Gbit");
  const TimePoint start_time = now_;
  ASSERT_EQ(write(0, 3), 3U);
  EXPECT_TRUE(inner_->written.empty());
  for (int i = 1; i <= 3; ++i) {
    const TimePoint due = start_time + 10ms + i * 8544ns;  // (1024 + 44) bytes at 1 Gbit/s
    EXPECT_EQ(endpoint_->next_event(), due);
    advance_to(due - 1ns);
    EXPECT_EQ(inner_->written.size(), static_cast<std::size_t>(i - 1));
    advance_to(due);
    EXPECT_EQ(inner_->written.size(), static_cast<std::size_t>(i));
  }
  EXPECT_EQ(endpoint_->next_event(), kNever);
}

TEST_F(EmulatedLink, LateDriver_HandsOverWhatIsDueInBatchesInOrder) {
  start("rtt=20ms,rate=1Gbit");
  ASSERT_EQ(write(0, 100), 100U);
  advance_to(now_ + 1s);
  EXPECT_THAT(inner_->batches, testing::ElementsAre(64, 36));
  for (std::uint32_t i = 0; i < 100; ++i) EXPECT_EQ(written()[i], i);
}

TEST_F(EmulatedLink, IdealLink_PassesPacketsOnAtOnce) {
  start("");
  ASSERT_EQ(write(0, 5), 5U);
  EXPECT_EQ(inner_->written.size(), 5U);
  EXPECT_TRUE(endpoint_->send_control(std::vector<std::byte>(9), now_));
  EXPECT_EQ(inner_->datagrams.size(), 1U);
  EXPECT_EQ(endpoint_->next_event(), kNever);
}

TEST_F(EmulatedLink, WritesAndControlCalls_MoveDuePacketsOnTheWay) {
  start("rtt=20ms");
  write(0, 1);
  now_ += 10ms;
  write(1, 1);
  EXPECT_THAT(written(), testing::ElementsAre(0));
  now_ += 10ms;
  std::array<std::byte, 512> into;
  EXPECT_FALSE(endpoint_->receive_control(into, now_));
  EXPECT_THAT(written(), testing::ElementsAre(0, 1));
}

TEST_F(EmulatedLink, ControlAndData_KeepTheirOrder) {
  start("rtt=20ms");
  write(0, 2);
  EXPECT_TRUE(endpoint_->send_control(std::vector<std::byte>(3, std::byte{7}), now_));
  EXPECT_TRUE(endpoint_->send_control({}, now_));
  write(2, 2);
  drain();
  EXPECT_THAT(inner_->batches, testing::ElementsAre(2, 2));
  ASSERT_EQ(inner_->datagrams.size(), 2U);
  EXPECT_EQ(inner_->datagrams[0], std::vector<std::byte>(3, std::byte{7}));
  EXPECT_TRUE(inner_->datagrams[1].empty());
  EXPECT_FALSE(endpoint_->send_control(std::vector<std::byte>(513), now_));
}

TEST_F(EmulatedLink, ZeroCopyInnerEndpoint_FindsBytesAndAimsUntilItHasFinished) {
  start("rtt=20ms,rate=1Gbit", false);
  write(0, 10);
  drain();
  ASSERT_EQ(inner_->written.size(), 10U);
  inner_->finished = 4;
  write(10, 4);  // may take the four buffers that are free again, and no other
  drain();
  ASSERT_EQ(inner_->written.size(), 14U);
  for (std::size_t i = 4; i < 14; ++i) {
    const Packet& packet = inner_->written[i].packet;
    EXPECT_EQ(packet.local[0], static_cast<std::byte>(i));
    EXPECT_EQ(packet.local[kPayload - 1], static_cast<std::byte>(i));
  }
  EXPECT_TRUE(endpoint_->facts().copies_on_write);
  EXPECT_EQ(endpoint_->writes_finished(), 14U);
}

TEST_F(EmulatedLink, Aims_TravelWithTheirPackets) {
  start("rtt=20ms", false);
  write(0, 3);
  drain();
  for (const auto& w : inner_->written) {
    ASSERT_NE(w.packet.aim, nullptr);
    EXPECT_EQ(w.packet.aim->size, 4);
    EXPECT_EQ(w.packet.aim->bytes[0], static_cast<std::byte>(offset(w.packet)));
  }
}

TEST_F(EmulatedLink, InnerEndpointThatRefuses_GetsTheRestLater) {
  start("rtt=20ms");
  write(0, 100);
  inner_->room = 30;
  advance_to(now_ + 10ms);
  EXPECT_EQ(inner_->written.size(), 30U);
  EXPECT_GT(endpoint_->next_event(), now_) << "a driver would spin";
  EXPECT_LE(endpoint_->next_event(), now_ + 1ms);
  inner_->room = SIZE_MAX;
  drain();
  ASSERT_EQ(inner_->written.size(), 100U);
  for (std::uint32_t i = 0; i < 100; ++i) EXPECT_EQ(written()[i], i);
}

TEST_F(EmulatedLink, ControlThatTheInnerEndpointRefuses_IsLostAndCounted) {
  start("rtt=20ms");
  inner_->control_open = false;
  EXPECT_TRUE(endpoint_->send_control(std::vector<std::byte>(3), now_));
  drain();
  EXPECT_EQ(endpoint_->counters().dropped_by_host, 1U);
}

TEST_F(EmulatedLink, LossesAndOverflow_AreCountedAsDroppedByTheLink) {
  start("rtt=20ms,rate=1Gbit,queue=1ms,loss=0.1,seed=3");
  ASSERT_EQ(write(0, 1000), 1000U);  // 8.5 ms worth at once
  drain();
  const EndpointCounters counters = endpoint_->counters();
  EXPECT_EQ(counters.packets_sent, 1000U);
  EXPECT_EQ(counters.dropped_by_link, 1000 - inner_->written.size());
  EXPECT_GT(endpoint_->link_counts().lost, 0U);
  EXPECT_GT(endpoint_->link_counts().dropped_by_queue, 800U);
  EXPECT_EQ(counters.dropped_by_link, endpoint_->link_counts().lost + endpoint_->link_counts().dropped_by_queue);
}

TEST_F(EmulatedLink, Duplicates_AreWrittenTwice) {
  start("rtt=20ms,dup=1");
  write(0, 10);
  drain();
  EXPECT_EQ(inner_->written.size(), 20U);
}

TEST_F(EmulatedLink, InnerEndpointThatTakesNothing_StopsTheSenderAtTheBound) {
  start("rtt=20ms,rate=1Gbit,queue=10ms");
  inner_->room = 0;
  std::uint64_t taken = 0;
  std::uint32_t n = 0;
  for (int i = 0; i < 10'000 && n < 64; ++i) {
    n = 64 - static_cast<std::uint32_t>(write(0, 64));
    taken += 64 - n;
    if (n != 0) break;
    advance_to(now_ + 600us);
  }
  // 20 ms at 1 Gbit/s are 2.5 MB, the slack 4 MiB.
  EXPECT_NEAR(static_cast<double>(taken * (kPayload + 44)), 2.5e6 + (4 << 20), 64 * 1100);
  EXPECT_FALSE(endpoint_->send_control(std::vector<std::byte>(3), now_));
  inner_->room = SIZE_MAX;
  drain();
  EXPECT_EQ(inner_->written.size(), taken);
  EXPECT_EQ(write(0, 64), 64U);
}

TEST_F(EmulatedLink, Facts_AreThoseOfALink) {
  start("rtt=20ms");
  EXPECT_FALSE(endpoint_->facts().local_path);
  EXPECT_EQ(endpoint_->facts().packet_overhead, 44);
  EXPECT_EQ(endpoint_->channel_fd(ChannelIndex(0)), 40);
  EXPECT_EQ(endpoint_->control_fd(), 41);
}

TEST(EmulatedLinkDevice, MaxPayload_IsWhatTheMtuLeaves) {
  SimulatedNetwork network({.link = parsed("mtu=9000")});
  const auto payload = [&](std::string_view link, const char* remote) {
    return *EmulatedLinkDevice(network.device(Site::A), parsed(link), Direction::Forward).max_payload(remote);
  };
  EXPECT_EQ(payload("", ""), 1456);
  EXPECT_EQ(payload("", "192.0.2.7:5201"), 1456);
  EXPECT_EQ(payload("", "[2001:db8::7]:5201"), 1432);
  EXPECT_EQ(payload("mtu=4000", ""), 3952);
  EXPECT_EQ(payload("mtu=65535", ""), 8952);  // the inner device's own limit
}

TEST(EmulatedLinkDevice, PayloadBeyondAnMtuThatWasGiven_IsRefusedByName) {
  SimulatedNetwork network({.link = {}});
  EmulatedLinkDevice narrow(network.device(Site::A), parsed("mtu=576"), Direction::Forward);
  const auto refused = narrow.create_endpoint(kOptions);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::InvalidArgument);
  EXPECT_EQ(refused.error().message,
            "payload 1024 and 44 bytes of headers are more than the link's mtu 576 (payload at most 528)");
  EmulatedLinkDevice silent(network.device(Site::A), parsed("loss=0.1"), Direction::Forward);
  EndpointOptions large = kOptions;
  large.payload = 4096;
  EXPECT_TRUE(silent.create_endpoint(large).ok()) << "nobody asked for an MTU";
}

// Both ends emulate their own way; together they are the link, and as repeatable as the simulated one.
TEST(EmulatedLinkDevice, OverASimulatedNetwork_BothDirectionsTakeTheirHalfOfTheRtt) {
  SimulatedNetwork network({.link = {}});
  const LinkSpec spec = parsed("rtt=25ms,loss=0.2,seed=9");
  EmulatedLinkDevice device_a(network.device(Site::A), spec, Direction::Forward);
  EmulatedLinkDevice device_b(network.device(Site::B), spec, Direction::Backward);
  auto a = std::move(device_a.create_endpoint(kOptions)).value();
  auto b = std::move(device_b.create_endpoint(kOptions)).value();
  ASSERT_TRUE(a->connect(b->info()).ok());
  ASSERT_TRUE(b->connect(a->info()).ok());
  TimePoint now{1s};
  std::array<std::byte, 2048> into;
  std::vector<bool> forward;
  std::vector<bool> backward;
  for (int i = 0; i < 200; ++i) {
    ASSERT_TRUE(a->send_control(std::vector<std::byte>(10), now));
    ASSERT_TRUE(b->send_control(std::vector<std::byte>(10), now));
    now += 12500us;
    a->advance(now);
    b->advance(now);
    forward.push_back(b->receive_control(into, now).has_value());
    backward.push_back(a->receive_control(into, now).has_value());
  }
  EXPECT_NE(forward, backward) << "the directions draw the same losses";
  const auto lost = [](const std::vector<bool>& arrived) { return std::count(arrived.begin(), arrived.end(), false); };
  EXPECT_NEAR(static_cast<double>(lost(forward)), 40, 28);
  EXPECT_NEAR(static_cast<double>(lost(backward)), 40, 28);
  EXPECT_EQ(static_cast<std::uint64_t>(lost(forward)), a->counters().dropped_by_link);
}

}  // namespace
}  // namespace sdr::transport

// What UDP adds to the transport contract: hostile datagrams, ports and addresses, the kernel's batching and its
// limits.
#include "transport/udp.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <random>
#include <thread>

#include "transport/udp_address.hpp"
#include "transport/udp_socket.hpp"
#include "transport/udp_wire.hpp"
#include "udp_network.hpp"

namespace sdr::transport {
namespace {

using core::ChannelIndex;
using core::Completion;
using core::Generation;
using core::PacketOffset;
using core::SlotIndex;
using testing::HasSubstr;
using udp_wire::kHeaderSize;

constexpr std::byte kCanary{0xC5};
constexpr std::uint64_t kToken = 0x1122334455667788;

EndpointOptions options_with(std::uint16_t payload) {
  return {.token = kToken, .slots = 16, .channels = 1, .payload = payload, .ecn = true};
}

UdpSocket open_socket(const std::string& address) {
  auto opened = UdpSocket::open(local_address(address).value(), {.segmentation = false, .coalescing = false});
  EXPECT_TRUE(opened.ok()) << opened.error().message;
  return std::move(opened).value();
}

// Waits for one datagram or `limit` milliseconds.
void wait_readable(int fd, int limit = 1000) {
  pollfd watched{.fd = fd, .events = POLLIN, .revents = 0};
  ::poll(&watched, 1, limit);
}

// An endpoint, and its peer as two bare sockets that can send it anything. Both paths of receiving.
class UdpFromABarePeer : public testing::TestWithParam<bool> {
 protected:
  UdpFromABarePeer() : memory_(4 * kPayload, kCanary) {
    UdpDevice device({.coalescing = GetParam()});
    endpoint_ = device.create_endpoint(options_with(kPayload)).value();
    udp_wire::PeerInfo peer{.payload = kPayload,
                            .token = 99,
                            .control_port = control_.local().port(),
                            .data_ports = {data_.local().port()}};
    const SocketAddress local = data_.local();
    const auto address = local.address_bytes();
    std::copy(address.begin(), address.end(), peer.address.begin());
    const auto connected = endpoint_->connect(udp_wire::encode_info(peer));
    EXPECT_TRUE(connected.ok()) << connected.error().message;
    const auto own = udp_wire::parse_info(endpoint_->info()).value();
    data_to_ = data_.local().with_port(own.data_ports[0]);
    control_to_ = data_.local().with_port(own.control_port);
    EXPECT_TRUE(data_.connect(data_to_).ok());
    EXPECT_TRUE(control_.connect(control_to_).ok());
    EXPECT_TRUE(endpoint_->expose(SlotIndex(1), Generation(2), memory_).ok());
  }

  static std::vector<std::byte> good_packet(std::uint16_t length = 40) {
    std::vector<std::byte> bytes(kHeaderSize + length, std::byte{1});
    udp_wire::encode_data(bytes.data(), {.token = kToken,
                                         .immediate = core::ImmediateLayout{}.encode(SlotIndex(1), PacketOffset(0), 0),
                                         .length = length,
                                         .generation = 2});
    return bytes;
  }

  std::size_t poll() {
    std::array<Completion, Endpoint::kPollBatch> out;
    wait_readable(endpoint_->channel_fd(ChannelIndex(0)));
    return endpoint_->poll(ChannelIndex(0), out, {});
  }

  // Sends `bytes` as one datagram, which must be refused under this name and leave the memory alone.
  void expect_refused(std::span<const std::byte> bytes, std::uint64_t EndpointCounters::*counter) {
    const std::uint64_t before = endpoint_->counters().*counter;
    ASSERT_TRUE(data_.send(bytes, {}));
    EXPECT_EQ(poll(), 0U);
    EXPECT_EQ(endpoint_->counters().*counter, before + 1);
    EXPECT_THAT(memory_, testing::Each(kCanary));
  }

  static constexpr std::uint16_t kPayload = 128;
  UdpSocket data_ = open_socket("127.0.0.1");
  UdpSocket control_ = open_socket("127.0.0.1");
  SocketAddress data_to_, control_to_;
  std::vector<std::byte> memory_;
  std::unique_ptr<Endpoint> endpoint_;
};

INSTANTIATE_TEST_SUITE_P(, UdpFromABarePeer, testing::Bool(),
                         [](const auto& instance) { return instance.param ? "Coalescing" : "Plain"; });

TEST_P(UdpFromABarePeer, GoodPacket_IsPlaced) {
  ASSERT_TRUE(data_.send(good_packet(), {}));
  EXPECT_EQ(poll(), 1U);
  EXPECT_EQ(memory_[39], std::byte{1});
  EXPECT_EQ(memory_[40], kCanary);
}

TEST_P(UdpFromABarePeer, CongestionMarks_AreCounted) {
  const int marked = 3;  // ECN's CE, in the TOS
  ASSERT_TRUE(data_.send(good_packet(), {}));
  EXPECT_EQ(poll(), 1U);
  EXPECT_EQ(endpoint_->counters().congestion_marks, 0U);
  ASSERT_EQ(setsockopt(data_.fd(), IPPROTO_IP, IP_TOS, &marked, sizeof marked), 0);
  ASSERT_TRUE(data_.send(good_packet(), {}));
  EXPECT_EQ(poll(), 1U);
  EXPECT_EQ(endpoint_->counters().congestion_marks, 1U);
}

TEST_P(UdpFromABarePeer, ForgedToken_TouchesNothing) {
  for (std::size_t bit = 0; bit < 64; ++bit) {
    auto bytes = good_packet();
    bytes[bit / 8] ^= std::byte{1} << (bit % 8);
    expect_refused(bytes, &EndpointCounters::dropped_wrong_token);
  }
}

TEST_P(UdpFromABarePeer, WrongKindOrVersion_TouchesNothing) {
  for (const int kind : {0x00, 0x01, 0x10, 0x12, 0x21, 0xff}) {
    auto bytes = good_packet();
    bytes[14] = static_cast<std::byte>(kind);
    expect_refused(bytes, &EndpointCounters::dropped_malformed);
  }
}

TEST_P(UdpFromABarePeer, Packet_CutAtEveryLength_TouchesNothing) {
  const auto bytes = good_packet();
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    SCOPED_TRACE(testing::Message() << size << " bytes");
    expect_refused(std::span(bytes).first(size), &EndpointCounters::dropped_malformed);
  }
}

TEST_P(UdpFromABarePeer, LengthField_ThatLies_TouchesNothing) {
  for (const int length : {0, 39, 41, 127, 128, 65535}) {
    auto bytes = good_packet();
    udp_wire::store(&bytes[12], static_cast<std::uint16_t>(length));
    expect_refused(bytes, &EndpointCounters::dropped_malformed);
  }
}

TEST_P(UdpFromABarePeer, Packet_LongerThanThePayload_TouchesNothing) {
  for (const std::uint16_t length :
       std::initializer_list<std::uint16_t>{kPayload + 1, kPayload + 8, 512, 4096, 60000}) {
    const EndpointCounters before = endpoint_->counters();
    ASSERT_TRUE(data_.send(good_packet(length), {}));
    EXPECT_EQ(poll(), 0U);
    const EndpointCounters after = endpoint_->counters();
    EXPECT_EQ(after.dropped_out_of_range + after.dropped_malformed,
              before.dropped_out_of_range + before.dropped_malformed + 1);
    EXPECT_THAT(memory_, testing::Each(kCanary));
  }
}

TEST_P(UdpFromABarePeer, RandomDatagrams_TouchNothing) {
  const std::uint32_t seed = conformance::test_seed();
  SCOPED_TRACE(testing::Message() << "SDR_TEST_SEED=" << seed);
  std::mt19937 random(seed);
  for (int i = 0; i < 500; ++i) {
    std::vector<std::byte> bytes(random() % 200);
    for (auto& b : bytes) b = static_cast<std::byte>(random());
    ASSERT_TRUE(data_.send(bytes, {}));
    ASSERT_TRUE(control_.send(bytes, {}));
    EXPECT_EQ(poll(), 0U);
    std::array<std::byte, UdpDevice::kMaxControl> into;
    EXPECT_FALSE(endpoint_->receive_control(into, {}).has_value());
  }
  EXPECT_THAT(memory_, testing::Each(kCanary));
}

TEST_P(UdpFromABarePeer, ControlDatagram_ForgedCutOrTooLong_IsNotDelivered) {
  std::array<std::byte, UdpDevice::kMaxControl + 100> into;
  const std::vector<std::byte> body(UdpDevice::kMaxControl + 1, std::byte{7});
  const auto good = udp_wire::encode_control(kToken);
  auto wrong_kind = good;
  wrong_kind[8] = std::byte{udp_wire::kDataKind};
  ASSERT_TRUE(control_.send(udp_wire::encode_control(kToken + 1), std::span(body).first(10)));
  ASSERT_TRUE(control_.send(wrong_kind, std::span(body).first(10)));
  ASSERT_TRUE(control_.send(std::span(good).first(15), {}));
  ASSERT_TRUE(control_.send({}, {}));
  ASSERT_TRUE(control_.send(good, body));
  ASSERT_TRUE(control_.send(good, std::span(body).first(3)));  // the bad ones do not hide it
  wait_readable(endpoint_->control_fd());
  EXPECT_EQ(endpoint_->receive_control(into, {}), 3U);
  EXPECT_EQ(endpoint_->counters().dropped_wrong_token, 1U);
  EXPECT_EQ(endpoint_->counters().dropped_malformed, 4U);
}

TEST_P(UdpFromABarePeer, GoodPacket_FromAStrangersSocket_IsTurnedAwayByTheKernel) {
  UdpSocket stranger = open_socket("127.0.0.1");
  ASSERT_TRUE(stranger.connect(data_to_).ok());
  stranger.send(good_packet(), {});
  stranger.send(good_packet(), {});
  wait_readable(endpoint_->channel_fd(ChannelIndex(0)), 20);
  std::array<Completion, Endpoint::kPollBatch> out;
  EXPECT_EQ(endpoint_->poll(ChannelIndex(0), out, {}), 0U);
  EXPECT_THAT(memory_, testing::Each(kCanary));
  ASSERT_TRUE(data_.send(good_packet(), {}));
  EXPECT_EQ(poll(), 1U);
  EXPECT_EQ(endpoint_->counters().packets_received, 1U);
}

TEST(Udp, Packets_BeforeConnect_AreTakenByTokenAlone) {
  UdpDevice device;
  auto a = device.create_endpoint(options_with(256)).value();
  auto b = device.create_endpoint(options_with(256)).value();
  std::vector<std::byte> memory(256, kCanary);
  EXPECT_TRUE(b->expose(SlotIndex(0), Generation(0), memory).ok());
  ASSERT_TRUE(a->connect(b->info()).ok());
  const std::array<std::byte, 8> bytes{};
  const Packet packet{.local = bytes.data(), .length = 8};
  ASSERT_EQ(a->write({&packet, 1}, {}), 1U);
  std::array<Completion, Endpoint::kPollBatch> out;
  wait_readable(b->channel_fd(ChannelIndex(0)));
  EXPECT_EQ(b->poll(ChannelIndex(0), out, {}), 1U);
  EXPECT_EQ(b->write({&packet, 1}, {}), 0U) << "an endpoint without a peer cannot send";
  EXPECT_FALSE(b->send_control(bytes, {}));
}

// Runs of packets come in batches of the kernel's, several a system call: every packet is in its place, in order, and
// the calls are few, whatever the lengths of the runs.
TEST(Udp, RunsOfAnyLength_AreTakenSeveralBatchesACall) {
  constexpr std::uint16_t kPayload = 1024;
  constexpr std::uint32_t kMost = 400;
  const std::uint32_t seed = conformance::test_seed();
  SCOPED_TRACE("SDR_TEST_SEED=" + std::to_string(seed));
  std::mt19937 random(seed);
  UdpDevice device;
  auto a = device.create_endpoint(options_with(kPayload)).value();
  auto b = device.create_endpoint(options_with(kPayload)).value();
  ASSERT_TRUE(a->connect(b->info()).ok());
  ASSERT_TRUE(b->connect(a->info()).ok());
  std::vector<std::byte> memory(std::size_t{kMost} * kPayload);
  std::vector<std::byte> data(memory.size());
  EXPECT_TRUE(b->expose(SlotIndex(0), Generation(0), memory).ok());
  for (int round = 0; round < 20; ++round) {
    for (std::byte& byte : data) byte = static_cast<std::byte>(random());
    std::fill(memory.begin(), memory.end(), kCanary);
    const auto count = static_cast<std::uint32_t>(round == 0 ? kMost : 1 + random() % kMost);
    std::vector<Packet> packets;
    for (std::uint32_t i = 0; i < count; ++i) {
      // A short packet ends a run.
      const auto length = static_cast<std::uint16_t>(random() % 16 == 0 ? 1 + random() % kPayload : kPayload);
      packets.push_back({.local = &data[std::size_t{i} * kPayload],
                         .immediate = core::ImmediateLayout{}.encode(SlotIndex(0), PacketOffset(i), 0),
                         .length = round == 0 ? kPayload : length});
    }
    const std::uint64_t calls_before = b->counters().receive_calls;
    std::uint32_t landed = 0;
    for (std::size_t sent = 0; sent < packets.size();) {
      // No more at a time than the smallest socket buffer holds.
      const auto some = std::span(packets).subspan(sent, std::min<std::size_t>(packets.size() - sent, 100));
      ASSERT_EQ(a->write(some, {}), some.size());
      sent += some.size();
      std::array<Completion, Endpoint::kPollBatch> out;
      while (landed < sent) {
        wait_readable(b->channel_fd(ChannelIndex(0)));
        const std::size_t n = b->poll(ChannelIndex(0), out, {});
        ASSERT_NE(n, 0U);
        for (std::size_t i = 0; i < n; ++i, ++landed) {
          ASSERT_EQ(out[i].immediate, packets[landed].immediate);
          ASSERT_EQ(out[i].length, packets[landed].length);
        }
      }
    }
    for (std::uint32_t i = 0; i < count; ++i) {
      const auto place = std::span(memory).subspan(std::size_t{i} * kPayload, kPayload);
      const auto from = std::span(data).subspan(std::size_t{i} * kPayload, packets[i].length);
      ASSERT_TRUE(std::equal(from.begin(), from.end(), place.begin()));
      ASSERT_THAT(place.subspan(packets[i].length), testing::Each(kCanary));
    }
    // 100 packets of 1040 bytes are two batches; the first call of all expects no run.
    const UdpSocket::Offload offload = UdpSocket::open(local_address("127.0.0.1").value(), {}).value().offload();
    if (round == 0 && offload.segmentation && offload.coalescing) {
      EXPECT_LE(b->counters().receive_calls - calls_before, 2 * kMost / 100U);
    }
  }
}

TEST(Udp, PeerThatIsGone_CostsOnlyThePacketsSentToIt) {
  auto network = conformance::UdpNetwork::make({}, {}, options_with(256), options_with(256));
  ASSERT_NE(network, nullptr);
  const std::array<std::byte, 256> bytes{};
  const std::vector<Packet> packets(3, Packet{.local = bytes.data(), .length = 256});
  network->close_b();
  std::array<Completion, Endpoint::kPollBatch> out;
  std::array<std::byte, UdpDevice::kMaxControl> into;
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(network->a().write(packets, {}), packets.size());
    network->a().send_control(bytes, {});
    EXPECT_EQ(network->a().poll(ChannelIndex(0), out, {}), 0U);
    EXPECT_FALSE(network->a().receive_control(into, {}).has_value());
  }
  const EndpointCounters counters = network->a().counters();
  EXPECT_EQ(counters.packets_sent + counters.dropped_by_host, 20 * packets.size());
}

TEST(Udp, Port_InUse_IsOneLineThatNamesIt) {
  UdpSocket taken = open_socket("127.0.0.1");
  const std::uint16_t port = taken.local().port();
  UdpDevice device({.base_port = port});
  const auto made = device.create_endpoint(options_with(256));
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().code, ErrorCode::System);
  EXPECT_THAT(made.error().message, HasSubstr(std::to_string(port)));
  EXPECT_THAT(made.error().message, HasSubstr("in use"));
  EXPECT_THAT(made.error().message, testing::Not(HasSubstr("\n")));
}

TEST(Udp, BasePort_PutsControlFirstAndTheChannelsBehind) {
  EndpointOptions options = options_with(256);
  options.channels = 3;
  for (int attempt = 0; attempt < 50; ++attempt) {  // until the kernel points at four free ports in a row
    const std::uint16_t base = open_socket("127.0.0.1").local().port();
    if (base > 65000) continue;
    UdpDevice device({.base_port = base});
    const auto made = device.create_endpoint(options);
    if (!made) continue;
    const auto info = udp_wire::parse_info((*made)->info()).value();
    EXPECT_EQ(info.control_port, base);
    EXPECT_THAT(info.data_ports, testing::ElementsAre(base + 1, base + 2, base + 3));
    return;
  }
  FAIL() << "no four free ports in a row";
}

TEST(Udp, BasePort_TooHighForTheChannels_IsInvalidArgument) {
  const auto made = UdpDevice({.base_port = 65535}).create_endpoint(options_with(256));
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().code, ErrorCode::InvalidArgument);
  EXPECT_THAT(made.error().message, HasSubstr("65535"));
}

TEST(Udp, Payload_BeyondThePathsMtu_IsRefusedWithAllNumbers) {
  UdpDevice device({.bind_address = "::1"});
  constexpr std::uint16_t kTooLarge = 65488;  // with 64 bytes of headers more than loopback's 65536
  auto a = device.create_endpoint(options_with(kTooLarge)).value();
  auto b = device.create_endpoint(options_with(kTooLarge)).value();
  const auto connected = a->connect(b->info());
  ASSERT_FALSE(connected.ok());
  EXPECT_EQ(connected.error().code, ErrorCode::InvalidArgument);
  EXPECT_THAT(connected.error().message, HasSubstr("65488"));
  EXPECT_THAT(connected.error().message, HasSubstr("64 bytes of headers"));
  EXPECT_THAT(connected.error().message, HasSubstr("MTU of 65536"));
}

TEST(Udp, LargestPayload_GoesThroughInOnePacket) {
  constexpr std::uint16_t kLargest = 65488;
  for (const bool batched : {true, false}) {
    const UdpOptions udp{.segmentation = batched, .coalescing = batched};
    auto network = conformance::UdpNetwork::make(udp, udp, options_with(kLargest), options_with(kLargest));
    ASSERT_NE(network, nullptr);
    std::vector<std::byte> memory(kLargest), bytes(kLargest, std::byte{3});
    EXPECT_TRUE(network->b().expose(SlotIndex(0), Generation(0), memory).ok());
    const Packet packet{.local = bytes.data(), .length = kLargest};
    ASSERT_EQ(network->a().write({&packet, 1}, {}), 1U);
    wait_readable(network->b().channel_fd(ChannelIndex(0)));
    std::array<Completion, Endpoint::kPollBatch> out;
    EXPECT_EQ(network->b().poll(ChannelIndex(0), out, {}), 1U);
    EXPECT_TRUE(memory == bytes);
  }
}

TEST(Udp, Connect_ToAnEndpointSetUpDifferently_NamesTheFieldAndBothValues) {
  UdpDevice device;
  UdpDevice ipv6({.bind_address = "::1"});
  EndpointOptions more_channels = options_with(256);
  more_channels.channels = 2;
  auto a = device.create_endpoint(options_with(256)).value();
  const auto message = [&](Device& of, const EndpointOptions& options) {
    const auto connected = a->connect(of.create_endpoint(options).value()->info());
    if (connected.ok()) return std::string("no error");
    EXPECT_EQ(connected.error().code, ErrorCode::Mismatch);
    return connected.error().message;
  };
  EXPECT_EQ(message(device, more_channels), "this end has 1 channels, the peer 2");
  EXPECT_EQ(message(device, options_with(512)), "this end has a payload of 256 bytes a packet, the peer 512");
  EXPECT_EQ(message(ipv6, options_with(256)), "this end uses IPv4, the peer IPv6");
}

TEST(Udp, Addresses_AreAdvertisedAsTold) {
  const auto advertised = [](const UdpOptions& udp) {
    const auto made = UdpDevice(udp).create_endpoint(options_with(256));
    if (!made) return made.error().message;
    const auto info = udp_wire::parse_info((*made)->info()).value();
    return SocketAddress(std::span(info.address).first(info.ip_version == 4 ? 4 : 16), 0).host();
  };
  EXPECT_EQ(advertised({}), "127.0.0.1");
  EXPECT_EQ(advertised({.bind_address = "lo"}), "127.0.0.1");
  EXPECT_EQ(advertised({.bind_address = "0.0.0.0"}), "127.0.0.1");
  EXPECT_EQ(advertised({.bind_address = "0.0.0.0", .advertise_address = "198.51.100.7"}), "198.51.100.7");
  EXPECT_EQ(advertised({.advertise_address = "198.51.100.7"}), "198.51.100.7");
  EXPECT_EQ(advertised({.bind_address = "::1"}), "::1");
  EXPECT_THAT(advertised({.bind_address = "nosuchif0"}), HasSubstr("\"nosuchif0\" is neither"));
  EXPECT_THAT(advertised({.bind_address = "::1", .advertise_address = "127.0.0.1"}),
              HasSubstr("different IP versions"));
}

TEST(Udp, MaxPayload_IsCappedOnLoopbackAndAMultipleOfEight) {
  UdpDevice device;
  for (const std::string remote : {"", "127.0.0.1", "127.0.0.1:5201", "::1", "[::1]:5201"}) {
    const auto payload = device.max_payload(remote);
    ASSERT_TRUE(payload.ok()) << payload.error().message;
    EXPECT_EQ(*payload, UdpDevice::kMaxSuggestedPayload) << remote;
  }
  EXPECT_EQ(UdpDevice({.bind_address = "0.0.0.0"}).max_payload("").value(), 1456) << "Ethernet, when nothing is known";
  EXPECT_FALSE(device.max_payload("[::1").ok());
}

TEST(Udp, Facts_NameOverheadAndLocalPath) {
  for (const std::string address : {"127.0.0.1", "::1"}) {
    const UdpOptions udp{.bind_address = address};
    auto network = conformance::UdpNetwork::make(udp, udp, options_with(256), options_with(256));
    ASSERT_NE(network, nullptr);
    EXPECT_EQ(network->a().facts().packet_overhead, address == "::1" ? 64 : 44);
    EXPECT_TRUE(network->a().facts().local_path);
    EXPECT_TRUE(network->a().facts().copies_on_write);
    EXPECT_THAT(network->a().peer_name(), HasSubstr(address));
  }
}

TEST(Udp, ReceiveBuffer_HoldsAsMuchUnreadAsFactsSay) {
  for (const std::uint16_t payload : std::initializer_list<std::uint16_t>{64, 1440, 4096}) {
    const UdpOptions plain{.segmentation = false, .coalescing = false};
    auto network = conformance::UdpNetwork::make(plain, plain, options_with(payload), options_with(payload));
    ASSERT_NE(network, nullptr);
    std::vector<std::byte> memory(payload);
    EXPECT_TRUE(network->b().expose(SlotIndex(0), Generation(0), memory).ok());
    const std::size_t packets = network->b().facts().receive_buffer / payload;
    const std::vector<Packet> batch(packets, Packet{.local = memory.data(), .length = payload});
    std::array<Completion, Endpoint::kPollBatch> out;
    for (int round = 0; round < 3; ++round) {
      ASSERT_EQ(network->a().write(batch, {}), packets);
      std::size_t got = 0;
      for (int idle = 0; got < packets && idle < 1000; ++idle) {
        const std::size_t n = network->b().poll(ChannelIndex(0), out, {});
        got += n;
        if (n == 0) network->step();
      }
      EXPECT_EQ(got, packets) << "payload " << payload;
    }
    EXPECT_EQ(network->b().counters().dropped_by_host, 0U);
  }
}

TEST(Udp, Overflow_OfTheReceiveBuffer_IsCountedToThePacket) {
  const UdpOptions plain{.segmentation = false, .coalescing = false};
  for (const bool coalescing : {true, false}) {
    constexpr std::uint16_t kPayload = 4096;
    auto network = conformance::UdpNetwork::make(plain, {.coalescing = coalescing}, options_with(kPayload),
                                                 options_with(kPayload));
    ASSERT_NE(network, nullptr);
    std::vector<std::byte> memory(kPayload);
    EXPECT_TRUE(network->b().expose(SlotIndex(0), Generation(0), memory).ok());
    // The endpoint asks for 64 MiB, of which the kernel makes 128, and a packet takes two of its pages.
    constexpr std::size_t packets = 2 * (std::size_t{128} << 20) / (2 * kPayload);
    const std::vector<Packet> batch(packets, Packet{.local = memory.data(), .length = kPayload});
    ASSERT_EQ(network->a().write(batch, {}), packets);
    std::array<Completion, Endpoint::kPollBatch> out;
    std::uint64_t sent = packets;
    const auto accounted = [&] {
      const EndpointCounters c = network->b().counters();
      return c.packets_received + c.dropped_by_host == sent;
    };
    // The kernel tells of drops with the datagrams that come after them, so a few more are needed.
    for (int extra = 0; extra < 1000 && !(extra > 0 && accounted()); ++extra) {
      while (network->b().poll(ChannelIndex(0), out, {}) != 0) continue;
      if (accounted()) break;
      sent += network->a().write(std::span(batch).first(1), {});
      network->step();
      network->b().poll(ChannelIndex(0), out, {});
    }
    EXPECT_TRUE(accounted()) << "received " << network->b().counters().packets_received << " + dropped "
                             << network->b().counters().dropped_by_host << " of " << sent;
    EXPECT_GT(network->b().counters().dropped_by_host, 0U);
  }
}

TEST(Udp, ChannelsPolledByThreadsOfTheirOwn_WhileTheDriverSends_LoseNothing) {
  constexpr std::uint16_t kPayload = 1024;
  constexpr std::uint32_t kPerSlot = 64;
  EndpointOptions options = options_with(kPayload);
  options.channels = 2;
  auto network = conformance::UdpNetwork::make({}, {}, options, options);
  ASSERT_NE(network, nullptr);
  std::atomic<std::uint64_t> completed{0};
  std::atomic<bool> stop{false};
  std::vector<std::thread> pollers;
  for (std::uint8_t c = 0; c < options.channels; ++c) {
    pollers.emplace_back([&, c] {
      std::array<Completion, Endpoint::kPollBatch> out;
      while (!stop) {
        const std::size_t n = network->b().poll(ChannelIndex(c), out, {});
        completed += n;
        if (n == 0) wait_readable(network->b().channel_fd(ChannelIndex(c)), 1);
      }
    });
  }
  const std::vector<std::byte> bytes(kPerSlot * kPayload, std::byte{5});
  std::vector<std::vector<std::byte>> memory(options.slots, std::vector<std::byte>(bytes.size()));
  std::uint64_t sent = 0;
  for (std::uint32_t slot = 0; slot < options.slots; ++slot) {
    EXPECT_TRUE(network->b().expose(SlotIndex(slot), Generation(1), memory[slot]).ok());
    std::vector<Packet> packets;
    for (std::uint32_t i = 0; i < kPerSlot; ++i) {
      packets.push_back({.local = bytes.data() + i * std::size_t{kPayload},
                         .immediate = options.layout.encode(SlotIndex(slot), PacketOffset(i), 0),
                         .length = kPayload,
                         .generation = Generation(1),
                         .channel = ChannelIndex(static_cast<std::uint8_t>(i / 16 % 2))});
    }
    for (std::size_t taken = 0; taken < packets.size();) {
      taken += network->a().write(std::span(packets).subspan(taken), {});
    }
    sent += packets.size();
    for (int idle = 0; completed != sent && idle < 20000; ++idle)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    network->b().retract(SlotIndex(slot));
    EXPECT_EQ(network->b().counters().packets_received, sent);
  }
  stop = true;
  for (auto& poller : pollers) poller.join();
  EXPECT_THAT(memory, testing::Each(bytes));
}

TEST(Udp, Batching_SavesSystemCalls) {
  auto network = conformance::UdpNetwork::make({}, {}, options_with(1024), options_with(1024));
  ASSERT_NE(network, nullptr);
  auto probe = UdpSocket::open(local_address("127.0.0.1").value(), {});
  ASSERT_TRUE(probe.ok());
  if (!probe->offload().segmentation || !probe->offload().coalescing) GTEST_SKIP() << "this kernel does not batch";
  std::vector<std::byte> memory(1024);
  EXPECT_TRUE(network->b().expose(SlotIndex(0), Generation(0), memory).ok());
  const std::vector<Packet> packets(256, Packet{.local = memory.data(), .length = 1024});
  ASSERT_EQ(network->a().write(packets, {}), packets.size());
  EXPECT_LE(network->a().counters().send_calls, 5U);
}

}  // namespace
}  // namespace sdr::transport

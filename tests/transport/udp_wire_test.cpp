// The UDP wire grammar by itself: what it says comes back, and nothing else is taken.
#include "transport/udp_wire.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

namespace sdr::transport::udp_wire {
namespace {

std::uint32_t test_seed() {
  if (const char* given = std::getenv("SDR_TEST_SEED"))
    return static_cast<std::uint32_t>(std::strtoul(given, nullptr, 0));
  return std::random_device{}();
}

std::vector<std::byte> random_bytes(std::mt19937& random, std::size_t size) {
  std::vector<std::byte> bytes(size);
  for (auto& b : bytes) b = static_cast<std::byte>(random());
  return bytes;
}

PeerInfo sample_info(std::uint8_t ip_version) {
  PeerInfo info{.ip_version = ip_version, .payload = 4096, .token = 0x0102030405060708, .control_port = 5201};
  for (std::size_t i = 0; i < (ip_version == 4 ? 4U : 16U); ++i) info.address[i] = static_cast<std::byte>(i + 1);
  info.data_ports = {5202, 65535, 1};
  return info;
}

TEST(UdpWire, DataHeader_IsWhatTheDocumentationSays) {
  std::array<std::byte, kHeaderSize> bytes;
  encode_data(bytes.data(), {.token = 0x0102030405060708, .immediate = 0x0a0b0c0d, .length = 0, .generation = 7});
  const std::array<int, kHeaderSize> expected{1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 13, 0, 0, 0x11, 7};
  for (std::size_t i = 0; i < kHeaderSize; ++i) EXPECT_EQ(std::to_integer<int>(bytes[i]), expected[i]) << "byte " << i;
}

TEST(UdpWire, DataPacket_CutAnywhereOrExtended_IsMalformed) {
  constexpr std::uint16_t kLength = 100;
  std::vector<std::byte> bytes(kHeaderSize + kLength + 1);
  encode_data(bytes.data(), {.token = 1, .immediate = 2, .length = kLength, .generation = 3});
  for (std::size_t size = 0; size <= bytes.size(); ++size) {
    EXPECT_EQ(parse_data(std::span(bytes).first(size)).has_value(), size == kHeaderSize + kLength) << size << " bytes";
  }
}

TEST(UdpWire, DataPacket_OfEveryOtherKindOrVersion_IsMalformed) {
  std::array<std::byte, kHeaderSize> bytes;
  encode_data(bytes.data(), {.token = 1});
  for (int kind = 0; kind < 256; ++kind) {
    bytes[14] = static_cast<std::byte>(kind);
    EXPECT_EQ(parse_data(bytes).has_value(), kind == kDataKind);
  }
}

TEST(UdpWire, ControlHeader_WithAnyBitOfKindOrReservedChanged_IsMalformed) {
  const auto good = encode_control(0x1122334455667788);
  EXPECT_EQ(parse_control(good), 0x1122334455667788U);
  for (std::size_t size = 0; size < good.size(); ++size) EXPECT_FALSE(parse_control(std::span(good).first(size)));
  for (std::size_t bit = 64; bit < 8 * kHeaderSize; ++bit) {
    auto changed = good;
    changed[bit / 8] ^= std::byte{1} << (bit % 8);
    EXPECT_FALSE(parse_control(changed)) << "bit " << bit;
  }
}

TEST(UdpWire, PeerInfo_ComesBackAsItWas) {
  for (const std::uint8_t version : {std::uint8_t{4}, std::uint8_t{6}}) {
    const PeerInfo info = sample_info(version);
    const auto parsed = parse_info(encode_info(info));
    ASSERT_TRUE(parsed.ok()) << parsed.error().message;
    EXPECT_EQ(parsed->ip_version, version);
    EXPECT_EQ(parsed->address, info.address);
    EXPECT_EQ(parsed->payload, info.payload);
    EXPECT_EQ(parsed->token, info.token);
    EXPECT_EQ(parsed->control_port, info.control_port);
    EXPECT_EQ(parsed->data_ports, info.data_ports);
  }
}

TEST(UdpWire, PeerInfo_CutAnywhere_IsAProtocolErrorWithAMessage) {
  const auto bytes = encode_info(sample_info(6));
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const auto parsed = parse_info(std::span(bytes).first(size));
    ASSERT_FALSE(parsed.ok()) << size << " bytes";
    EXPECT_EQ(parsed.error().code, ErrorCode::Protocol);
    EXPECT_NE(parsed.error().message.find("UDP info"), std::string::npos);
  }
}

TEST(UdpWire, PeerInfo_OfAnotherVersion_NamesBoth) {
  auto bytes = encode_info(sample_info(4));
  bytes[4] = std::byte{9};
  const auto parsed = parse_info(bytes);
  ASSERT_FALSE(parsed.ok());
  EXPECT_NE(parsed.error().message.find("version 9"), std::string::npos) << parsed.error().message;
  EXPECT_NE(parsed.error().message.find("version 1"), std::string::npos) << parsed.error().message;
}

TEST(UdpWire, PeerInfo_WithPortZero_IsRefused) {
  PeerInfo info = sample_info(4);
  info.data_ports[1] = 0;
  EXPECT_FALSE(parse_info(encode_info(info)).ok());
}

TEST(UdpWire, RandomBytes_NeverParseToMoreThanTheyHold) {
  const std::uint32_t seed = test_seed();
  SCOPED_TRACE(testing::Message() << "SDR_TEST_SEED=" << seed);
  std::mt19937 random(seed);
  const auto info = encode_info(sample_info(4));
  for (int round = 0; round < 20000; ++round) {
    auto bytes = random_bytes(random, random() % 80);
    if (bytes.size() > 14 && round % 2 == 0) bytes[14] = std::byte{kDataKind};
    if (const auto header = parse_data(bytes)) {
      EXPECT_EQ(header->length + kHeaderSize, bytes.size());
    }
    (void)parse_control(bytes);
    (void)parse_info(bytes);
    auto mutated = info;  // one byte off: parsed or refused, never read beyond its end (the sanitizers watch)
    mutated[random() % mutated.size()] = static_cast<std::byte>(random());
    if (const auto parsed = parse_info(mutated)) {
      EXPECT_GE(parsed->data_ports.size(), 1U);
    }
  }
}

}  // namespace
}  // namespace sdr::transport::udp_wire

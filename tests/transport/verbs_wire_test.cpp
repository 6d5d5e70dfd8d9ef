// What verbs endpoints tell each other, and the texts that name a device.
#include "transport/verbs_wire.hpp"

#include <gtest/gtest.h>

#include <random>

#include "conformance.hpp"
#include "sdr/device.hpp"
#include "transport/verbs.hpp"

namespace sdr::transport::verbs_wire {
namespace {

PeerInfo example() {
  VerbsGid gid{.prefix_bits = 24};
  gid.bytes[10] = gid.bytes[11] = std::byte{0xFF};
  gid.bytes[12] = std::byte{192};
  gid.bytes[15] = std::byte{7};
  PeerInfo info{.payload = 4096,
                .port_mtu = 4096,
                .channels = 2,
                .generations = 3,
                .token = 0x1122334455667788,
                .control_qpn = 17,
                .control_qkey = 0x1234567,
                .gids = {gid, gid},
                .qpns = {18, 19, 20, 0xFFFFFF, 1, 21}};
  info.gids[1].version = RoceVersion::V1;
  return info;
}

TEST(VerbsWire, Info_ComesBackAsItWas) {
  const PeerInfo info = example();
  const auto parsed = parse_info(encode_info(info));
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  EXPECT_EQ(parsed->payload, info.payload);
  EXPECT_EQ(parsed->port_mtu, info.port_mtu);
  EXPECT_EQ(parsed->token, info.token);
  EXPECT_EQ(parsed->control_qpn, info.control_qpn);
  EXPECT_EQ(parsed->control_qkey, info.control_qkey);
  EXPECT_EQ(parsed->gids, info.gids);
  EXPECT_EQ(parsed->qpns, info.qpns);
}

TEST(VerbsWire, InfoOfManyQueuePairsInARow_IsSmall) {
  PeerInfo info = example();
  info.channels = 64;
  info.generations = 8;
  info.qpns.clear();
  for (std::uint32_t i = 0; i < 512; ++i) info.qpns.push_back(1000 + i);
  EXPECT_LT(encode_info(info).size(), 640U);
  EXPECT_TRUE(parse_info(encode_info(info)).ok());
}

TEST(VerbsWire, Info_CutShortOrWithABitTurned_IsNoCrash) {
  const std::vector<std::byte> good = encode_info(example());
  for (std::size_t length = 0; length < good.size(); ++length)
    EXPECT_FALSE(parse_info(std::span(good).first(length)).ok()) << length;
  const std::uint32_t seed = conformance::test_seed();
  SCOPED_TRACE(testing::Message() << "SDR_TEST_SEED=" << seed);
  std::mt19937 random(seed);
  for (int i = 0; i < 20000; ++i) {
    std::vector<std::byte> bad = good;
    for (unsigned n = 1 + random() % 4; n > 0; --n) bad[random() % bad.size()] = static_cast<std::byte>(random());
    if (const auto parsed = parse_info(bad); !parsed) {
      EXPECT_FALSE(parsed.error().message.empty());
    }
  }
}

TEST(VerbsWire, Aim_CarriesFortyBitsOfAddressAndLength) {
  const Target target{.rkey = 0xDEADBEEF, .address = kMostAddressed - 1, .length = kMostAddressed - 2, .tag = 0xABCD};
  const Aim aim = encode_aim(target);
  EXPECT_EQ(aim.size, kAimSize);
  const Target back = decode_aim(aim);
  EXPECT_EQ(back.rkey, target.rkey);
  EXPECT_EQ(back.address, target.address);
  EXPECT_EQ(back.length, target.length);
  EXPECT_EQ(back.tag, target.tag);
  EXPECT_EQ(decode_aim(Aim{}).length, 0U);
}

TEST(VerbsOptions, Texts_SetWhatTheySay) {
  const auto plain = parse_verbs_options("mlx5_0");
  ASSERT_TRUE(plain.ok());
  EXPECT_EQ(plain->device, "mlx5_0");
  EXPECT_FALSE(plain->gid.has_value());
  const auto full = parse_verbs_options("rxe0,gid=3,port=2,keys=window");
  ASSERT_TRUE(full.ok()) << full.error().message;
  EXPECT_EQ(full->gid, 3U);
  EXPECT_EQ(full->port, 2);
  EXPECT_EQ(full->keys, VerbsKeys::Window);
  EXPECT_FALSE(parse_verbs_options("rxe0,gid=auto")->gid.has_value());
}

TEST(VerbsOptions, WrongTexts_AreInvalidArgumentsThatNameThePart) {
  for (const char* text :
       {"", ",gid=1", "rxe0,gid=x", "rxe0,gid=256", "rxe0,port=0", "rxe0,keys=root", "rxe0,mtu=1", "rxe0,gid"}) {
    const auto parsed = parse_verbs_options(text);
    ASSERT_FALSE(parsed.ok()) << text;
    EXPECT_EQ(parsed.error().code, ErrorCode::InvalidArgument) << text;
    EXPECT_FALSE(parsed.error().message.empty());
  }
}

TEST(VerbsOptions, DeviceThatIsNotThere_IsAnErrorThatSaysSo) {
  const auto device = open_device("verbs:no-such-device");
  ASSERT_FALSE(device.ok());
  EXPECT_EQ(device.error().code, ErrorCode::System);
  EXPECT_NE(device.error().message.find("no-such-device"), std::string::npos) << device.error().message;
  const auto bare = open_device("no-such-device");
  ASSERT_FALSE(bare.ok());
  EXPECT_EQ(bare.error().code, ErrorCode::InvalidArgument);
}

}  // namespace
}  // namespace sdr::transport::verbs_wire

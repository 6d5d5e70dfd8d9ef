// The choice of GIDs, from tables alone.
#include "transport/verbs_gid.hpp"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>

#include "conformance.hpp"

namespace sdr::transport {
namespace {

using conformance::test_seed;

VerbsGid gid(const std::string& address, std::uint32_t index = 0, std::uint8_t prefix = VerbsGid::kUnknownPrefix,
             RoceVersion version = RoceVersion::V2) {
  VerbsGid made{.version = version, .prefix_bits = prefix, .index = index};
  const std::string text = address.find(':') == std::string::npos ? "::ffff:" + address : address;
  EXPECT_EQ(inet_pton(AF_INET6, text.c_str(), made.bytes.data()), 1) << address;
  return made;
}

std::string chosen(const std::vector<VerbsGid>& own, const std::vector<VerbsGid>& peer) {
  const auto pair = choose_gids(own, peer);
  return pair ? pair->own.to_string() + " to " + pair->peer.to_string() : "none";
}

TEST(VerbsGids, RoutableAddressOfThePeersSubnet_IsPreferred) {
  EXPECT_EQ(chosen({gid("fe80::1"), gid("192.0.2.1"), gid("198.51.100.1")}, {gid("fe80::2"), gid("198.51.100.2")}),
            "198.51.100.1 to 198.51.100.2");
}

TEST(VerbsGids, LinkLocal_IsNeverTakenWhereAnotherExists) {
  EXPECT_EQ(chosen({gid("fe80::1"), gid("192.0.2.1")}, {gid("fe80::2"), gid("203.0.113.9")}),
            "192.0.2.1 to 203.0.113.9");
  EXPECT_EQ(chosen({gid("169.254.1.1"), gid("2001:db8::1")}, {gid("169.254.1.2"), gid("2001:db8:1::2")}),
            "2001:db8::1 to 2001:db8:1::2");
}

TEST(VerbsGids, LinkLocal_WillDoWhereThereIsNoOther) {
  EXPECT_EQ(chosen({gid("fe80::1")}, {gid("fe80::2"), gid("192.0.2.1")}), "fe80::1 to fe80::2");
}

TEST(VerbsGids, RoceV2_IsPreferredToV1OfTheSameAddress) {
  const std::vector own{gid("192.0.2.1", 0, 24, RoceVersion::V1), gid("192.0.2.1", 1)};
  const auto pair = choose_gids(own, std::vector{gid("192.0.2.2", 0, 24, RoceVersion::V1), gid("192.0.2.2", 1)});
  ASSERT_TRUE(pair.has_value());
  EXPECT_EQ(pair->own.index, 1U);
  EXPECT_EQ(pair->peer.version, RoceVersion::V2);
}

TEST(VerbsGids, IpVersionsAndRoceVersions_AreNeverMixed) {
  EXPECT_EQ(chosen({gid("192.0.2.1")}, {gid("2001:db8::1")}), "none");
  EXPECT_EQ(chosen({gid("192.0.2.1", 0, 24, RoceVersion::V1)}, {gid("192.0.2.2")}), "none");
  EXPECT_EQ(chosen({}, {gid("192.0.2.2")}), "none");
}

TEST(VerbsGids, CommonSubnet_GoesByTheNetmask) {
  const std::vector peer{gid("10.1.2.3", 0, 16), gid("2001:db8::2", 0, 64)};
  EXPECT_EQ(chosen({gid("10.1.9.9", 0, 16), gid("2001:db8::1", 0, 64)}, peer), "10.1.9.9 to 10.1.2.3");
  // In /24 these are strangers, so that the IPv6 addresses of one subnet win.
  EXPECT_EQ(chosen({gid("10.1.9.9", 0, 24), gid("2001:db8::1", 0, 64)}, {gid("10.1.2.3", 0, 24), peer[1]}),
            "2001:db8::1 to 2001:db8::2");
}

TEST(VerbsGids, Ipv6_AloneWorks) {
  EXPECT_EQ(chosen({gid("fe80::1"), gid("2001:db8::1")}, {gid("2001:db8::2"), gid("fe80::2")}),
            "2001:db8::1 to 2001:db8::2");
}

TEST(VerbsGids, BothEnds_ComeToTheSamePair) {
  const std::uint32_t seed = test_seed();
  SCOPED_TRACE(testing::Message() << "SDR_TEST_SEED=" << seed);
  std::mt19937 random(seed);
  const std::vector<std::string> addresses{"192.0.2.1",   "192.0.2.2",     "198.51.100.3", "169.254.0.4", "10.0.0.5",
                                           "2001:db8::6", "2001:db8:1::7", "fe80::8",      "fe80::9",     "10.0.1.10"};
  for (int trial = 0; trial < 2000; ++trial) {
    const auto table = [&] {
      std::vector<VerbsGid> some;
      const std::size_t count = 1 + random() % 5;
      for (std::uint32_t i = 0; i < count; ++i) {
        const std::uint8_t prefix = random() % 2 == 0 ? VerbsGid::kUnknownPrefix : std::uint8_t{22};
        some.push_back(gid(addresses[random() % addresses.size()], i, prefix,
                           random() % 4 == 0 ? RoceVersion::V1 : RoceVersion::V2));
      }
      return some;
    };
    const auto a = table();
    const auto b = table();
    const auto here = choose_gids(a, b);
    const auto there = choose_gids(b, a);
    ASSERT_EQ(here.has_value(), there.has_value());
    if (!here) continue;
    EXPECT_EQ(here->own.bytes, there->peer.bytes);
    EXPECT_EQ(here->peer.bytes, there->own.bytes);
    EXPECT_EQ(here->own.version, there->own.version);
  }
}

TEST(VerbsGids, UsableOnes_ComeBestFirstAndWithoutEmptyEntries) {
  const auto usable = usable_gids(std::vector{VerbsGid{}, gid("fe80::1", 1), gid("2001:db8::1", 2), gid("192.0.2.1", 3),
                                              gid("192.0.2.1", 4, 24, RoceVersion::V1)},
                                  3);
  std::vector<std::uint32_t> order;
  for (const VerbsGid& g : usable) order.push_back(g.index);
  EXPECT_THAT(order, testing::ElementsAre(3, 2, 1));
}

}  // namespace
}  // namespace sdr::transport

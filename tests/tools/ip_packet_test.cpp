#include "sdr/ip_packet.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <vector>

namespace sdr::cli {
namespace {

using Packet = std::vector<std::byte>;

Packet bytes_of(std::initializer_list<unsigned> values, std::size_t size) {
  Packet packet(size);
  std::size_t i = 0;
  for (const unsigned value : values) packet[i++] = static_cast<std::byte>(value);
  return packet;
}

// RFC 1071 over the header as a receiver computes it: zero when the checksum is right.
std::uint16_t checksum_error(const Packet& packet) {
  unsigned sum = 0;
  for (std::size_t i = 0; i < 20; i += 2) {
    sum += std::to_integer<unsigned>(packet[i]) << 8 | std::to_integer<unsigned>(packet[i + 1]);
  }
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<std::uint16_t>(~sum);
}

// A UDP packet of 60 bytes from 10.0.0.1 to 10.0.0.2 with a right checksum.
Packet ipv4(unsigned tos, unsigned identification, unsigned last_of_destination = 2, unsigned first = 10) {
  Packet packet =
      bytes_of({0x45, tos,   0, 60, identification >> 8, identification & 0xff, 0x40, 0, 64, 17, 0, 0, 10, 0, 0,
                1,    first, 0, 0,  last_of_destination},
               60);
  const unsigned checksum = checksum_error(packet);
  packet[10] = static_cast<std::byte>(checksum >> 8);
  packet[11] = static_cast<std::byte>(checksum);
  return packet;
}

Packet ipv6(unsigned traffic_class, std::initializer_list<unsigned> destination) {
  Packet packet = bytes_of({0x60 | traffic_class >> 4, (traffic_class & 15) << 4, 0, 0, 0, 20, 17, 64, 0xfd}, 60);
  std::size_t i = 24;
  for (const unsigned value : destination) packet[i++] = static_cast<std::byte>(value);
  return packet;
}

TEST(IpPacket, Mark_SetsCongestionExperiencedAndMendsTheChecksum) {
  for (const unsigned ect : {1U, 2U}) {
    for (unsigned identification = 0; identification < 65536; identification += 7) {
      Packet packet = ipv4(0xb8 | ect, identification);
      ASSERT_EQ(checksum_error(packet), 0);
      IpPacket view(packet);
      ASSERT_TRUE(view.ecn_capable());
      view.mark();
      ASSERT_EQ(view.ecn(), 3U);
      ASSERT_EQ(packet[1], std::byte{0xbb}) << "the other bits stay";
      ASSERT_EQ(checksum_error(packet), 0) << identification;
      const Packet once = packet;
      view.mark();
      ASSERT_EQ(checksum_error(packet), 0) << "marking twice";
      ASSERT_EQ(packet[1], once[1]);
    }
  }
}

TEST(IpPacket, Mark_OfIpv6_LeavesTheRestOfTheClassAndTheFlow) {
  Packet packet = ipv6(0xb9, {0xfd});
  IpPacket view(packet);
  EXPECT_TRUE(view.ecn_capable());
  view.mark();
  EXPECT_EQ(view.ecn(), 3U);
  EXPECT_EQ(packet[0], std::byte{0x6b});
  EXPECT_EQ(packet[1], std::byte{0xb0});
}

TEST(IpPacket, NotEct_IsNotCapable) {
  Packet four = ipv4(0xb8, 1);
  Packet six = ipv6(0xb8, {0xfd});
  EXPECT_FALSE(IpPacket(four).ecn_capable());
  EXPECT_FALSE(IpPacket(six).ecn_capable());
}

TEST(IpPacket, WhatARouterWouldNotPassOn_IsNotRoutable) {
  const auto routable = [](Packet packet) { return IpPacket(packet).routable(); };
  EXPECT_TRUE(routable(ipv4(0, 1)));
  EXPECT_FALSE(routable(ipv4(0, 1, 251, 224))) << "multicast";
  EXPECT_FALSE(routable(ipv4(0, 1, 255, 255))) << "broadcast";
  EXPECT_TRUE(routable(ipv6(0, {0xfd})));
  EXPECT_FALSE(routable(ipv6(0, {0xff, 0x02}))) << "multicast";
  EXPECT_FALSE(routable(ipv6(0, {0xfe, 0x80}))) << "link-local";
  EXPECT_FALSE(routable({})) << "nothing";
  EXPECT_FALSE(routable(bytes_of({0x60}, 39))) << "short";
  EXPECT_FALSE(routable(bytes_of({0x50}, 60))) << "no IP";
}

}  // namespace
}  // namespace sdr::cli

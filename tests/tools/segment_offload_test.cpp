#include "sdr/segment_offload.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

namespace sdr::cli {
namespace {

using Bytes = std::vector<std::byte>;

// SDR_TEST_SEED repeats a failed run.
std::uint64_t test_seed(std::uint64_t fallback) {
  const char* text = std::getenv("SDR_TEST_SEED");
  return text == nullptr ? fallback : std::strtoull(text, nullptr, 10);
}

struct Flow {
  bool ipv6 = false;
  bool tcp = false;
  std::uint16_t port = 7000;
  std::uint8_t traffic_class = 0;
  std::uint32_t sequence = 0xfffffff0;  // passes zero
  std::uint8_t flags = 0x10;            // ACK

  [[nodiscard]] std::size_t above() const { return ipv6 ? 40 : 20; }
  [[nodiscard]] std::size_t headers() const { return above() + (tcp ? 32 : 8); }  // with TCP's time stamps
  [[nodiscard]] std::uint8_t kind() const {
    if (!tcp) return VirtioHeader::kUdp;
    return ipv6 ? VirtioHeader::kTcpOverIpv6 : VirtioHeader::kTcpOverIpv4;
  }
};

void put16(Bytes& bytes, std::size_t at, std::size_t value) {
  bytes[at] = static_cast<std::byte>(value >> 8);
  bytes[at + 1] = static_cast<std::byte>(value);
}
std::size_t get16(const Bytes& bytes, std::size_t at) {
  return std::to_integer<std::size_t>(bytes[at]) << 8 | std::to_integer<std::size_t>(bytes[at + 1]);
}
std::uint32_t get32(const Bytes& bytes, std::size_t at) {
  return static_cast<std::uint32_t>(get16(bytes, at) << 16 | get16(bytes, at + 2));
}

// Ones' complement sum of the words from `from` to `to`.
std::size_t sum16(const Bytes& bytes, std::size_t from, std::size_t to, std::size_t sum = 0) {
  for (std::size_t i = from; i < to; i += 2) sum += get16(bytes, i);
  while (sum >> 16 != 0) sum = (sum & 0xffff) + (sum >> 16);
  return sum;
}
std::size_t pseudo_sum(const Bytes& packet, const Flow& flow) {
  const std::size_t sum = (flow.tcp ? 6 : 17) + packet.size() - flow.above();
  return flow.ipv6 ? sum16(packet, 8, 40, sum) : sum16(packet, 12, 20, sum);
}

// What the kernel hands over for so much payload at once.
Bytes piece_of(const Flow& flow, std::size_t payload, std::mt19937_64& random) {
  Bytes piece(flow.headers() + payload);
  for (std::byte& byte : piece) byte = static_cast<std::byte>(random());
  if (flow.ipv6) {
    piece[0] = std::byte{0x60};
    piece[1] = static_cast<std::byte>(flow.traffic_class << 4);
    put16(piece, 4, piece.size() - 40);
    piece[6] = std::byte{static_cast<std::uint8_t>(flow.tcp ? 6 : 17)};
  } else {
    piece[0] = std::byte{0x45};
    piece[1] = std::byte{flow.traffic_class};
    put16(piece, 2, std::min<std::size_t>(piece.size(), 65535));
    put16(piece, 4, 0xfffe);  // identification, which passes zero
    put16(piece, 6, 0x4000);
    piece[9] = std::byte{static_cast<std::uint8_t>(flow.tcp ? 6 : 17)};
  }
  put16(piece, flow.above(), flow.port);
  if (flow.tcp) {
    put16(piece, flow.above() + 4, flow.sequence >> 16);
    put16(piece, flow.above() + 6, flow.sequence & 0xffff);
    piece[flow.above() + 12] = std::byte{0x80};
    piece[flow.above() + 13] = std::byte{flow.flags};
  }
  return piece;
}

VirtioHeader header_of(const Flow& flow, std::size_t segment) {
  return {.flags = VirtioHeader::kNeedsChecksum,
          .segments = flow.kind(),
          .segment = static_cast<std::uint16_t>(segment),
          .checksum_start = static_cast<std::uint16_t>(flow.above()),
          .checksum_offset = static_cast<std::uint16_t>(flow.tcp ? 16 : 6)};
}

std::vector<Bytes> cut(const VirtioHeader& header, const Bytes& piece, std::size_t room = 1500) {
  SegmentCutter cutter(header, piece);
  std::vector<Bytes> packets;
  Bytes packet(room);
  while (const std::size_t bytes = cutter.next(packet))
    packets.emplace_back(packet.begin(), packet.begin() + static_cast<std::ptrdiff_t>(bytes));
  return packets;
}

PartialChecksum checksum_of(const Flow& flow) {
  return {static_cast<std::uint16_t>(flow.above()), static_cast<std::uint16_t>(flow.tcp ? 16 : 6)};
}

Bytes joined(std::span<const iovec> parts, VirtioHeader& header) {
  std::memcpy(&header, parts[0].iov_base, sizeof header);
  Bytes all;
  for (const iovec& part : parts.subspan(1)) {
    const auto* begin = static_cast<const std::byte*>(part.iov_base);
    all.insert(all.end(), begin, begin + part.iov_len);
  }
  return all;
}

std::vector<Flow> flows() {
  return {{}, {.ipv6 = true}, {.tcp = true}, {.ipv6 = true, .tcp = true}};
}

TEST(SegmentOffload, PieceCutIntoPackets_EachHasItsLengthsAndSums_AndThePayloadInOrder) {
  std::mt19937_64 random(1);
  for (const Flow& flow : flows()) {
    const Bytes piece = piece_of(flow, 10 * 1400 + 77, random);
    const std::vector<Bytes> packets = cut(header_of(flow, 1400), piece);
    ASSERT_EQ(packets.size(), 11U);
    Bytes payload;
    for (std::size_t i = 0; i < packets.size(); ++i) {
      const Bytes& packet = packets[i];
      EXPECT_EQ(packet.size(), flow.headers() + (i == 10 ? 77 : 1400));
      if (flow.ipv6) {
        EXPECT_EQ(get16(packet, 4), packet.size() - 40);
      } else {
        EXPECT_EQ(get16(packet, 2), packet.size());
        EXPECT_EQ(get16(packet, 4), (0xfffe + i) & 0xffff);
        EXPECT_EQ(sum16(packet, 0, 20), 0xffffU) << "IP's own checksum is whole";
      }
      const std::size_t above = flow.above();
      if (flow.tcp) {
        EXPECT_EQ(get32(packet, above + 4), flow.sequence + static_cast<std::uint32_t>(i * 1400));
      } else {
        EXPECT_EQ(get16(packet, above + 4), packet.size() - above);
      }
      EXPECT_EQ(get16(packet, above + checksum_of(flow).offset), pseudo_sum(packet, flow));
      payload.insert(payload.end(), packet.begin() + static_cast<std::ptrdiff_t>(flow.headers()), packet.end());
    }
    EXPECT_TRUE(
        std::equal(payload.begin(), payload.end(), piece.begin() + static_cast<std::ptrdiff_t>(flow.headers())));
  }
}

TEST(SegmentOffload, FinAndPush_AreOfTheLastPacketOnly_AndCwrOfTheFirst) {
  std::mt19937_64 random(2);
  const Flow flow{.tcp = true, .flags = 0x10 | 0x08 | 0x01 | 0x80};
  const std::vector<Bytes> packets = cut(header_of(flow, 1000), piece_of(flow, 3000, random));
  ASSERT_EQ(packets.size(), 3U);
  EXPECT_EQ(std::to_integer<int>(packets[0][33]), 0x90);
  EXPECT_EQ(std::to_integer<int>(packets[1][33]), 0x10);
  EXPECT_EQ(std::to_integer<int>(packets[2][33]), 0x19);
}

TEST(SegmentOffload, PacketThatIsNoPiece_PassesAsItIs) {
  std::mt19937_64 random(3);
  const Bytes packet = piece_of({}, 300, random);
  const std::vector<Bytes> packets = cut({}, packet);
  ASSERT_EQ(packets.size(), 1U);
  EXPECT_EQ(packets[0], packet);
}

TEST(SegmentOffload, PacketLongerThanItsRoom_IsNotCarried) {
  std::mt19937_64 random(4);
  EXPECT_TRUE(cut({}, piece_of({}, 1473, random)).empty());
  EXPECT_TRUE(cut(header_of({}, 1473), piece_of({}, 3000, random)).empty());
}

TEST(SegmentOffload, WhatWasCut_IsTheSamePieceWhenItIsPutTogether) {
  const std::uint64_t seed = test_seed(31);
  SCOPED_TRACE("SDR_TEST_SEED=" + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (int run = 0; run < 200; ++run) {
    Flow flow = flows()[random() % 4];
    flow.traffic_class = static_cast<std::uint8_t>(random() % 4);
    flow.sequence = static_cast<std::uint32_t>(random());
    if (random() % 2 == 0) flow.flags |= 0x08;
    const std::size_t segment = 500 + random() % 900;
    const std::size_t payload = segment + 1 + random() % (40 * segment);
    const Bytes piece = piece_of(flow, payload, random);
    const std::vector<Bytes> packets = cut(header_of(flow, segment), piece);
    Train train;
    for (const Bytes& packet : packets) ASSERT_TRUE(train.add(packet, checksum_of(flow)));
    ASSERT_EQ(train.count(), packets.size());
    VirtioHeader header;
    Bytes whole = joined(train.parts(), header);
    EXPECT_EQ(header.segments, flow.kind());
    EXPECT_EQ(header.segment, segment);
    EXPECT_EQ(header.headers, flow.headers());
    EXPECT_EQ(header.checksum_start, flow.above());
    // But for the sums, which the piece of this test has at random.
    Bytes expected = piece;
    const std::size_t sum_at = flow.above() + checksum_of(flow).offset;
    EXPECT_EQ(get16(whole, sum_at), pseudo_sum(whole, flow));
    put16(expected, sum_at, get16(whole, sum_at));
    if (!flow.tcp) put16(expected, flow.above() + 4, piece.size() - flow.above());
    if (!flow.ipv6) put16(expected, 10, get16(whole, 10));
    ASSERT_EQ(whole, expected);
  }
}

TEST(SegmentOffload, StrangersAndBrokenRows_GoOnTheirOwn) {
  std::mt19937_64 random(5);
  const auto one = [&](Flow flow, std::size_t payload) { return piece_of(flow, payload, random); };
  const Flow tcp{.tcp = true, .sequence = 1000};
  const Bytes first = one(tcp, 400);
  Bytes next = first;
  put16(next, 26, 1400);
  const auto joins = [&](const Bytes& before, const Bytes& after, PartialChecksum checksum) {
    Train train;
    return train.add(before, checksum) && train.add(after, checksum);
  };
  const PartialChecksum checksum = checksum_of(tcp);
  EXPECT_TRUE(joins(first, next, checksum));
  EXPECT_FALSE(joins(next, first, checksum)) << "out of order";
  EXPECT_FALSE(joins(first, first, checksum)) << "the same once more";
  EXPECT_FALSE(joins(first, next, {})) << "with sums that are whole already";
  for (const std::size_t at : std::initializer_list<std::size_t>{
           1, 8, 15, 20, 33, 34, 45}) {  // ECN, TTL, address, port, flags, window, time stamp
    Bytes other = next;
    other[at] ^= std::byte{0x04};
    EXPECT_FALSE(joins(first, other, checksum)) << "byte " << at;
  }
  Bytes longer = next;
  longer.push_back(std::byte{0});
  EXPECT_FALSE(joins(first, longer, checksum));
  Bytes shorter = next;
  shorter.resize(next.size() - 100);
  Train train;
  EXPECT_TRUE(train.add(first, checksum));
  EXPECT_TRUE(train.add(shorter, checksum)) << "a shorter one ends the row";
  Bytes behind = next;
  put16(behind, 26, 1700);
  EXPECT_FALSE(train.add(behind, checksum));
}

TEST(SegmentOffload, AnyBytes_AreCutIntoWhatFits_OrDropped) {
  const std::uint64_t seed = test_seed(32);
  SCOPED_TRACE("SDR_TEST_SEED=" + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (int run = 0; run < 5000; ++run) {
    Flow flow = flows()[random() % 4];
    Bytes piece = piece_of(flow, random() % 4000, random);
    for (int change = 0; change < 4; ++change)
      piece[random() % std::min<std::size_t>(piece.size(), 60)] = std::byte(random());
    piece.resize(random() % (piece.size() + 1));
    VirtioHeader header = header_of(flow, random() % 2000);
    header.segments = static_cast<std::uint8_t>(random() % 6);
    header.checksum_start = static_cast<std::uint16_t>(random());
    const std::vector<Bytes> packets = cut(header, piece);
    Train train;
    const PartialChecksum checksum{header.checksum_start, header.checksum_offset};
    for (const Bytes& packet : packets) {
      EXPECT_LE(packet.size(), 1500U);
      if (!train.add(packet, checksum)) {
        VirtioHeader sent;
        EXPECT_LE(joined(train.parts(), sent).size(), 65535U);
        train.clear();
        EXPECT_TRUE(train.add(packet, checksum));
      }
    }
  }
}

}  // namespace
}  // namespace sdr::cli

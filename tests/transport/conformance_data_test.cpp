// The contract of transport.hpp, in tests: packets and datagrams that must arrive, on networks that lose nothing.
#include <random>

#include "conformance_suite.hpp"

namespace sdr::transport::conformance {
namespace {

class LosslessConformance : public TransportConformance {};

// GoogleTest reads the registry when it expands the suites, which is after all registrations.
INSTANTIATE_TEST_SUITE_P(, LosslessConformance, testing::ValuesIn(network_factories({&NetworkTraits::lossless})),
                         network_name);

TEST_P(LosslessConformance, Packet_OfEveryBorderLength_LandsExactlyAtItsOffset) {
  const std::uint16_t payload = options_.payload;
  std::uint8_t generation = 0;
  for (const std::size_t length : {0UL, 1UL, 7UL, 8UL, 9UL, payload / 2UL, payload - 1UL, payload + 0UL}) {
    for (const std::uint32_t offset : {0U, 1U, 3U}) {
      SCOPED_TRACE(testing::Message() << "length " << length << " at offset " << offset);
      std::vector<std::byte> memory(4 * std::size_t{payload}, kCanary);
      const Target target = expose(5, generation, memory);
      const auto bytes = pattern(length, offset + static_cast<std::uint32_t>(length));
      write_one(packet(target, offset, bytes, 0, 0x76543210));
      const auto got = completed(1);
      ASSERT_EQ(got.size(), 1U);
      EXPECT_EQ(got[0].immediate, options_.layout.encode(SlotIndex(5), PacketOffset(offset), 0x76543210));
      EXPECT_EQ(got[0].length, length);
      EXPECT_EQ(got[0].generation, generation);
      EXPECT_EQ(got[0].channel, 0);
      std::vector<std::byte> expected(memory.size(), kCanary);
      std::copy(bytes.begin(), bytes.end(), expected.begin() + offset * payload);
      EXPECT_TRUE(memory == expected) << "bytes differ, or some outside of the packet were touched";
      b().retract(target.slot);
      generation = static_cast<std::uint8_t>((generation + 1) % options_.generations);
    }
  }
}

TEST_P(LosslessConformance, Packet_BetweenOddAddresses_IsCopiedExactly) {
  for (std::size_t shift = 1; shift < 8; ++shift) {
    std::vector<std::byte> memory(options_.payload + 16, kCanary);
    const auto source = pattern(options_.payload + 16, static_cast<std::uint32_t>(shift));
    const auto bytes = std::span(source).subspan(8 - shift, options_.payload - shift);
    const Target target = expose(0, 0, std::span(memory).subspan(shift, options_.payload));
    write_one(packet(target, 0, bytes));
    completed(1);
    std::vector<std::byte> expected(memory.size(), kCanary);
    std::copy(bytes.begin(), bytes.end(), expected.begin() + static_cast<std::ptrdiff_t>(shift));
    EXPECT_TRUE(memory == expected) << "shifted by " << shift;
    b().retract(target.slot);
  }
}

TEST_P(LosslessConformance, Message_OfManyPackets_ArrivesWholeAtEveryPayloadSize) {
  for (const std::uint16_t payload : std::initializer_list<std::uint16_t>{64, 72, 1440, 4096}) {
    SCOPED_TRACE(testing::Message() << "payload " << payload);
    EndpointOptions options = default_options();
    options.payload = payload;
    start(options);
    constexpr std::uint32_t kPackets = 300;
    const std::size_t size = kPackets * std::size_t{payload} - 3;  // the last packet is shorter
    std::vector<std::byte> memory(size + 64, kCanary);
    const auto bytes = pattern(size, payload);
    const Target target = expose(2, 1, std::span(memory).first(size));
    std::vector<Packet> packets;
    for (std::uint32_t i = 0; i < kPackets; ++i) {
      const std::size_t at = i * std::size_t{payload};
      packets.push_back(packet(target, i, std::span(bytes).subspan(at, std::min<std::size_t>(payload, size - at))));
    }
    write_all(packets);
    EXPECT_EQ(completed(kPackets).size(), kPackets);
    EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), memory.begin()));
    EXPECT_TRUE(std::all_of(memory.end() - 64, memory.end(), [](std::byte x) { return x == kCanary; }));
  }
}

TEST_P(LosslessConformance, ZeroLengthPackets_CompleteEvenPastTheBufferAndWithoutOne) {
  std::vector<std::byte> memory(options_.payload, kCanary);
  const std::vector targets{expose(0, 0, memory), expose(1, 0, {})};
  for (const Target& target : targets) {
    for (const std::uint32_t offset : {0U, 1U, 7U, options_.layout.max_packets() - 1}) {
      write_one(packet(target, offset, {}));
      const auto got = completed(1);
      ASSERT_EQ(got.size(), 1U);
      EXPECT_EQ(got[0].length, 0);
      EXPECT_EQ(options_.layout.decode(got[0].immediate).offset, PacketOffset(offset));
    }
  }
  EXPECT_TRUE(std::all_of(memory.begin(), memory.end(), [](std::byte x) { return x == kCanary; }));
}

TEST_P(LosslessConformance, Packets_OnSeveralChannels_CompleteOnTheirOwn) {
  std::vector<std::byte> memory(30 * std::size_t{options_.payload}, kCanary);
  const auto bytes = pattern(memory.size(), 1);
  const Target target = expose(3, 2, memory);
  std::vector<Packet> packets;
  for (std::uint32_t i = 0; i < 30; ++i) {
    packets.push_back(packet(target, i, std::span(bytes).subspan(i * std::size_t{options_.payload}, options_.payload),
                             static_cast<std::uint8_t>(i % options_.channels)));
  }
  write_all(packets);
  for (const Completion& c : completed(30)) {
    EXPECT_EQ(c.channel, options_.layout.decode(c.immediate).offset.value % options_.channels);
    EXPECT_EQ(c.length, options_.payload);
  }
  EXPECT_TRUE(memory == bytes);
}

TEST_P(LosslessConformance, Packets_OfMixedLengthsSlotsAndChannels_AllLand) {
  const std::uint32_t seed = test_seed();
  SCOPED_TRACE(testing::Message() << "SDR_TEST_SEED=" << seed);
  std::mt19937 random(seed);
  constexpr std::uint32_t kPerSlot = 100;
  const std::size_t room = kPerSlot * std::size_t{options_.payload};
  std::vector<std::vector<std::byte>> memory(4, std::vector<std::byte>(room, kCanary));
  std::vector<std::vector<std::byte>> expected = memory;
  std::vector<Target> targets;
  for (std::uint32_t s = 0; s < memory.size(); ++s)
    targets.push_back(expose(s * 5, static_cast<std::uint8_t>(s), memory[s]));
  const auto bytes = pattern(room, seed);
  std::vector<Packet> packets;
  for (std::uint32_t s = 0; s < memory.size(); ++s) {
    for (std::uint32_t i = 0; i < kPerSlot; ++i) {
      const bool full = random() % 4 != 0;  // runs of equal length, broken now and then
      const std::size_t length = full ? options_.payload : random() % (options_.payload + 1U);
      const auto part = std::span(bytes).subspan(random() % (room - length), length);
      packets.push_back(packet(targets[s], i, part, static_cast<std::uint8_t>(random() % options_.channels),
                               static_cast<std::uint32_t>(random())));
      std::copy(part.begin(), part.end(), expected[s].begin() + i * options_.payload);
    }
  }
  std::shuffle(packets.begin(), packets.begin() + 150, random);
  write_all(packets);
  auto got = completed(packets.size());
  std::vector<std::tuple<std::uint32_t, std::uint16_t, std::uint8_t, std::uint8_t>> keys, expected_keys;
  for (const Completion& c : got) keys.push_back(key(c));
  for (const Packet& p : packets)
    expected_keys.emplace_back(p.immediate, p.length, p.generation.value, p.channel.value);
  std::sort(keys.begin(), keys.end());
  std::sort(expected_keys.begin(), expected_keys.end());
  EXPECT_TRUE(keys == expected_keys);
  EXPECT_TRUE(memory == expected);
}

TEST_P(LosslessConformance, DuplicatePackets_CompleteTwiceAndHarmNothing) {
  std::vector<std::byte> memory(3 * std::size_t{options_.payload}, kCanary);
  const auto bytes = pattern(options_.payload, 3);
  const Target target = expose(0, 0, memory);
  const std::vector<Packet> packets(2, packet(target, 1, bytes));
  write_all(packets);
  const auto got = completed(2);
  ASSERT_EQ(got.size(), 2U);
  EXPECT_EQ(key(got[0]), key(got[1]));
  EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), memory.begin() + options_.payload));
  EXPECT_EQ(memory.front(), kCanary);
  EXPECT_EQ(memory.back(), kCanary);
}

TEST_P(LosslessConformance, Write_OfMoreThanTheQueueTakes_ContinuesAndDeliversAll) {
  constexpr std::uint32_t kPackets = 20000;
  std::vector<std::byte> memory(kPackets * std::size_t{options_.payload}, kCanary);
  const auto bytes = pattern(memory.size(), 11);
  const Target target = expose(0, 0, memory);
  std::vector<Packet> packets;
  for (std::uint32_t i = 0; i < kPackets; ++i) {
    packets.push_back(packet(target, i, std::span(bytes).subspan(i * std::size_t{options_.payload}, options_.payload),
                             static_cast<std::uint8_t>(i / 32 % options_.channels)));
  }
  write_all(packets);
  std::vector<int> seen(kPackets, 0);
  for (const Completion& c : completed(kPackets)) ++seen[options_.layout.decode(c.immediate).offset.value];
  EXPECT_THAT(seen, testing::Each(1));
  EXPECT_TRUE(memory == bytes);
}

TEST_P(LosslessConformance, LocalBytes_AfterTheContractFreesThem_MayBeOverwritten) {
  std::vector<std::byte> memory(16 * std::size_t{options_.payload}, kCanary);
  const auto bytes = pattern(memory.size(), 5);
  std::vector<std::byte> local = bytes;
  const Target target = expose(0, 0, memory);
  std::vector<Packet> packets;
  for (std::uint32_t i = 0; i < 16; ++i) {
    packets.push_back(packet(target, i, std::span(local).subspan(i * std::size_t{options_.payload}, options_.payload)));
  }
  for (std::size_t sent = 0; sent < packets.size();) {
    sent += a().write(std::span(packets).subspan(sent), network_->now());
    if (!a().facts().copies_on_write) {
      ASSERT_TRUE(until([&] { return a().writes_finished() >= sent; }));
    }
  }
  std::fill(local.begin(), local.end(), kCanary);
  EXPECT_EQ(completed(16).size(), 16U);
  EXPECT_TRUE(memory == bytes);
}

TEST_P(LosslessConformance, ControlDatagrams_OfEverySize_GoBothWays) {
  const std::uint16_t limit = std::min(a().facts().max_control, b().facts().max_control);
  for (const std::size_t size : {1UL, 2UL, 7UL, 8UL, 16UL, 17UL, 100UL, limit / 2UL, limit - 1UL, limit + 0UL}) {
    SCOPED_TRACE(testing::Message() << "size " << size);
    const auto to_b = pattern(size, 1);
    const auto to_a = pattern(size, 2);
    ASSERT_TRUE(a().send_control(to_b, network_->now()));
    ASSERT_TRUE(b().send_control(to_a, network_->now()));
    EXPECT_EQ(receive_control(b()), to_b);
    EXPECT_EQ(receive_control(a()), to_a);
  }
}

TEST_P(LosslessConformance, ControlDatagrams_SentInARow_AllArriveAsTheyWere) {
  std::vector<std::vector<std::byte>> sent, got;
  for (std::uint32_t i = 0; i < 50; ++i) {
    sent.push_back(pattern(1 + i, i));
    ASSERT_TRUE(a().send_control(sent.back(), network_->now()));
  }
  for (std::uint32_t i = 0; i < 50; ++i) got.push_back(receive_control(b()));
  EXPECT_THAT(got, testing::UnorderedElementsAreArray(sent));
  std::vector<std::byte> into(b().facts().max_control);
  EXPECT_FALSE(b().receive_control(into, network_->now()).has_value());
}

TEST_P(LosslessConformance, ControlAndData_DoNotDisturbEachOther) {
  std::vector<std::byte> memory(40 * std::size_t{options_.payload}, kCanary);
  const auto bytes = pattern(memory.size(), 6);
  const Target target = expose(0, 0, memory);
  for (std::uint32_t i = 0; i < 40; ++i) {
    const auto note = pattern(1 + i, i);
    ASSERT_TRUE(a().send_control(note, network_->now()));
    write_one(packet(target, i, std::span(bytes).subspan(i * std::size_t{options_.payload}, options_.payload),
                     static_cast<std::uint8_t>(i % options_.channels)));
    EXPECT_EQ(receive_control(b()), note);
  }
  EXPECT_EQ(completed(40).size(), 40U);
  EXPECT_TRUE(memory == bytes);
}

TEST_P(LosslessConformance, Counters_AddUp) {
  std::vector<std::byte> memory(options_.payload * 10UL, kCanary);
  const auto bytes = pattern(options_.payload, 6);
  const Target target = expose(0, 0, memory);
  std::vector<Packet> packets;
  for (std::uint32_t i = 0; i < 10; ++i) packets.push_back(packet(target, i, std::span(bytes).first(i * 7)));
  write_all(packets);
  completed(10);
  EXPECT_EQ(a().counters().packets_sent, 10U);
  EXPECT_EQ(b().counters().packets_received, 10U);
  EXPECT_EQ(b().counters().bytes_received, 7U * 45U);
  EXPECT_EQ(strays(), 0U);
  EXPECT_EQ(b().counters().dropped_by_host, 0U);
  EXPECT_EQ(b().counters().packets_sent, 0U);
  if (a().facts().copies_on_write) return;
  EXPECT_EQ(a().writes_finished(), 10U);
}

}  // namespace
}  // namespace sdr::transport::conformance

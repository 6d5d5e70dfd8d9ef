// The contract of transport.hpp, in tests. They run on every network that registered itself (conformance.hpp).
#include "conformance.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <tuple>

#include "transport/transport.hpp"

namespace sdr::transport::conformance {
namespace {

using core::ChannelIndex;
using core::Completion;
using core::Generation;
using core::PacketOffset;
using core::SlotIndex;

constexpr std::byte kCanary{0xC5};
constexpr Duration kPatience = std::chrono::seconds(20);  // of real networks; spent only by a test that fails

// Bytes that differ from each other, from those of other seeds and from the canary.
std::vector<std::byte> pattern(std::size_t size, std::uint32_t seed) {
  std::vector<std::byte> bytes(size);
  std::uint32_t state = seed * 2654435761U + 1;
  for (auto& byte : bytes) {
    state = state * 1664525U + 1013904223U;
    byte = static_cast<std::byte>(state >> 24);
    if (byte == kCanary) byte = std::byte{0};
  }
  return bytes;
}

auto key(const Completion& c) {
  return std::tuple(c.immediate, c.length, c.generation, c.channel);
}

// A place that packets are aimed at: the memory, and all of what the sender must know of it.
struct Target {
  SlotIndex slot;
  Generation generation;
  Aim aim;
};

class TransportConformance : public testing::TestWithParam<NetworkFactory> {
 protected:
  static EndpointOptions default_options() {
    return {.token = 0x1122334455667788, .slots = 16, .channels = 3, .generations = 8, .payload = 1024};
  }

  void SetUp() override { start(default_options()); }

  void start(const EndpointOptions& of_b) {
    network_.reset();
    options_ = of_b;
    EndpointOptions of_a = of_b;
    of_a.token = ~of_b.token;
    network_ = GetParam().make(of_a, of_b);
    ASSERT_NE(network_, nullptr);
    lossless_ = network_->traits().lossless;
  }

  Endpoint& a() { return network_->a(); }
  Endpoint& b() { return network_->b(); }

  Target expose(std::uint32_t slot, std::uint8_t generation, std::span<std::byte> buffer) {
    const Aim aim = b().expose(SlotIndex(slot), Generation(generation), buffer);
    EXPECT_EQ(aim.size, b().facts().aim_size);
    return {SlotIndex(slot), Generation(generation), aim};
  }

  Packet packet(const Target& to, std::uint32_t offset, std::span<const std::byte> bytes, std::uint8_t channel = 0,
                std::uint32_t user = 0) {
    return {.local = bytes.data(),
            .immediate = options_.layout.encode(to.slot, PacketOffset(offset), user),
            .length = static_cast<std::uint16_t>(bytes.size()),
            .generation = to.generation,
            .channel = ChannelIndex(channel),
            .aim = to.aim.size == 0 ? nullptr : &to.aim};
  }

  // Polls b on all channels and lets time pass until `done`; false when it never comes.
  template <typename Condition>
  bool until(Condition done) {
    const TimePoint start = network_->now();
    for (;;) {
      poll_once();
      if (done()) return true;
      if (network_->now() - start > kPatience) return false;
      if (!network_->step()) {
        poll_once();
        return done();
      }
    }
  }

  void poll_once() {
    a().advance(network_->now());
    b().advance(network_->now());
    std::array<Completion, Endpoint::kPollBatch> batch;
    for (std::uint8_t c = 0; c < options_.channels; ++c) {
      const std::size_t n = b().poll(ChannelIndex(c), batch, network_->now());
      ASSERT_LE(n, batch.size());
      completions_.insert(completions_.end(), batch.begin(), batch.begin() + static_cast<std::ptrdiff_t>(n));
    }
  }

  // Writes all, however many calls it takes, never letting more wait unread than the receiver's buffer holds.
  void write_all(std::span<const Packet> packets) {
    const std::uint32_t limit = b().facts().receive_buffer;
    const std::size_t before = completions_.size();
    const auto strays_before = strays();
    std::size_t sent = 0;
    while (sent < packets.size()) {
      std::size_t batch = 0;
      for (std::uint64_t bytes = 0; sent + batch < packets.size() && batch < 512; ++batch) {
        bytes += options_.payload;
        if (limit != 0 && bytes > limit) break;
      }
      ASSERT_GT(batch, 0U) << "the receive buffer of " << limit << " bytes does not hold one packet";
      const std::size_t taken = a().write(packets.subspan(sent, batch), network_->now());
      ASSERT_LE(taken, batch);
      sent += taken;
      if (lossless_ && limit != 0) {
        ASSERT_TRUE(until([&] { return completions_.size() - before + strays() - strays_before >= sent; }));
      } else if (taken == 0) {
        poll_once();
        ASSERT_TRUE(network_->step()) << "write() takes nothing and nothing is due";
      }
    }
    ASSERT_TRUE(
        until([&] { return b().facts().copies_on_write || a().writes_finished() >= a().counters().packets_sent; }));
  }
  void write_one(const Packet& p) { write_all({&p, 1}); }

  std::uint64_t strays() {
    const EndpointCounters c = b().counters();
    return c.dropped_wrong_token + c.dropped_malformed + c.dropped_out_of_range + c.dropped_not_exposed;
  }

  // Waits for `count` completions since the last call and returns them.
  std::vector<Completion> completed(std::size_t count) {
    EXPECT_TRUE(until([&] { return completions_.size() >= count; }))
        << completions_.size() << " of " << count << " completions came";
    return std::exchange(completions_, {});
  }

  // Sends `p`, which must not be placed, and waits until it has been refused under the name `counter`.
  void expect_refused(const Packet& p, std::uint64_t EndpointCounters::*counter) {
    const EndpointCounters before = b().counters();
    write_one(p);
    if (network_->traits().counts_strays) {
      until([&] {
        const EndpointCounters c = b().counters();
        return c.*counter > before.*counter || c.packets_received > before.packets_received;
      });
      EXPECT_EQ(b().counters().*counter, before.*counter + 1) << "the drop is not counted";
    } else {
      until([] { return false; });
    }
    const EndpointCounters after = b().counters();
    EXPECT_EQ(after.packets_received, before.packets_received);
    EXPECT_TRUE(completions_.empty());
  }

  std::vector<std::byte> receive_control(Endpoint& at) {
    std::vector<std::byte> into(at.facts().max_control);
    std::optional<std::size_t> size;
    EXPECT_TRUE(until([&] { return (size = at.receive_control(into, network_->now())).has_value(); }));
    into.resize(size.value_or(0));
    return into;
  }

  std::unique_ptr<Network> network_;
  EndpointOptions options_;
  bool lossless_ = true;
  std::vector<Completion> completions_;
};

// GoogleTest reads the registry when it expands the suite, which is after all registrations.
INSTANTIATE_TEST_SUITE_P(, TransportConformance, testing::ValuesIn(network_factories()),
                         [](const auto& instance) { return instance.param.name; });

#define SKIP_UNLESS_LOSSLESS() \
  if (!lossless_) GTEST_SKIP() << "this network loses packets"

TEST_P(TransportConformance, Facts_AreWithinTheContract) {
  const EndpointFacts& facts = b().facts();
  EXPECT_LE(facts.aim_size, Aim::kCapacity);
  EXPECT_GE(facts.max_control, 512);
  EXPECT_FALSE(b().peer_name().empty());
  EXPECT_FALSE(network_->device().name().empty());
  const auto payload = network_->device().max_payload("");
  ASSERT_TRUE(payload.ok()) << payload.error().message;
  EXPECT_EQ(*payload % 8, 0);
  EXPECT_GE(*payload, 64);
}

TEST_P(TransportConformance, Packet_OfEveryBorderLength_LandsExactlyAtItsOffset) {
  SKIP_UNLESS_LOSSLESS();
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

TEST_P(TransportConformance, Packet_BetweenOddAddresses_IsCopiedExactly) {
  SKIP_UNLESS_LOSSLESS();
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

TEST_P(TransportConformance, Message_OfManyPackets_ArrivesWholeAtEveryPayloadSize) {
  SKIP_UNLESS_LOSSLESS();
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

TEST_P(TransportConformance, ZeroLengthPackets_CompleteEvenPastTheBufferAndWithoutOne) {
  SKIP_UNLESS_LOSSLESS();
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

TEST_P(TransportConformance, Packets_OnSeveralChannels_CompleteOnTheirOwn) {
  SKIP_UNLESS_LOSSLESS();
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

TEST_P(TransportConformance, Packets_OfMixedLengthsSlotsAndChannels_AllLand) {
  SKIP_UNLESS_LOSSLESS();
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

TEST_P(TransportConformance, DuplicatePackets_CompleteTwiceAndHarmNothing) {
  SKIP_UNLESS_LOSSLESS();
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

TEST_P(TransportConformance, Packet_ToASlotNeverExposed_TouchesNothing) {
  SKIP_UNLESS_LOSSLESS();
  std::vector<std::byte> memory(options_.payload, kCanary);
  Target target = expose(1, 0, memory);
  target.slot = SlotIndex(2);
  const auto bytes = pattern(8, 1);
  expect_refused(packet(target, 0, bytes), &EndpointCounters::dropped_not_exposed);
  expect_refused(packet(target, 0, {}), &EndpointCounters::dropped_not_exposed);
  EXPECT_THAT(memory, testing::Each(kCanary));
}

TEST_P(TransportConformance, Packet_ToASlotBeyondTheTable_IsOutOfRange) {
  SKIP_UNLESS_LOSSLESS();
  std::vector<std::byte> memory(options_.payload, kCanary);
  Target target = expose(1, 0, memory);
  const auto bytes = pattern(8, 1);
  for (const std::uint32_t slot : {options_.slots, options_.layout.max_slots() - 1}) {
    target.slot = SlotIndex(slot);
    expect_refused(packet(target, 0, bytes), &EndpointCounters::dropped_out_of_range);
  }
  EXPECT_THAT(memory, testing::Each(kCanary));
}

TEST_P(TransportConformance, Packet_ToARetractedSlot_TouchesNothing) {
  SKIP_UNLESS_LOSSLESS();
  std::vector<std::byte> memory(options_.payload, kCanary);
  const Target target = expose(1, 0, memory);
  b().retract(target.slot);
  const auto bytes = pattern(8, 1);
  expect_refused(packet(target, 0, bytes), &EndpointCounters::dropped_not_exposed);
  EXPECT_THAT(memory, testing::Each(kCanary));
}

TEST_P(TransportConformance, LatePacket_FromAnotherGeneration_TouchesNothing) {
  SKIP_UNLESS_LOSSLESS();
  std::vector<std::byte> memory(options_.payload, kCanary);
  const Target old = expose(1, 3, memory);
  b().retract(old.slot);
  const Target current = expose(1, 4, memory);
  const auto bytes = pattern(8, 1);
  for (const int generation : {3, 5, 0, options_.generations - 1}) {
    Target wrong = generation == 3 ? old : current;
    wrong.generation = Generation(static_cast<std::uint8_t>(generation));
    expect_refused(packet(wrong, 0, bytes), &EndpointCounters::dropped_not_exposed);
    expect_refused(packet(wrong, 0, {}), &EndpointCounters::dropped_not_exposed);
  }
  EXPECT_THAT(memory, testing::Each(kCanary));
  write_one(packet(current, 0, bytes));
  EXPECT_EQ(completed(1).size(), 1U);
  EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), memory.begin()));
}

TEST_P(TransportConformance, PacketInFlight_WhenItsSlotIsRetractedAndReused_TouchesNothing) {
  SKIP_UNLESS_LOSSLESS();
  if (!network_->traits().can_hold) GTEST_SKIP() << "this network cannot keep packets back";
  std::vector<std::byte> memory(options_.payload, kCanary);
  const Target old = expose(1, 3, memory);
  const auto bytes = pattern(options_.payload, 1);
  const Packet late = packet(old, 0, bytes);
  network_->hold();
  ASSERT_EQ(a().write({&late, 1}, network_->now()), 1U);
  b().retract(old.slot);
  expose(1, 4, memory);
  network_->release();
  EXPECT_TRUE(until([&] { return b().counters().dropped_not_exposed == 1; }));
  EXPECT_TRUE(completions_.empty());
  EXPECT_THAT(memory, testing::Each(kCanary));
}

TEST_P(TransportConformance, Packet_BeyondTheBuffer_OrPartlyBeyond_TouchesNothing) {
  SKIP_UNLESS_LOSSLESS();
  const std::uint16_t payload = options_.payload;
  std::vector<std::byte> memory(4 * std::size_t{payload}, kCanary);
  // The exposed part ends 10 bytes into its third packet; what follows is the canary's.
  const Target target = expose(0, 0, std::span(memory).first(2 * std::size_t{payload} + 10));
  const auto bytes = pattern(payload, 1);
  const auto first = [&](std::size_t n) { return std::span(bytes).first(n); };
  expect_refused(packet(target, 2, first(11)), &EndpointCounters::dropped_out_of_range);
  expect_refused(packet(target, 2, bytes), &EndpointCounters::dropped_out_of_range);
  expect_refused(packet(target, 3, first(1)), &EndpointCounters::dropped_out_of_range);
  expect_refused(packet(target, options_.layout.max_packets() - 1, bytes), &EndpointCounters::dropped_out_of_range);
  EXPECT_THAT(memory, testing::Each(kCanary));
  write_one(packet(target, 2, first(10)));
  EXPECT_EQ(completed(1).size(), 1U);
  EXPECT_TRUE(std::equal(bytes.begin(), bytes.begin() + 10, memory.begin() + 2 * payload));
  EXPECT_EQ(memory[2 * std::size_t{payload} + 10], kCanary);
}

TEST_P(TransportConformance, RefusedPackets_AmongGoodOnes_VoidNoneOfThem) {
  SKIP_UNLESS_LOSSLESS();
  std::vector<std::byte> memory(20 * std::size_t{options_.payload}, kCanary);
  const auto bytes = pattern(memory.size(), 9);
  const Target good = expose(4, 1, memory);
  Target unexposed = good;
  unexposed.slot = SlotIndex(5);
  Target stale = good;
  stale.generation = Generation(0);
  std::vector<Packet> packets;
  for (std::uint32_t i = 0; i < 20; ++i) {
    const auto part = std::span(bytes).subspan(i * std::size_t{options_.payload}, options_.payload);
    packets.push_back(packet(i % 2 == 0 ? unexposed : stale, i, part));
    packets.push_back(packet(good, i, part));
    packets.push_back(packet(good, 20, part));
  }
  write_all(packets);
  EXPECT_EQ(completed(20).size(), 20U);
  EXPECT_TRUE(memory == bytes);
  if (network_->traits().counts_strays) {
    EXPECT_TRUE(until([&] { return strays() >= 40; }));  // the last one comes after the last good one
    EXPECT_EQ(b().counters().dropped_not_exposed, 20U);
    EXPECT_EQ(b().counters().dropped_out_of_range, 20U);
  }
}

TEST_P(TransportConformance, Slot_ReusedThroughAllGenerations_PlacesEachInItsOwnBuffer) {
  SKIP_UNLESS_LOSSLESS();
  for (std::uint32_t use = 0; use < 3U * options_.generations; ++use) {
    std::vector<std::byte> memory(options_.payload, kCanary);
    const auto bytes = pattern(options_.payload, use);
    const Target target = expose(7, static_cast<std::uint8_t>(use % options_.generations), memory);
    write_one(packet(target, 0, bytes));
    const auto got = completed(1);
    ASSERT_EQ(got.size(), 1U);
    EXPECT_EQ(got[0].generation, use % options_.generations);
    EXPECT_TRUE(memory == bytes);
    b().retract(target.slot);
  }
}

TEST_P(TransportConformance, Write_OfMoreThanTheQueueTakes_ContinuesAndDeliversAll) {
  SKIP_UNLESS_LOSSLESS();
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

TEST_P(TransportConformance, Write_OfNothing_TakesNothing) {
  EXPECT_EQ(a().write({}, network_->now()), 0U);
}

TEST_P(TransportConformance, LocalBytes_AfterTheContractFreesThem_MayBeOverwritten) {
  SKIP_UNLESS_LOSSLESS();
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

TEST_P(TransportConformance, ControlDatagrams_OfEverySize_GoBothWays) {
  SKIP_UNLESS_LOSSLESS();
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

TEST_P(TransportConformance, ControlDatagram_BeyondTheLimit_IsRefused) {
  const auto datagram = pattern(a().facts().max_control + 1U, 1);
  EXPECT_FALSE(a().send_control(datagram, network_->now()));
}

TEST_P(TransportConformance, ControlDatagrams_SentInARow_AllArriveAsTheyWere) {
  SKIP_UNLESS_LOSSLESS();
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

TEST_P(TransportConformance, ControlAndData_DoNotDisturbEachOther) {
  SKIP_UNLESS_LOSSLESS();
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

TEST_P(TransportConformance, Counters_AddUp) {
  SKIP_UNLESS_LOSSLESS();
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

TEST_P(TransportConformance, Poll_WithNothingWaiting_ReturnsZero) {
  std::array<Completion, Endpoint::kPollBatch> batch;
  for (std::uint8_t c = 0; c < options_.channels; ++c) {
    EXPECT_EQ(b().poll(ChannelIndex(c), batch, network_->now()), 0U);
  }
  std::vector<std::byte> into(b().facts().max_control);
  EXPECT_FALSE(b().receive_control(into, network_->now()).has_value());
}

TEST_P(TransportConformance, Connect_WithGarbageInfo_IsAnErrorThatSaysSo) {
  auto made = network_->device().create_endpoint(default_options());
  ASSERT_TRUE(made.ok()) << made.error().message;
  Endpoint& endpoint = **made;
  const auto good = a().info();
  std::vector<std::vector<std::byte>> garbage{{}, {std::byte{0}}, pattern(5, 1), pattern(200, 1)};
  for (std::size_t length = 0; length < good.size(); ++length)
    garbage.emplace_back(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(length));
  garbage.push_back(good);
  garbage.back().push_back(std::byte{0});
  for (const auto& info : garbage) {
    const auto connected = endpoint.connect(info);
    ASSERT_FALSE(connected.ok()) << "info of " << info.size() << " bytes was taken";
    EXPECT_FALSE(connected.error().message.empty());
  }
}

TEST_P(TransportConformance, CreateEndpoint_WithOptionsBeyondTheLimits_IsInvalidArgument) {
  const auto refused = [&](auto change) {
    EndpointOptions options = default_options();
    change(options);
    const auto made = network_->device().create_endpoint(options);
    return !made.ok() && made.error().code == ErrorCode::InvalidArgument && !made.error().message.empty();
  };
  EXPECT_TRUE(refused([](auto& o) { o.payload = 0; }));
  EXPECT_TRUE(refused([](auto& o) { o.payload = 63; }));
  EXPECT_TRUE(refused([](auto& o) { o.payload = 1025; }));
  EXPECT_TRUE(refused([](auto& o) { o.slots = 0; }));
  EXPECT_TRUE(refused([](auto& o) { o.slots = o.layout.max_slots() + 1; }));
  EXPECT_TRUE(refused([](auto& o) { o.channels = 0; }));
  EXPECT_TRUE(refused([](auto& o) { o.generations = 1; }));
  EXPECT_TRUE(refused([](auto& o) { o.layout.user_bits = 3; }));
}

}  // namespace
}  // namespace sdr::transport::conformance

// The contract of transport.hpp, in tests: packets that are late, forged or astray touch nothing.
#include "conformance_suite.hpp"

namespace sdr::transport::conformance {
namespace {

class RefusalConformance : public TransportConformance {};
class HoldingConformance : public TransportConformance {};

// GoogleTest reads the registry when it expands the suites, which is after all registrations.
INSTANTIATE_TEST_SUITE_P(, RefusalConformance, testing::ValuesIn(network_factories({&NetworkTraits::lossless})),
                         network_name);
INSTANTIATE_TEST_SUITE_P(, HoldingConformance,
                         testing::ValuesIn(network_factories({&NetworkTraits::lossless, &NetworkTraits::can_hold})),
                         network_name);

TEST_P(RefusalConformance, Packet_ToASlotNeverExposed_TouchesNothing) {
  std::vector<std::byte> memory(options_.payload, kCanary);
  Target target = expose(1, 0, memory);
  target.slot = SlotIndex(2);
  const auto bytes = pattern(8, 1);
  expect_refused(packet(target, 0, bytes), &EndpointCounters::dropped_not_exposed);
  expect_refused(packet(target, 0, {}), &EndpointCounters::dropped_not_exposed);
  EXPECT_THAT(memory, testing::Each(kCanary));
}

TEST_P(RefusalConformance, Packet_ToASlotBeyondTheTable_IsOutOfRange) {
  std::vector<std::byte> memory(options_.payload, kCanary);
  Target target = expose(1, 0, memory);
  const auto bytes = pattern(8, 1);
  for (const std::uint32_t slot : {options_.slots, options_.layout.max_slots() - 1}) {
    target.slot = SlotIndex(slot);
    expect_refused(packet(target, 0, bytes), &EndpointCounters::dropped_out_of_range);
  }
  EXPECT_THAT(memory, testing::Each(kCanary));
}

TEST_P(RefusalConformance, Packet_ToARetractedSlot_TouchesNothing) {
  std::vector<std::byte> memory(options_.payload, kCanary);
  const Target target = expose(1, 0, memory);
  b().retract(target.slot);
  const auto bytes = pattern(8, 1);
  expect_refused(packet(target, 0, bytes), &EndpointCounters::dropped_not_exposed);
  EXPECT_THAT(memory, testing::Each(kCanary));
}

TEST_P(RefusalConformance, LatePacket_FromAnotherGeneration_TouchesNothing) {
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

TEST_P(HoldingConformance, PacketInFlight_WhenItsSlotIsRetractedAndReused_TouchesNothing) {
  std::vector<std::byte> memory(options_.payload, kCanary);
  const Target old = expose(1, 3, memory);
  const auto bytes = pattern(options_.payload, 1);
  const Packet late = packet(old, 0, bytes);
  network_->hold();
  ASSERT_EQ(a().write({&late, 1}, network_->now()), 1U);
  b().retract(old.slot);
  expose(1, 4, memory);
  network_->release();
  if (traits().counts_strays) {
    EXPECT_TRUE(until([&] { return b().counters().dropped_not_exposed == 1; }));
  } else {
    fence(late.channel, late.generation);
  }
  EXPECT_TRUE(completions_.empty());
  EXPECT_THAT(memory, testing::Each(kCanary));
}

TEST_P(RefusalConformance, Packet_BeyondTheBuffer_OrPartlyBeyond_TouchesNothing) {
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

TEST_P(RefusalConformance, RefusedPackets_AmongGoodOnes_VoidNoneOfThem) {
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
  if (traits().counts_strays) {
    EXPECT_TRUE(until([&] { return strays() >= 40; }));  // the last one comes after the last good one
    EXPECT_EQ(b().counters().dropped_not_exposed, 20U);
    EXPECT_EQ(b().counters().dropped_out_of_range, 20U);
  }
}

TEST_P(RefusalConformance, Slot_ReusedThroughAllGenerations_PlacesEachInItsOwnBuffer) {
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

}  // namespace
}  // namespace sdr::transport::conformance

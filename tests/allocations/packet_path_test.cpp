// No allocation, no lock and no clock read for a packet, whatever the transport: messages of 32 times as many packets
// do none more.
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <vector>

#include "sdr/queue_pair.hpp"
#include "tests/allocations/counts.hpp"
#include "tests/sdk/pair.hpp"

namespace sdr {
namespace {

using namespace testing_support;

constexpr std::uint64_t kMtu = 1024;
constexpr std::uint64_t kFewPackets = 32;
constexpr std::uint64_t kManyPackets = 1024;
constexpr int kMessages = 8;

QueuePairOptions options() {
  QueuePairOptions qp;
  qp.mtu = Bytes{kMtu};
  qp.packets_per_chunk = 16;
  qp.max_message = Bytes{kManyPackets * kMtu};
  qp.slots = 16;
  qp.channels = 2;
  return qp;
}

// Two connected QueuePairs, and one round of driving both.
struct Ends {
  QueuePair& sender;
  QueuePair& receiver;
  std::function<void()> drive;
};

// One message after another of `bytes`, and what that took beside packets. Fails the test when one does not arrive.
Counts transfer(const Ends& ends, std::span<const std::byte> data, std::span<std::byte> into) {
  constexpr int kMostRounds = 20'000'000;
  const Counts before = counts_so_far();
  for (int message = 0; message < kMessages; ++message) {
    const RecvHandle receive = ends.receiver.post_receive(into).value();
    const ChunkBitmap bitmap = ends.receiver.chunk_bitmap(receive).value();
    const std::uint64_t chunks = (data.size() + 16 * kMtu - 1) / (16 * kMtu);
    bool posted = false;
    int round = 0;
    while (bits_set(bitmap) < chunks && round < kMostRounds) {
      if (!posted && ends.sender.next_grant()) posted = ends.sender.post_send(data, 0x1234'5678U).ok();
      ends.drive();
      ++round;
    }
    EXPECT_EQ(bits_set(bitmap), chunks) << "message " << message;
    EXPECT_TRUE(ends.receiver.complete(receive).ok());
  }
  return counts_so_far() - before;
}

void expect_nothing_per_packet(const Ends& ends) {
  const std::vector<std::byte> data = pattern(kManyPackets * kMtu, 5);
  std::vector<std::byte> into(data.size());
  const std::span<const std::byte> all(data);
  transfer(ends, all, into);  // what is allocated once is there now
  const Counts few = transfer(ends, all.first(kFewPackets * kMtu), into);
  const QueuePairCounters before = ends.receiver.counters();
  const Counts many = transfer(ends, all, into);
  const QueuePairCounters after = ends.receiver.counters();
  EXPECT_GE(after.packets_received - before.packets_received, kMessages * kManyPackets);
  EXPECT_EQ(into, data);
  EXPECT_EQ(many.allocations, few.allocations);
  EXPECT_EQ(many.locks, few.locks);
  EXPECT_EQ(many.clock_reads, few.clock_reads);
}

TEST(PacketPath, OverTheSimulatedNetwork_AllocatesLocksAndAsksTheTimeNoMoreForMorePackets) {
  PairOptions pair_options;
  pair_options.link = link("rtt=1ms,rate=10Gbit");
  pair_options.qp = options();
  Pair pair(pair_options);
  expect_nothing_per_packet({.sender = pair.a(), .receiver = pair.b(), .drive = [&] {
                               pair.drive();
                               pair.skip(std::chrono::microseconds(5));
                             }});
}

TEST(PacketPath, OverUdp_AllocatesLocksAndAsksTheTimeNoMoreForMorePackets) {
  for (const bool offload : {true, false}) {
    SCOPED_TRACE(offload ? "with UDP_SEGMENT and UDP_GRO" : "without");
    DeviceOptions device_options;
    device_options.segmentation = device_options.coalescing = offload;
    const auto device = open_device("udp:127.0.0.1", device_options);
    ASSERT_TRUE(device.ok()) << device.error().message;
    QueuePairOptions qp = options();
    qp.token = 0xA11CE;
    const auto sender = QueuePair::create(*device, qp);
    qp.token = 0xB0B;
    const auto receiver = QueuePair::create(*device, qp);
    ASSERT_TRUE(sender.ok() && receiver.ok());
    ASSERT_TRUE((*sender)->connect((*receiver)->info()).ok());
    ASSERT_TRUE((*receiver)->connect((*sender)->info()).ok());
    TimePoint now{std::chrono::seconds(1)};
    expect_nothing_per_packet({.sender = **sender, .receiver = **receiver, .drive = [&] {
                                 (*sender)->progress(now);
                                 (*receiver)->progress(now);
                                 now += std::chrono::microseconds(5);
                               }});
  }
}

}  // namespace
}  // namespace sdr

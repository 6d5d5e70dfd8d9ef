// A device as its host uses it, on each kind: slots, rings, doorbells, and what happens when it dies.
#include "offload/device.hpp"

#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>

namespace sdr::offload {
namespace {

using core::ChannelIndex;
using core::Generation;
using core::PacketOffset;
using core::SlotIndex;

constexpr std::uint32_t kUser = 0xC0FFEE42;
constexpr std::uint32_t kMtu = 1024;

DeviceOptions small(DeviceKind kind) {
  DeviceOptions options{.kind = kind};
  options.shape.geometry = {.layout = {}, .slots = 4, .packets_per_slot = 256, .log_packets_per_chunk = 3};
  options.shape.mtu = kMtu;
  options.shape.channels = 2;
  options.shape.workers = 2;
  options.shape.log_ring_entries = 5;
  return options;
}

class DeviceOfEachKind : public testing::TestWithParam<DeviceKind> {
 protected:
  void SetUp() override {
    if (GetParam() == DeviceKind::Riscv) {
      const Result<void> available = riscv_available();
      if (!available) GTEST_SKIP() << available.error().message;
    }
    open(small(GetParam()));
  }
  void open(const DeviceOptions& options) {
    device_.reset();
    Result<std::unique_ptr<Device>> opened = Device::open(options);
    ASSERT_TRUE(opened) << opened.error().message;
    device_ = std::move(*opened);
  }

  bool push(std::uint32_t slot, std::uint32_t offset, std::uint8_t generation, std::uint16_t length = kMtu) {
    const auto channel = static_cast<std::uint8_t>(offset % 2);
    const core::ImmediateLayout layout = device_->shape().geometry.layout;
    return device_->ring(ChannelIndex(channel))
        .push({.immediate = layout.encode(SlotIndex(slot), PacketOffset(offset), kUser),
               .length = length,
               .generation = generation,
               .channel = channel});
  }
  void carry_out(const Result<Ticket>& ticket) {
    ASSERT_TRUE(ticket) << ticket.error().message;
    const Result<void> done = device_->wait(*ticket);
    ASSERT_TRUE(done) << done.error().message;
  }
  // Until everything pushed has had its effect.
  void drain() {
    for (std::uint8_t c = 0; c < 2; ++c) {
      const RingProducer<>& ring = device_->ring(ChannelIndex(c));
      while (ring.consumed() < ring.produced()) {
        const Result<void> alive = device_->check();
        ASSERT_TRUE(alive) << alive.error().message;
        std::this_thread::yield();
      }
    }
  }
  [[nodiscard]] std::uint64_t chunks(std::uint32_t slot) const {
    return device_->chunk_bits(SlotIndex(slot))[0].load(std::memory_order_acquire);
  }

  std::unique_ptr<Device> device_;
};
INSTANTIATE_TEST_SUITE_P(Kinds, DeviceOfEachKind, testing::Values(DeviceKind::Host, DeviceKind::Riscv),
                         [](const auto& test) { return std::string(to_string(test.param)); });

TEST_P(DeviceOfEachKind, Message_ShowsItsChunksAndItsUserImmediate) {
  carry_out(device_->post(SlotIndex(2), Generation(3), 20));
  for (std::uint32_t p = 0; p < 20; ++p)
    if (p != 9) push(2, p, 3);
  drain();
  EXPECT_EQ(chunks(2), 0b101U) << "8 packets, 7 of 8, and the last 4";
  EXPECT_EQ(device_->user_immediate(SlotIndex(2)).value, kUser);
  EXPECT_EQ(device_->user_immediate(SlotIndex(2)).fragments_seen, 0xFFU);
  ASSERT_TRUE(push(2, 9, 3));
  drain();
  EXPECT_EQ(chunks(2), 0b111U);
  EXPECT_EQ(device_->counts().packets, 20U);
}

TEST_P(DeviceOfEachKind, ShortPacket_EndsItsMessage) {
  carry_out(device_->post(SlotIndex(0), Generation(0), 256));
  for (std::uint32_t p = 0; p < 11; ++p) ASSERT_TRUE(push(0, p, 0, p == 10 ? 100 : kMtu));
  drain();
  EXPECT_EQ(chunks(0), 0b11U);
}

TEST_P(DeviceOfEachKind, LatePacketDuplicateAndStranger_AreCountedAndTouchNothing) {
  carry_out(device_->post(SlotIndex(1), Generation(5), 16));
  for (std::uint32_t p = 0; p < 8; ++p) ASSERT_TRUE(push(1, p, 4));  // late
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(push(1, 0, 5));            // one packet and two duplicates
  ASSERT_TRUE(push(1, 16, 5));                                       // past the end
  ASSERT_TRUE(push(700, 0, 5));                                      // no such slot
  ASSERT_TRUE(push(3, 0, 0));                                        // not posted
  ASSERT_TRUE(device_->ring(ChannelIndex(0)).push_error());
  drain();
  EXPECT_EQ(chunks(1), 0U);
  const DeviceCounts counts = device_->counts();
  EXPECT_EQ(counts.late, 9U);
  EXPECT_EQ(counts.packets, 1U);
  EXPECT_EQ(counts.duplicates, 2U);
  EXPECT_EQ(counts.out_of_range, 2U);
  EXPECT_EQ(counts.errors, 1U);
}

TEST_P(DeviceOfEachKind, RepostedSlot_IsCleanAndTakesItsNewGenerationOnly) {
  carry_out(device_->post(SlotIndex(1), Generation(0), 16));
  for (std::uint32_t p = 0; p < 16; ++p) ASSERT_TRUE(push(1, p, 0));
  drain();
  EXPECT_EQ(chunks(1), 0b11U);
  carry_out(device_->repost(SlotIndex(1), Generation(1), 16));
  EXPECT_EQ(chunks(1), 0U);
  EXPECT_EQ(device_->user_immediate(SlotIndex(1)).fragments_seen, 0U);
  for (std::uint32_t p = 0; p < 8; ++p) ASSERT_TRUE(push(1, p, 0));
  for (std::uint32_t p = 8; p < 16; ++p) ASSERT_TRUE(push(1, p, 1));
  drain();
  EXPECT_EQ(chunks(1), 0b10U);
  EXPECT_EQ(device_->counts().late, 8U);
  carry_out(device_->complete(SlotIndex(1)));
  ASSERT_TRUE(push(1, 0, 1));
  drain();
  EXPECT_EQ(chunks(1), 0U);
  EXPECT_EQ(device_->counts().late, 9U);
}

TEST_P(DeviceOfEachKind, RingsGoRoundManyTimes_AndLoseNothing) {
  carry_out(device_->post(SlotIndex(0), Generation(0), 256));
  for (std::uint32_t i = 0; i < 256 * 20; ++i) {
    while (!push(0, i % 256, 0)) std::this_thread::yield();
  }
  drain();
  EXPECT_EQ(device_->counts().packets, 256U);
  EXPECT_EQ(device_->counts().duplicates, 256U * 19);
  EXPECT_EQ(chunks(0), 0xFFFF'FFFFU);
}

TEST_P(DeviceOfEachKind, StoppedDevice_SaysSoFromThenOn) {
  EXPECT_TRUE(device_->stop());
  EXPECT_FALSE(device_->post(SlotIndex(0), Generation(0), 1));
  ASSERT_FALSE(device_->check());
  EXPECT_NE(device_->check().error().message.find("was stopped"), std::string::npos);
}

TEST_P(DeviceOfEachKind, ImpossibleRequests_NameTheValueAndTheLimit) {
  EXPECT_NE(device_->post(SlotIndex(4), Generation(0), 1).error().message.find("slot 4 of a device with 4"),
            std::string::npos);
  EXPECT_NE(device_->post(SlotIndex(0), Generation(0), 257).error().message.find("257 packets posted to a slot of 256"),
            std::string::npos);
  const auto refused = [](auto change) {
    DeviceOptions options = small(DeviceKind::Host);
    change(options.shape);
    const Result<std::unique_ptr<Device>> device = Device::open(options);
    return device ? std::string() : device.error().message;
  };
  EXPECT_NE(refused([](Shape& s) { s.workers = 3; }).find("3 device threads for 2 channels"), std::string::npos);
  EXPECT_NE(refused([](Shape& s) { s.channels = 65; }).find("65 channels"), std::string::npos);
  EXPECT_NE(refused([](Shape& s) { s.geometry.slots = 2000; }).find("2000 slots"), std::string::npos);
  EXPECT_NE(refused([](Shape& s) { s.geometry.packets_per_slot = 100; }).find("100 packets"), std::string::npos);
  EXPECT_NE(refused([](Shape& s) { s.mtu = 0; }).find("MTU 0"), std::string::npos);
}

// A device in a process of its own, and the host that outlives it.
class DeviceProcess : public DeviceOfEachKind {};
INSTANTIATE_TEST_SUITE_P(Kinds, DeviceProcess, testing::Values(DeviceKind::Riscv),
                         [](const auto& test) { return std::string(to_string(test.param)); });

TEST_P(DeviceProcess, Killed_IsAnErrorAndWhatItReportedStays) {
  carry_out(device_->post(SlotIndex(0), Generation(0), 16));
  for (std::uint32_t p = 0; p < 8; ++p) ASSERT_TRUE(push(0, p, 0));
  drain();
  ::kill(device_->process_id(), SIGKILL);
  for (std::uint32_t p = 8; p < 16; ++p) ASSERT_TRUE(push(0, p, 0));
  const Result<Ticket> ticket = device_->complete(SlotIndex(0));
  ASSERT_TRUE(ticket);
  const Result<void> done = device_->wait(*ticket);  // returns by itself, well before ctest would end it
  ASSERT_FALSE(done);
  EXPECT_NE(done.error().message.find("signal 9"), std::string::npos) << done.error().message;
  EXPECT_EQ(chunks(0), 0b01U);
  EXPECT_EQ(device_->post(SlotIndex(1), Generation(0), 1).error().message, done.error().message);
  EXPECT_FALSE(device_->stop());
}

TEST_P(DeviceProcess, StandingStill_IsAnErrorOnceItsSilenceIsOver) {
  DeviceOptions options = small(DeviceKind::Riscv);
  options.silence = std::chrono::milliseconds(300);
  open(options);
  ::kill(device_->process_id(), SIGSTOP);
  const Result<Ticket> ticket = device_->post(SlotIndex(0), Generation(0), 1);
  ASSERT_TRUE(ticket);
  const Result<void> done = device_->wait(*ticket);
  // Stopping takes effect a little after the call: the command may have been carried out before.
  const Result<void> stands = done ? device_->wait(*ticket + 1) : done;
  ASSERT_FALSE(stands);
  EXPECT_NE(stands.error().message.find("has stood still for"), std::string::npos) << stands.error().message;
}

TEST_P(DeviceProcess, ThatTakesNothing_MakesRingAndDoorbellSayFull) {
  carry_out(device_->post(SlotIndex(0), Generation(0), 256));
  ::kill(device_->process_id(), SIGSTOP);
  // What it took before it stopped is not many laps.
  std::uint32_t pushed = 0;
  while (pushed < 100'000 && push(0, pushed % 128 * 2, 0)) ++pushed;
  ASSERT_LT(pushed, 100'000U);
  std::uint32_t rung = 0;
  Result<Ticket> ticket = Ticket{0};
  while (rung < 100'000 && (ticket = device_->complete(SlotIndex(1)))) ++rung;
  ASSERT_FALSE(ticket);
  EXPECT_EQ(ticket.error().code, ErrorCode::Retry);
  ::kill(device_->process_id(), SIGCONT);
  drain();
  EXPECT_EQ(device_->counts().total(), pushed);
  carry_out(Ticket{rung});  // the posts before it were one
  carry_out(device_->complete(SlotIndex(0)));
}

}  // namespace
}  // namespace sdr::offload

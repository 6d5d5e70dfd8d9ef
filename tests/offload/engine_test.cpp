// QueuePairs whose packets are a device's work, and what they do when it fails.
#include "offload/engine.hpp"

#include <gtest/gtest.h>
#include <signal.h>

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "sdr/offload.hpp"
#include "tests/offload/emulators.hpp"
#include "tests/sdk/pair.hpp"

namespace sdr::offload {
namespace {

using core::ChannelIndex;
using core::Generation;
using core::PacketOffset;
using core::SlotIndex;
using testing_support::link;
using testing_support::Pair;
using testing_support::pattern;

QueuePairOptions over(const OffloadOptions& options, Bandwidth rate = {}) {
  const Result<OffloadPtr> offload = open_offload(options);
  EXPECT_TRUE(offload) << offload.error().message;
  QueuePairOptions qp{.mtu = 1024_B, .packets_per_chunk = 4, .max_message = 1_MiB, .slots = 4, .channels = 2};
  qp.rate = rate;
  if (offload) qp.offload = *offload;
  return qp;
}

// The device lives in real time: each round of virtual time leaves it some.
bool slowly(bool done) {
  if (!done) std::this_thread::sleep_for(std::chrono::microseconds(300));
  return done;
}

class OffloadedPair : public testing::TestWithParam<OffloadDevice> {
 protected:
  void SetUp() override {
    if (GetParam() == OffloadDevice::Riscv && !riscv_available()) GTEST_SKIP() << riscv_available().error().message;
  }
};
INSTANTIATE_TEST_SUITE_P(Kinds, OffloadedPair, testing::Values(OffloadDevice::Host, OffloadDevice::Riscv),
                         [](const auto& test) { return std::string(sdr::to_string(test.param)); });

TEST_P(OffloadedPair, MessagesOfManySizes_ArriveWholeWithTheirImmediates) {
  Pair pair({.link = link("rtt=1ms"), .qp = over({.device = GetParam(), .threads = 2})});
  std::uint64_t packets = 0;
  for (const std::size_t size : {1U, 1023U, 1024U, 4096U, 5000U, 65536U, 300001U, 0U, 1048576U}) {
    const std::vector<std::byte> data = pattern(size, size);
    std::vector<std::byte> buffer(size);
    const RecvHandle receive = *pair.b().post_receive(buffer);
    const auto immediate = static_cast<std::uint32_t>(0xC0FFEE00 + size);
    const SendHandle send = pair.send(data, immediate);
    const auto chunks = static_cast<std::uint32_t>((size + 4095) / 4096);
    ASSERT_TRUE(pair.run_until([&] { return pair.chunks(receive) == chunks && pair.b().user_immediate(receive).ok(); }))
        << size;
    EXPECT_TRUE(pair.a().sent(send));
    EXPECT_EQ(buffer, data) << size;
    EXPECT_EQ(pair.b().user_immediate(receive).value(), immediate);
    EXPECT_TRUE(pair.b().touched(receive));
    ASSERT_TRUE(pair.b().complete(receive));
    packets += (size + 1023) / 1024;
  }
  EXPECT_EQ(pair.b().counters().packets_received, packets);
  EXPECT_EQ(pair.b().counters().duplicate_packets, 0U);
  EXPECT_FALSE(pair.a().offload_failure());
  EXPECT_FALSE(pair.b().offload_failure());
}

TEST_P(OffloadedPair, EarlyCompletion_MakesTheRestLateAndTouchesNothing) {
  Pair pair({.link = link("rtt=10ms,rate=10Mbit"), .qp = over({.device = GetParam()}, Bandwidth{8e6})});
  std::vector<std::byte> buffer(200 << 10);
  const RecvHandle receive = *pair.b().post_receive(buffer);
  const std::vector<std::byte> data = pattern(buffer.size(), 1);
  pair.send(data);
  ASSERT_TRUE(pair.run_until([&] { return slowly(pair.chunks(receive) >= 3); }));
  ASSERT_TRUE(pair.b().complete(receive));
  const std::vector<std::byte> seen = buffer;
  pair.run_for(std::chrono::seconds(1));
  EXPECT_EQ(buffer, seen);
  EXPECT_GT(pair.b().counters().late_packets, 0U);
}

TEST_P(OffloadedPair, MessageOfOtherLengthThanPosted_CompletesItsShortChunk) {
  Pair pair({.link = link("rtt=1ms"), .qp = over({.device = GetParam()})});
  const std::vector<std::byte> data = pattern(6 * 1024, 3);
  std::vector<std::byte> buffer(64 << 10);
  const RecvHandle receive = *pair.b().post_receive(buffer);
  SendHandle stream{};
  ASSERT_TRUE(pair.run_until([&] {
    const Result<SendHandle> started = pair.a().start_stream(std::nullopt);
    if (started) stream = *started;
    return started.ok();
  }));
  ASSERT_TRUE(pair.a().send_packets(stream, 0, data, false));
  ASSERT_TRUE(pair.run_until([&] { return pair.chunks(receive) == 1; }));
  pair.run_for(std::chrono::milliseconds(50));
  EXPECT_EQ(pair.chunks(receive), 1U) << "two packets of four, and no word that these are all";
  ASSERT_TRUE(pair.b().set_length(receive, Bytes{data.size()}));
  for (int round = 0; round < 100'000 && pair.chunks(receive) != 2; ++round) std::this_thread::yield();
  EXPECT_EQ(pair.chunks(receive), 2U);
}

TEST_P(OffloadedPair, HalvesBySelf_WorkAsWell) {
  for (const bool receive_half : {true, false}) {
    Pair pair(
        {.link = link("rtt=1ms"), .qp = over({.device = GetParam(), .receive = receive_half, .send = !receive_half})});
    const std::vector<std::byte> data = pattern(100'000, 9);
    std::vector<std::byte> buffer(data.size());
    const RecvHandle receive = *pair.b().post_receive(buffer);
    pair.send(data);
    ASSERT_TRUE(pair.run_until([&] { return pair.chunks(receive) == 25; }));
    EXPECT_EQ(buffer, data);
  }
}

class FailingDevice : public testing::Test {
 protected:
  void SetUp() override {
    if (!riscv_available()) GTEST_SKIP() << riscv_available().error().message;
  }
};

TEST_F(FailingDevice, KilledInTheMidst_LosesNothingAndBothEndsGoOnWithoutIt) {
  Pair pair({.link = link("rtt=10ms,rate=20Mbit"),
             .qp = over({.device = OffloadDevice::Riscv, .threads = 2}, Bandwidth{16e6})});
  const std::vector<std::byte> data = pattern(400 << 10, 4);
  std::vector<std::byte> buffer(data.size());
  const RecvHandle receive = *pair.b().post_receive(buffer);
  const SendHandle send = pair.send(data);
  ASSERT_TRUE(pair.run_until([&] { return slowly(pair.chunks(receive) >= 10); }));
  const std::uint64_t reported = pair.b().chunk_bitmap(receive).value()[0].load();
  for (const pid_t emulator : emulators()) ::kill(emulator, SIGKILL);
  ASSERT_TRUE(pair.run_until([&] { return pair.chunks(receive) == 100; })) << pair.chunks(receive);
  EXPECT_EQ(pair.b().chunk_bitmap(receive).value()[0].load() & reported, reported);
  EXPECT_EQ(buffer, data);
  EXPECT_TRUE(pair.a().sent(send));
  ASSERT_TRUE(pair.b().complete(receive));
  // A process that was killed takes a moment of real time to end.
  for (QueuePair* end : {&pair.a(), &pair.b()}) {
    for (int round = 0; round < 2000 && !end->offload_failure(); ++round) {
      pair.run_for(std::chrono::milliseconds(5));
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    ASSERT_TRUE(end->offload_failure());
    EXPECT_NE(end->offload_failure()->message.find("the riscv device (process "), std::string::npos);
    EXPECT_NE(end->offload_failure()->message.find("signal 9"), std::string::npos);
  }
  for (int message = 0; message < 6; ++message) {
    std::vector<std::byte> next(data.size());
    const RecvHandle posted = *pair.b().post_receive(next);
    pair.send(data);
    ASSERT_TRUE(pair.run_until([&] { return pair.chunks(posted) == 100; })) << message;
    EXPECT_EQ(next, data);
    ASSERT_TRUE(pair.b().complete(posted));
  }
  EXPECT_EQ(pair.b().counters().packets_received, 7 * 400U);
}

// A worker a channel.
std::unique_ptr<Device> device(DeviceKind kind, std::uint32_t channels, Duration silence = std::chrono::seconds(2),
                               std::uint32_t burst = 0) {
  DeviceOptions options{.kind = kind, .silence = silence};
  options.shape.geometry = {.layout = {}, .slots = 4, .packets_per_slot = 256, .log_packets_per_chunk = 3};
  options.shape.mtu = 1024;
  options.shape.channels = channels;
  options.shape.workers = channels;
  options.shape.burst = burst;
  Result<std::unique_ptr<Device>> opened = Device::open(options);
  EXPECT_TRUE(opened) << opened.error().message;
  return std::move(*opened);
}

std::unique_ptr<Engine> engine(Duration silence = std::chrono::seconds(2)) {
  return std::make_unique<Engine>(device(DeviceKind::Riscv, 2, silence), DeviceKind::Riscv,
                                  Engine::Halves{.receive = true, .send = false});
}

std::vector<core::Completion> packets(std::uint32_t slot, std::uint32_t first, std::uint32_t count) {
  std::vector<core::Completion> made;
  for (std::uint32_t p = first; p < first + count; ++p)
    made.push_back({.immediate = core::ImmediateLayout{}.encode(SlotIndex(slot), PacketOffset(p), 0x12345678),
                    .length = 1024,
                    .generation = 2});
  return made;
}

TEST_F(FailingDevice, CompletionsThatItHadNotTaken_AreTakenUp) {
  const auto engine_ = engine();
  engine_->post(SlotIndex(1), Generation(2), 256);
  ::kill(engine_->process_id(), SIGSTOP);
  engine_->take(ChannelIndex(0), packets(1, 0, 12));
  engine_->take(ChannelIndex(1), packets(1, 12, 28));
  ::kill(engine_->process_id(), SIGKILL);
  for (TimePoint now{}; !engine_->failure(); now += std::chrono::seconds(1)) engine_->look(now);
  EXPECT_EQ(engine_->table().chunk_bits(SlotIndex(1))[0].load(), 0b11111U);
  EXPECT_FALSE(engine_->pending());
  engine_->take(ChannelIndex(0), packets(1, 40, 8));
  EXPECT_EQ(engine_->table().chunk_bits(SlotIndex(1))[0].load(), 0b111111U);
  EXPECT_EQ(engine_->counts().packets, 48U);
  engine_->complete(SlotIndex(1));
  EXPECT_EQ(engine_->table().chunk_bits(SlotIndex(1))[0].load(), 0U);
  engine_->take(ChannelIndex(0), packets(1, 0, 8));
  EXPECT_EQ(engine_->counts().late, 8U);
}

// Until the engine has seen that its device is gone.
void look_until_failed(Engine& engine) {
  for (TimePoint now{}; !engine.failure(); now += std::chrono::seconds(1)) engine.look(now);
}

TEST_F(FailingDevice, ThatHasWrittenNonsenseAboutASlot_IsBelievedWithinWhatWasPosted) {
  const auto engine_ = engine();
  engine_->post(SlotIndex(1), Generation(2), 256);
  engine_->take(ChannelIndex(0), packets(1, 0, 8));
  while (engine_->pending()) std::this_thread::yield();
  ::kill(engine_->process_id(), SIGKILL);
  for (std::uint32_t s = 0; s < 4; ++s) {
    core::Slot& slot = engine_->table().slot(SlotIndex(s));
    slot.words_touched.store(0x7FFF'FFFF);
    slot.packets = 0x7FFF'FFFF;
    slot.state.store(core::kSlotOpen | 0x55);
  }
  look_until_failed(*engine_);
  EXPECT_EQ(engine_->table().chunk_bits(SlotIndex(1))[0].load(), 1U);
  engine_->take(ChannelIndex(0), packets(1, 8, 8));
  engine_->take(ChannelIndex(0), packets(1, 250, 6));
  engine_->take(ChannelIndex(0), packets(1, 256, 4));
  EXPECT_EQ(engine_->table().chunk_bits(SlotIndex(1))[0].load(), 3U);
  EXPECT_EQ(engine_->counts().out_of_range, 4U);
  for (std::uint32_t s = 0; s < 4; ++s) {
    engine_->complete(SlotIndex(s));
    engine_->post(SlotIndex(s), Generation(2), 256);
    engine_->take(ChannelIndex(0), packets(s, 0, 256));
    EXPECT_EQ(engine_->table().chunk_bits(SlotIndex(s))[0].load(), 0xFFFF'FFFFU) << s;
  }
}

TEST_F(FailingDevice, ThatHasNotBeenToldOfAMessagesLength_LosesNoChunkToIt) {
  const auto engine_ = engine();
  engine_->post(SlotIndex(2), Generation(2), 256);
  ::kill(engine_->process_id(), SIGSTOP);
  engine_->take(ChannelIndex(0), packets(2, 0, 12));
  engine_->end(SlotIndex(2), 12);
  ::kill(engine_->process_id(), SIGKILL);
  look_until_failed(*engine_);
  EXPECT_EQ(engine_->table().chunk_bits(SlotIndex(2))[0].load(), 0b11U);
}

TEST_F(FailingDevice, ThatStandsStill_IsEndedAndLeftWithinItsSilence) {
  const auto engine_ = engine(std::chrono::milliseconds(300));
  engine_->post(SlotIndex(0), Generation(2), 256);
  ::kill(engine_->process_id(), SIGSTOP);
  // More than the ring holds: what finds no room waits for the device, and then no longer.
  engine_->take(ChannelIndex(0), packets(0, 0, 256));
  engine_->take(ChannelIndex(0), packets(0, 0, 256));
  for (int more = 0; more < 4; ++more) engine_->take(ChannelIndex(0), packets(0, 0, 256));
  engine_->post(SlotIndex(1), Generation(2), 16);
  ASSERT_TRUE(engine_->failure());
  EXPECT_NE(engine_->failure()->message.find("has stood still for"), std::string::npos) << engine_->failure()->message;
  EXPECT_EQ(engine_->table().chunk_bits(SlotIndex(0))[0].load(), 0xFFFF'FFFFU);
  EXPECT_EQ(engine_->counts().packets, 256U);
  engine_->take(ChannelIndex(1), packets(1, 0, 16));
  EXPECT_EQ(engine_->table().chunk_bits(SlotIndex(1))[0].load(), 0b11U);
}

// Left in the ring, it would come up in a later use of the slot that has the same generation.
TEST(Engine, ACompletedSlot_HasNothingInTheDevicesRingsAnyMore) {
  Engine engine(device(DeviceKind::Host, 4), DeviceKind::Host, Engine::Halves{.receive = true, .send = false});
  for (int round = 0; round < 200; ++round) {
    engine.post(SlotIndex(0), Generation(2), 256);
    for (std::uint8_t channel = 0; channel < 4; ++channel)
      engine.take(ChannelIndex(channel), packets(0, std::uint32_t{channel} * 64, 64));
    engine.complete(SlotIndex(0));
    ASSERT_FALSE(engine.pending()) << round;
  }
  EXPECT_EQ(engine.counts().packets, 200U * 256);
}

// An engine that sends, with a device whose memory the test may write.
struct SendingEngine {
  SendingEngine() {
    std::unique_ptr<Device> opened = offload::device(DeviceKind::Host, 2, std::chrono::seconds(2), 16);
    device = opened.get();
    engine =
        std::make_unique<Engine>(std::move(opened), DeviceKind::Host, Engine::Halves{.receive = false, .send = true});
    EXPECT_TRUE(engine->submit({.data = data.data(), .bytes = data.size(), .slot = SlotIndex(0), .trailing = 1}));
    while (device->work(ChannelIndex(0)).look(3) == nullptr) std::this_thread::yield();
  }
  WorkEntry& entry(std::uint64_t ahead) { return const_cast<WorkEntry*>(device->work(ChannelIndex(0)).look(0))[ahead]; }

  std::vector<std::byte> data = pattern(2500, 1);
  Device* device = nullptr;
  std::unique_ptr<Engine> engine;
};

TEST(Engine, PacketsThatTheDeviceMade_AreThoseThatWereCommanded) {
  SendingEngine sending;
  std::vector<sdk::SendWork> made(8);
  ASSERT_EQ(sending.engine->made(made), 4U);
  for (std::uint32_t n = 0; n < 4; ++n) {
    EXPECT_EQ(made[n].data, sending.data.data() + std::min<std::size_t>(n * 1024, 2500));
    EXPECT_EQ(made[n].length, n < 2 ? 1024 : n == 2 ? 452 : 0);
    EXPECT_EQ(core::ImmediateLayout{}.decode(made[n].immediate).offset.value, n);
  }
  sending.engine->sent(2);
  ASSERT_EQ(sending.engine->made(made), 2U);
  EXPECT_EQ(made[0].length, 452);
  EXPECT_FALSE(sending.engine->failure());
}

TEST(Engine, APacketThatWasNotCommanded_IsNotSentAndEndsTheDevice) {
  const std::pair<const char*, std::function<void(SendingEngine&)>> wrongs[] = {
      {"address", [](SendingEngine& s) { s.entry(1).address = 8; }},
      {"length", [](SendingEngine& s) { s.entry(1).byte_count_be = swap_bytes(60000); }},
      {"immediate", [](SendingEngine& s) { s.entry(1).immediate_be ^= 0x80; }},
      {"generation", [](SendingEngine& s) { s.entry(1).generation = 9; }},
      {"channel", [](SendingEngine& s) { s.entry(1).channel = 250; }},
  };
  for (const auto& [what, spoil] : wrongs) {
    SendingEngine sending;
    spoil(sending);
    std::vector<sdk::SendWork> made(8);
    EXPECT_EQ(sending.engine->made(made), 1U) << what;
    ASSERT_TRUE(sending.engine->failure()) << what;
    EXPECT_EQ(sending.engine->failure()->code, ErrorCode::Protocol);
    EXPECT_NE(sending.engine->failure()->message.find("not asked for"), std::string::npos);
    EXPECT_FALSE(sending.engine->sends());
  }
  SendingEngine sending;
  sending.entry(4).ownership.store(WorkEntry::kMade);
  std::vector<sdk::SendWork> made(8);
  EXPECT_EQ(sending.engine->made(made), 4U) << "one more than commanded";
  EXPECT_TRUE(sending.engine->failure());
}

TEST(OpenOffload, WithWhatItCannotDo_NamesTheValueAndTheLimit) {
  const auto refused = [](const OffloadOptions& options) {
    const Result<OffloadPtr> opened = open_offload(options);
    return opened ? std::string("opened") : opened.error().message;
  };
  EXPECT_NE(refused({.threads = 65}).find("65 offload threads, not 1 to 64"), std::string::npos);
  EXPECT_NE(refused({.silence = Duration(0)}).find("silent for"), std::string::npos);
  EXPECT_NE(refused({.receive = false, .send = false}).find("neither"), std::string::npos);
}

}  // namespace
}  // namespace sdr::offload

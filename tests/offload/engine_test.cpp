// QueuePairs whose packets are a device's work, and what they do when it fails.
#include "offload/engine.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "sdr/offload.hpp"
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

// Emulators that this process has started.
std::vector<pid_t> emulators() {
  std::ifstream file("/proc/self/task/" + std::to_string(::getpid()) + "/children");
  std::vector<pid_t> found;
  for (pid_t child = 0; file >> child;) {
    std::ifstream comm("/proc/" + std::to_string(child) + "/comm");
    std::string name;
    if (std::getline(comm, name) && name.starts_with("qemu-riscv64")) found.push_back(child);
  }
  return found;
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

std::unique_ptr<Engine> engine(Duration silence = std::chrono::seconds(2)) {
  DeviceOptions options{.kind = DeviceKind::Riscv, .silence = silence};
  options.shape.geometry = {.layout = {}, .slots = 4, .packets_per_slot = 256, .log_packets_per_chunk = 3};
  options.shape.mtu = 1024;
  options.shape.channels = 2;
  options.shape.workers = 2;
  Result<std::unique_ptr<Device>> device = Device::open(options);
  EXPECT_TRUE(device) << device.error().message;
  return std::make_unique<Engine>(std::move(*device), DeviceKind::Riscv,
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

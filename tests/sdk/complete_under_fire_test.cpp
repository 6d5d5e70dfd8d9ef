// recv_complete against packets in flight, for real: threads, UDP over loopback, completion at random moments while
// packets pour in. From the moment complete() returns the buffer is the user's: it is filled with a canary at once, and
// stays intact while later messages use the slot again and again.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <deque>
#include <thread>
#include <utility>

#include "tests/core/seed.hpp"
#include "tests/sdk/pair.hpp"
#include "transport/udp.hpp"

namespace sdr {
namespace {

using namespace testing_support;

constexpr std::byte kCanary{0xAD};
constexpr std::byte kPayload{0x52};
constexpr std::size_t kBytes = 256 << 10;
constexpr int kCompletions = 200;
constexpr std::size_t kChunk = 16 << 10;
constexpr std::size_t kQuarantine = 12;  // buffers that are watched after their completion

TimePoint wall() {
  return TimePoint(std::chrono::steady_clock::now().time_since_epoch());
}

std::unique_ptr<QueuePair> make(std::uint64_t token, std::uint8_t channels, Bandwidth rate = {}) {
  auto made =
      QueuePair::create(std::make_shared<transport::UdpDevice>(transport::UdpOptions{.bind_address = "127.0.0.1"}),
                        {.mtu = 1024_B,
                         .packets_per_chunk = kChunk / 1024,
                         .max_message = Bytes{kBytes},
                         .slots = 4,
                         .channels = channels,
                         .rate = rate,
                         .initial_rtt = std::chrono::milliseconds(1),
                         .token = token});
  EXPECT_TRUE(made.ok()) << (made.ok() ? "" : made.error().message);
  return made.ok() ? std::move(made).value() : nullptr;
}

struct Buffer {
  std::vector<std::byte> bytes = std::vector<std::byte>(kBytes);
  RecvHandle receive;
};

// A thread that does something again and again, until it goes out of scope.
class Repeating {
 public:
  explicit Repeating(std::function<void()> work)
      : thread_([this, work = std::move(work)] {
          while (!stop_.load(std::memory_order_relaxed)) work();
        }) {}
  ~Repeating() {
    stop_.store(true, std::memory_order_relaxed);
    thread_.join();
  }
  Repeating(const Repeating&) = delete;
  Repeating& operator=(const Repeating&) = delete;

 private:
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

TEST(CompleteUnderFire, AtRandomMoments_LeavesTheBufferToTheUser) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(seed_trace(seed));
  std::mt19937_64 random(seed);
  constexpr std::uint8_t kChannels = 2;
  const auto sender = make(1, kChannels, {300e6});  // a message takes several milliseconds: long enough to be caught in
  const auto receiver = make(2, kChannels);
  ASSERT_TRUE(sender && receiver);
  ASSERT_TRUE(sender->connect(receiver->info()).ok());
  ASSERT_TRUE(receiver->connect(sender->info()).ok());
  ASSERT_TRUE(receiver->local_path());
  receiver->own_channels(false);

  const std::vector<std::byte> source(kBytes, kPayload);
  const std::vector<std::byte> canary(kBytes, kCanary);
  std::deque<Buffer> open;  // outlives the workers: its receives stay posted to the end
  std::deque<Buffer> quarantine;
  const Repeating sending([&] {
    (void)sender->post_send(source, 0x600DF00D);
    sender->progress(wall());
    std::this_thread::yield();
  });
  std::vector<std::unique_ptr<Repeating>> workers;
  for (std::uint8_t c = 0; c < kChannels; ++c) {
    workers.push_back(std::make_unique<Repeating>([&, c] {
      if (receiver->poll_channel(c, wall()) == 0) std::this_thread::yield();
    }));
  }

  int incomplete = 0;
  for (int completed = 0; completed < kCompletions; ++completed) {
    while (open.size() < 4) {
      Buffer buffer;
      if (quarantine.size() >= kQuarantine) {
        buffer = std::move(quarantine.front());
        quarantine.pop_front();
        ASSERT_EQ(buffer.bytes, canary) << "receive " << buffer.receive.number;
      }
      buffer.receive = receiver->post_receive(buffer.bytes).value();
      open.push_back(std::move(buffer));
    }
    // Somewhere in the middle of the message, however fast this machine is; at once now and then, and not for ever when
    // the rest of it is lost.
    Buffer& oldest = open.front();
    const ChunkBitmap bitmap = receiver->chunk_bitmap(oldest.receive).value();
    const std::size_t enough = random() % (kBytes / kChunk);
    std::uint32_t arrived = 0;
    const auto waiting = [&] { return enough > arrived || !receiver->touched(oldest.receive); };
    for (int quiet = 0; completed % 20 != 0 && quiet < 2000 && waiting(); ++quiet) {
      receiver->progress(wall());
      const std::uint32_t before = std::exchange(arrived, bits_set(bitmap));
      if (arrived != before) quiet = 0;
      std::this_thread::yield();
    }
    for (std::size_t c = 0; c < kBytes / kChunk; ++c) {
      if (!bit(bitmap, c)) continue;
      ASSERT_EQ(std::memcmp(&oldest.bytes[c * kChunk], source.data(), kChunk), 0) << "chunk " << c;
    }
    if (bits_set(bitmap) < kBytes / kChunk) ++incomplete;
    ASSERT_TRUE(receiver->complete(oldest.receive).ok());
    oldest.bytes.assign(kBytes, kCanary);
    quarantine.push_back(std::move(oldest));
    open.pop_front();
  }
  EXPECT_GT(incomplete, 0);
  for (const Buffer& buffer : quarantine) EXPECT_EQ(buffer.bytes, canary) << "receive " << buffer.receive.number;
  EXPECT_GT(receiver->counters().packets_received, 0U);
  RecordProperty("completed_with_chunks_missing", incomplete);
  RecordProperty("late_packets", static_cast<int>(receiver->counters().late_packets));
}

// Nothing is lost on this machine as long as the landing window holds: every message arrives whole, and quickly enough
// that no probe was needed to get going again more than now and then.
TEST(LocalPath, WithoutAnyPace_DeliversMessageAfterMessage) {
  const auto sender = make(1, 1);
  const auto receiver = make(2, 1);
  ASSERT_TRUE(sender && receiver);
  ASSERT_TRUE(sender->connect(receiver->info()).ok());
  ASSERT_TRUE(receiver->connect(sender->info()).ok());
  const std::vector<std::byte> source = pattern(kBytes, 3);
  std::vector<std::byte> target(kBytes);
  for (int message = 0; message < 50; ++message) {
    std::fill(target.begin(), target.end(), std::byte{0});
    const RecvHandle receive = receiver->post_receive(target).value();
    const TimePoint limit = wall() + std::chrono::seconds(60);
    bool posted = false;
    while (bits_set(*receiver->chunk_bitmap(receive)) < 16 && wall() < limit) {
      if (!posted) posted = sender->post_send(source, std::nullopt).ok();
      sender->progress(wall());
      receiver->progress(wall());
    }
    ASSERT_EQ(source, target) << "message " << message;
    ASSERT_TRUE(receiver->complete(receive).ok());
  }
  EXPECT_EQ(receiver->counters().host_drops, 0U);
  EXPECT_EQ(receiver->counters().duplicate_packets + receiver->counters().late_packets, 0U);
}

}  // namespace
}  // namespace sdr

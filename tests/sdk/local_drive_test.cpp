// A drive between processes of one machine: it takes no more of what waits than stays in the cache for the layer above,
// says that there is more, and in the end has taken all. UDP over loopback, both ends in this thread.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "runtime/clock.hpp"
#include "tests/sdk/pair.hpp"
#include "transport/udp.hpp"

namespace sdr {
namespace {

using namespace testing_support;

constexpr std::size_t kBytes = 8 << 20;
constexpr std::uint64_t kCached = 512 << 10;

class LocalDrive : public ::testing::TestWithParam<std::uint32_t> {
 protected:
  void SetUp() override {
    sender = make(1);
    receiver = make(2);
    ASSERT_TRUE(sender && receiver);
    ASSERT_TRUE(sender->connect(receiver->info()).ok());
    ASSERT_TRUE(receiver->connect(sender->info()).ok());
    ASSERT_TRUE(receiver->local_path());
  }

  const std::uint64_t packets = (kBytes + GetParam() - 1) / GetParam();
  std::unique_ptr<QueuePair> sender, receiver;

 private:
  [[nodiscard]] std::unique_ptr<QueuePair> make(std::uint64_t token) const {
    const Bytes mtu{GetParam()};
    const Bytes whole{packets * mtu.count};
    auto made =
        QueuePair::create(std::make_shared<transport::UdpDevice>(transport::UdpOptions{.bind_address = "127.0.0.1"}),
                          {.mtu = mtu, .max_message = whole, .slots = 2, .channels = 1, .token = token});
    EXPECT_TRUE(made.ok()) << (made.ok() ? "" : made.error().message);
    return made.ok() ? std::move(made).value() : nullptr;
  }
};

TEST_P(LocalDrive, TakesWhatStaysInTheCache_AndSaysWhenThereIsMore) {
  const std::vector<std::byte> data = pattern(kBytes, 1);
  std::vector<std::byte> buffer(kBytes);
  ASSERT_TRUE(receiver->post_receive(buffer).ok());
  bool posted = false;
  std::uint64_t taken = 0;
  std::uint64_t most_in_a_drive = 0;
  const TimePoint give_up = runtime::now() + std::chrono::seconds(30);
  for (TimePoint now = runtime::now(); taken < packets && now < give_up; now = runtime::now()) {
    sender->progress(now);  // fills the socket, as far as the window lets it
    if (!posted) posted = sender->post_send(data, std::nullopt).ok();
    for (bool more = true; more;) {
      const TimePoint next = receiver->progress(now);
      const std::uint64_t all = receiver->counters().packets_received;
      const std::uint64_t bytes = (all - taken) * GetParam();
      most_in_a_drive = std::max(most_in_a_drive, bytes);
      if (bytes >= kCached / 2) {
        EXPECT_LE(next, now) << "there may be more";
      }
      more = all != taken;
      taken = all;
    }
  }
  EXPECT_EQ(taken, packets);
  EXPECT_TRUE(buffer == data);
  EXPECT_LE(most_in_a_drive, kCached);
}

TEST_P(LocalDrive, AfterAProbe_TakesAllThatWaitsBeforeItAnswers) {
  const std::vector<std::byte> data = pattern(kBytes, 2);
  std::vector<std::byte> buffer(kBytes);
  const RecvHandle receive = receiver->post_receive(buffer).value();
  const TimePoint give_up = runtime::now() + std::chrono::seconds(30);
  TimePoint now = runtime::now();
  bool posted = false;
  for (int drive = 0; receiver->counters().packets_received < packets && runtime::now() < give_up; ++drive) {
    now += std::chrono::milliseconds(3);  // so long without word is cause for a probe
    sender->progress(now);
    if (!posted) posted = sender->post_send(data, std::nullopt).ok();
    receiver->progress(now);
    EXPECT_EQ(sender->counters().peer_drops, 0U) << "in drive " << drive;
  }
  EXPECT_TRUE(receiver->touched(receive));
  EXPECT_TRUE(buffer == data);
  EXPECT_EQ(receiver->counters().host_drops, 0U);
}

TEST_P(LocalDrive, WhatComesTooLate_IsNoLossToTheSender) {
  const std::vector<std::byte> data = pattern(kBytes, 3);
  std::vector<std::byte> buffer(kBytes);
  std::optional<RecvHandle> open = receiver->post_receive(buffer).value();
  const TimePoint give_up = runtime::now() + std::chrono::seconds(30);
  TimePoint now = runtime::now();
  std::optional<SendHandle> sent;
  const auto taken = [&] { return receiver->counters().packets_received + receiver->counters().late_packets; };
  while (taken() < packets && runtime::now() < give_up) {
    now += std::chrono::milliseconds(3);  // so long without word is cause for a probe
    sender->progress(now);
    if (!sent) {
      if (const auto posted = sender->post_send(data, std::nullopt); posted.ok()) sent = *posted;
    }
    receiver->progress(now);
    if (open && receiver->counters().packets_received > 0) {
      ASSERT_TRUE(receiver->complete(*open).ok());  // the rest is late
      open.reset();
    }
    EXPECT_EQ(sender->counters().peer_drops, 0U);
  }
  EXPECT_EQ(taken(), packets);
  EXPECT_GT(receiver->counters().late_packets, packets / 2);
}

INSTANTIATE_TEST_SUITE_P(Payloads, LocalDrive, ::testing::Values(1440, 4096, 8928),
                         [](const auto& of) { return std::to_string(of.param); });

}  // namespace
}  // namespace sdr

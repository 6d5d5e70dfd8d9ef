// Pair: two connected QueuePairs over a SimulatedNetwork, driven in virtual time.
//
//   Pair pair({.link = link("rtt=10ms,loss=1e-2"), .qp = {.mtu = 1024_B, .packets_per_chunk = 4}});
//   const RecvHandle receive = *pair.b().post_receive(buffer);
//   const SendHandle send = pair.send(data);              // waits for the CTS
//   EXPECT_TRUE(pair.run_until([&] { return pair.chunks(receive) == 3; }));
//
// By custom a() sends and b() receives; the link is the same either way. Filters, held and forged packets: network().
// One thread; time passes only in run_until() and run_for().
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <span>
#include <string_view>
#include <vector>

#include "sdr/queue_pair.hpp"
#include "tests/transport/wrapped_device.hpp"
#include "transport/simulated.hpp"

namespace sdr::testing_support {

inline simulation::LinkSpec link(std::string_view text) {
  return simulation::LinkSpec::parse(text).value();
}

// Bytes that differ from message to message and from place to place.
inline std::vector<std::byte> pattern(std::size_t size, std::uint64_t seed) {
  std::mt19937_64 random(seed * 0x9E3779B97F4A7C15 + 1);
  std::vector<std::byte> bytes(size);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

inline std::uint32_t bits_set(ChunkBitmap bitmap) {
  std::uint32_t count = 0;
  for (const auto& word : bitmap)
    count += static_cast<std::uint32_t>(std::popcount(word.load(std::memory_order_acquire)));
  return count;
}
inline bool bit(ChunkBitmap bitmap, std::size_t chunk) {
  return (bitmap[chunk / 64].load(std::memory_order_acquire) >> (chunk % 64) & 1) != 0;
}

struct PairOptions {
  simulation::LinkSpec link = testing_support::link("rtt=10ms");
  QueuePairOptions qp;  // of both; tokens are given where they are 0
  bool connected = true;
  WrappedDevice::Wrap wrap_b{};  // stands between b() and the network
};

class Pair {
 public:
  static constexpr Duration kPatience = std::chrono::seconds(600);

  explicit Pair(const PairOptions& options = {})
      : network_(std::make_shared<transport::SimulatedNetwork>(transport::SimulatedOptions{.link = options.link})) {
    QueuePairOptions qp = options.qp;
    if (qp.token == 0) qp.token = 0xA11CE;
    a_ = make(device(transport::Site::A), qp);
    qp.token = ~qp.token;
    b_ = make(options.wrap_b ? std::make_shared<WrappedDevice>(network_->device(transport::Site::B), options.wrap_b)
                             : device(transport::Site::B),
              qp);
    if (!options.connected) return;
    EXPECT_TRUE(a_->connect(b_->info()).ok());
    EXPECT_TRUE(b_->connect(a_->info()).ok());
  }

  [[nodiscard]] QueuePair& a() { return *a_; }
  [[nodiscard]] QueuePair& b() { return *b_; }
  [[nodiscard]] transport::SimulatedNetwork& network() { return *network_; }
  [[nodiscard]] transport::SimulatedEndpoint& endpoint_a() { return *network_->endpoint(transport::Site::A); }
  [[nodiscard]] transport::SimulatedEndpoint& endpoint_b() { return *network_->endpoint(transport::Site::B); }
  [[nodiscard]] TimePoint now() const { return now_; }
  // A device of this network, for a QueuePair beside the two.
  [[nodiscard]] DevicePtr device(transport::Site site) { return DevicePtr(network_, &network_->device(site)); }

  // Drives both until `done`, from event to event; false when `limit` has passed or nothing will ever happen again.
  bool run_until(const std::function<bool()>& done, Duration limit = kPatience) {
    const TimePoint deadline = now_ + limit;
    int rounds_at_once = 0;
    while (!done()) {
      const TimePoint wanted = std::min(a_->progress(now_), b_->progress(now_));
      if (done()) return true;
      const TimePoint next = std::min(wanted, network_->next_event());
      if (next > deadline) {
        if (next != kNever) now_ = deadline;
        return false;
      }
      rounds_at_once = next > now_ ? 0 : rounds_at_once + 1;
      if (rounds_at_once > 100000) {
        ADD_FAILURE() << "progress() wants to be called at once for ever";
        return false;
      }
      now_ = std::max(now_, next);
    }
    return true;
  }
  // Drives both for `time`.
  void run_for(Duration time) {
    const TimePoint end = now_ + time;
    run_until([] { return false; }, time);
    now_ = end;
    drive();
  }
  // One round at the present time.
  void drive() {
    a_->progress(now_);
    b_->progress(now_);
  }
  // Time passes and nobody is driven.
  void skip(Duration time) { now_ += time; }

  // post_send() on a() as soon as its CTS is there.
  SendHandle send(std::span<const std::byte> data, std::optional<std::uint32_t> user_immediate = std::nullopt) {
    Result<SendHandle> handle = Error{};
    const bool posted = run_until([&] {
      handle = a_->post_send(data, user_immediate);
      return handle.ok() || handle.error().code != ErrorCode::Retry;
    });
    EXPECT_TRUE(posted && handle.ok()) << (handle.ok() ? "timed out" : handle.error().message);
    return handle.ok() ? *handle : SendHandle{~std::uint64_t{0}};
  }
  // Chunks of a receive of b() that are there.
  [[nodiscard]] std::uint32_t chunks(RecvHandle receive) const { return bits_set(b_->chunk_bitmap(receive).value()); }

 private:
  static std::unique_ptr<QueuePair> make(const DevicePtr& device, const QueuePairOptions& options) {
    auto made = QueuePair::create(device, options);
    if (!made.ok()) ADD_FAILURE() << made.error().message;
    return std::move(made).value();
  }

  std::shared_ptr<transport::SimulatedNetwork> network_;
  std::unique_ptr<QueuePair> a_;
  std::unique_ptr<QueuePair> b_;
  TimePoint now_{};
};

}  // namespace sdr::testing_support

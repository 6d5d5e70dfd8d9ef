// Two Connections over a simulated link in virtual time, and a loop that drives them.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "sdr/connection.hpp"
#include "transport/simulated.hpp"

namespace sdr::testing {

// SDR_TEST_SEED repeats a failed run; tests put the seed into SCOPED_TRACE.
inline std::uint64_t test_seed(std::uint64_t fallback) {
  const char* text = std::getenv("SDR_TEST_SEED");
  return text == nullptr ? fallback : std::strtoull(text, nullptr, 10);
}

inline std::vector<std::byte> random_bytes(std::size_t size, std::uint64_t seed) {
  std::vector<std::byte> bytes(size);
  std::mt19937_64 random(seed);
  std::size_t i = 0;
  for (; i + 8 <= size; i += 8) {
    const std::uint64_t word = random();
    std::memcpy(bytes.data() + i, &word, 8);
  }
  for (; i < size; ++i) bytes[i] = static_cast<std::byte>(random());
  return bytes;
}

class ConnectionPair {
 public:
  ConnectionPair(transport::SimulatedOptions network, const ConnectionOptions& options) : network_(std::move(network)) {
    for (const transport::Site site : {transport::Site::A, transport::Site::B}) {
      ConnectionOptions own = options;
      own.queue_pair.token = 0x1000 + static_cast<std::uint64_t>(site);
      // The network outlives the connections; the pointer does not own it.
      DevicePtr device(&network_.device(site), [](transport::Device*) {});
      auto made = Connection::create(device, own);
      if (!made) throw std::runtime_error(made.error().message);
      (site == transport::Site::A ? a_ : b_) = std::move(made).value();
    }
    const Result<void> ab = a_->connect(b_->info());
    const Result<void> ba = b_->connect(a_->info());
    if (!ab || !ba) throw std::runtime_error((ab ? ba : ab).error().message);
  }

  // Drives both ends until `done`, or until virtual `limit` has passed. False when it was not done by then.
  bool run_until(const std::function<bool()>& done, Duration limit) {
    const TimePoint end = now_ + limit;
    for (;;) {
      const TimePoint next = std::min(a_alive_ ? a_->progress(now_) : kNever, b_alive_ ? b_->progress(now_) : kNever);
      ++drives_;
      if (done()) return true;
      if (now_ >= end) return false;
      // A machine that wants to be called at once again gets a nanosecond: virtual time always moves.
      now_ = std::min(end, std::max(next, now_ + Duration(1)));
    }
  }

  Connection& a() { return *a_; }
  Connection& b() { return *b_; }
  // Stops driving an end: to its peer it is dead.
  void kill_b() { b_alive_ = false; }
  void revive_b() { b_alive_ = true; }
  transport::SimulatedNetwork& network() { return network_; }
  [[nodiscard]] TimePoint now() const { return now_; }
  [[nodiscard]] std::uint64_t drives() const { return drives_; }

 private:
  transport::SimulatedNetwork network_;
  std::unique_ptr<Connection> a_;
  std::unique_ptr<Connection> b_;
  bool a_alive_ = true;
  bool b_alive_ = true;
  TimePoint now_ = TimePoint(std::chrono::seconds(1));
  std::uint64_t drives_ = 0;
};

}  // namespace sdr::testing

// Two Connections over a simulated link in virtual time, and a loop that drives them.
//
// An end is driven when it asked to be, when something arrives for it, and after a() or b() was called (the test may
// have posted something). With a step, not more often than that: as a driver that takes packets in batches.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "sdr/connection.hpp"
#include "transport/simulated.hpp"

namespace sdr::testing {

using transport::PacketView;
using transport::Site;
using transport::Verdict;

// SDR_TEST_SEED repeats a failed run; tests put the seed into SCOPED_TRACE.
inline std::uint64_t test_seed(std::uint64_t fallback) {
  const char* text = std::getenv("SDR_TEST_SEED");
  return text == nullptr ? fallback : std::strtoull(text, nullptr, 10);
}
inline std::string seed_trace(std::uint64_t seed) {
  return "SDR_TEST_SEED=" + std::to_string(seed);
}

// Sanitizers cost a factor of ten and more: the same tests with fewer rounds.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

inline constexpr std::array<Scheme, 4> kAllSchemes{Scheme::SrRto, Scheme::SrNack, Scheme::EcXor, Scheme::EcRs};

// A scheme's name where only letters, digits and underscores may stand.
inline std::string identifier(Scheme scheme) {
  std::string name(to_string(scheme));
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
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
  ConnectionPair(const transport::SimulatedOptions& network, const ConnectionOptions& options) : network_(network) {
    for (const Site site : {Site::A, Site::B}) {
      ConnectionOptions own = options;
      own.queue_pair.token = token(site);
      // The network outlives the connections; the pointer does not own it.
      DevicePtr device(&network_.device(site), [](transport::Device*) {});
      auto made = Connection::create(device, own);
      if (!made) throw std::runtime_error(made.error().message);
      end(site).connection = std::move(made).value();
    }
    const Result<void> ab = a().connect(b().info());
    const Result<void> ba = b().connect(a().info());
    if (!ab || !ba) throw std::runtime_error((ab ? ba : ab).error().message);
  }

  // Drives both ends until `done`, or until virtual `limit` has passed. False when it was not done by then.
  bool run_until(const std::function<bool()>& done, Duration limit) {
    const TimePoint stop = now_ + limit;
    for (;;) {
      drive(Site::A);
      drive(Site::B);
      if (done()) return true;
      if (now_ >= stop) return false;
      drive_if_poked(Site::A);
      drive_if_poked(Site::B);
      // A machine that wants to be called at once again gets a nanosecond: virtual time always moves.
      now_ = std::min(stop, std::max(std::min(due(Site::A), due(Site::B)), now_ + step_));
    }
  }
  void run_for(Duration time) {
    run_until([] { return false; }, time);
  }
  // Until both ends have measured the path.
  bool get_ready(Duration limit = std::chrono::seconds(30)) {
    const Connection& a = *end(Site::A).connection;
    const Connection& b = *end(Site::B).connection;
    return run_until([&] { return a.ready() && b.ready(); }, limit);
  }

  // What is posted through these is seen at once; to look only, keep the reference.
  Connection& at(Site site) {
    end(site).poked = true;
    return *end(site).connection;
  }
  Connection& a() { return at(Site::A); }
  Connection& b() { return at(Site::B); }

  // Stops driving an end, for ever or until resume(): to its peer it is dead, or stalled.
  void stop(Site site) { end(site).alive = false; }
  void resume(Site site) {
    end(site).alive = true;
    end(site).poked = true;
  }
  void kill_b() { stop(Site::B); }

  void set_step(Duration step) { step_ = std::max(step, Duration(1)); }
  transport::SimulatedNetwork& network() { return network_; }
  [[nodiscard]] TimePoint now() const { return now_; }
  [[nodiscard]] std::uint64_t drives() const { return drives_; }
  static std::uint64_t token(Site site) { return 0x1000 + static_cast<std::uint64_t>(site); }

 private:
  struct End {
    std::unique_ptr<Connection> connection;
    bool alive = true;
    bool poked = true;
    TimePoint next = kNever;
  };
  End& end(Site site) { return ends_[static_cast<std::size_t>(site)]; }

  TimePoint due(Site site) {
    if (!end(site).alive) return kNever;
    if (end(site).connection->failure()) return kNever;
    return std::min(end(site).next, network_.endpoint(site)->next_event());
  }
  void drive_if_poked(Site site) {
    if (end(site).poked) drive(site);
  }
  void drive(Site site) {
    End& own = end(site);
    if (!own.alive || (!own.poked && now_ < due(site))) return;
    own.poked = false;
    own.next = own.connection->progress(now_);
    ++drives_;
  }

  transport::SimulatedNetwork network_;
  std::array<End, 2> ends_;
  TimePoint now_ = TimePoint(std::chrono::seconds(1));
  Duration step_{1};
  std::uint64_t drives_ = 0;
};

}  // namespace sdr::testing

// VirtualPair: two Connections over a simulated link, and the loop that drives them in virtual time.
//
// An end is driven when it asked to be, when something arrives for it, and after a() or b() was called (something may
// have been posted). With a step, not more often than that: as a driver that takes packets in batches. Nothing here
// reads a clock: a run depends on the options and on what is posted when, and on nothing else.
//
// Threads: one drives a pair; any number of pairs beside one another.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <memory>

#include "sdr/connection.hpp"
#include "transport/simulated.hpp"

namespace sdr::experiment {

class VirtualPair {
 public:
  explicit VirtualPair(const transport::SimulatedOptions& network) : network_(network) {}

  // Makes both ends, alike but for their tokens, and connects them. Once; before anything else.
  Result<void> open(const ConnectionOptions& options);

  // Drives both ends until `done`, or until virtual `limit` has passed. False when it was not done by then.
  bool run_until(const std::function<bool()>& done, Duration limit);
  void run_for(Duration time) {
    run_until([] { return false; }, time);
  }
  // Until both ends have measured the path.
  bool get_ready(Duration limit = std::chrono::seconds(30));
  // Until neither end wants anything and nothing is under way: what is posted is known to the peer, what was sent has
  // arrived or is lost.
  bool get_quiet(Duration limit = std::chrono::seconds(30));

  // What is posted through these is seen at once; to look only, keep the reference.
  Connection& at(transport::Site site) {
    end(site).poked = true;
    return *end(site).connection;
  }
  Connection& a() { return at(transport::Site::A); }
  Connection& b() { return at(transport::Site::B); }

  // Stops driving an end, for ever or until resume(): to its peer it is dead, or stalled.
  void stop(transport::Site site) { end(site).alive = false; }
  void resume(transport::Site site) {
    end(site).alive = true;
    end(site).poked = true;
  }

  void set_step(Duration step) { step_ = std::max(step, Duration(1)); }
  transport::SimulatedNetwork& network() { return network_; }
  [[nodiscard]] TimePoint now() const { return now_; }
  [[nodiscard]] std::uint64_t drives() const { return drives_; }
  static std::uint64_t token(transport::Site site) { return 0x1000 + static_cast<std::uint64_t>(site); }

 private:
  struct End {
    std::unique_ptr<Connection> connection;
    bool alive = true;
    bool poked = true;
    TimePoint next = kNever;
  };
  End& end(transport::Site site) { return ends_[static_cast<std::size_t>(site)]; }

  TimePoint due(transport::Site site);
  void drive(transport::Site site);
  void drive_if_poked(transport::Site site) {
    if (end(site).poked) drive(site);
  }

  transport::SimulatedNetwork network_;
  std::array<End, 2> ends_;
  TimePoint now_ = TimePoint(std::chrono::seconds(1));
  Duration step_{1};
  std::uint64_t drives_ = 0;
};

}  // namespace sdr::experiment

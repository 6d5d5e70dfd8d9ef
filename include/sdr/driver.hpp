// Driver: runs a Connection or a QueuePair on the calling thread, in real time.
//
// Polls briefly, then sleeps on the descriptors until the next deadline. The only place between an application and the
// sans-I/O stack that reads a clock. One driver a thread.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "sdr/connection.hpp"
#include "sdr/queue_pair.hpp"
#include "sdr/result.hpp"
#include "sdr/units.hpp"

namespace sdr {

class Driver {
 public:
  Driver();
  ~Driver();
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

  // What to drive; must outlive the driver or be removed.
  void add(Connection& connection);
  void add(QueuePair& queue_pair);
  void remove(const Connection& connection);
  void remove(const QueuePair& queue_pair);
  // Another descriptor (a TCP socket, say) whose readability ends a sleep.
  void watch(int fd);
  void unwatch(int fd);

  // Drives until `done()` is true or `limit` has passed; whether it was done. `done` is asked after each round, and
  // may take completions and post.
  bool run_until(const std::function<bool()>& done, Duration limit);
  // One round: progress, then sleep until something is due or `limit` has passed.
  void run_once(Duration limit);
  // The clock it drives by.
  static TimePoint now();
  // Entropy for QueuePairOptions::token.
  static std::uint64_t random_token();
  // A pool of `threads` encoding threads (0: as many as there are cores, less one, at least one).
  static std::shared_ptr<Executor> make_executor(unsigned threads = 0);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace sdr

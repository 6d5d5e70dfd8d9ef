// TurnaroundSpeed: what posting a receive and completing it costs in the SDK, by the size of the message.
//
// Model: a QueuePair over a transport that does nothing. 16 receives are posted, filled or not, and completed; the
// posting and the completing are in the figure, per message, the filling is not. Filled: every packet of 4 KiB has set
// its bit (chunks of 64 KiB), so that completing has all of the bitmap to clean. There is no memory behind the
// messages.
//
// Threads: one, the caller's; it should have its core to itself.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "sdr/result.hpp"
#include "sdr/units.hpp"

namespace sdr::experiment {

class TurnaroundLoad {
 public:
  static constexpr Bytes kLargest{1ULL << 30};
  static constexpr std::uint64_t kMessages = 16;

  // InvalidArgument for messages larger than kLargest.
  static Result<std::unique_ptr<TurnaroundLoad>> make(Bytes message);
  ~TurnaroundLoad();
  TurnaroundLoad(const TurnaroundLoad&) = delete;
  TurnaroundLoad& operator=(const TurnaroundLoad&) = delete;

  // Posts and completes kMessages messages; the time that took by itself.
  Duration run_once(bool filled);

 private:
  class Impl;
  explicit TurnaroundLoad(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

struct TurnaroundPoint {
  std::uint64_t message_bytes = 0;
  double post_complete_ns = 0;            // of a message of which every packet has arrived
  double untouched_post_complete_ns = 0;  // of one of which none has
};

struct TurnaroundSpeed {
  std::vector<TurnaroundPoint> points;  // 64 B to 1 GiB
};

// Medians of `rounds` measurements of at least `messages` messages each.
Result<TurnaroundSpeed> measure_turnaround_speed(unsigned rounds = 5, std::uint64_t messages = 160);

}  // namespace sdr::experiment

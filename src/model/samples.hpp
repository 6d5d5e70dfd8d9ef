// Samples: a Monte Carlo run, on as many threads as are given, with the same result whatever their number.
//
// Sample n depends on (seed, n) alone; it is written to its own place, and sums are formed in order afterwards.
//
// Source: paper section 5.2 (1000 samples of the stochastic model).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "model/completion_time.hpp"
#include "model/sampler.hpp"

namespace sdr::model {

struct SampleOptions {
  std::size_t count = 1000;
  std::uint64_t seed = 1;
  unsigned threads = 1;
  Sender sender = Sender::Paper;
  // Set by another thread: nothing more is drawn, and what was is of no use. For a caller that is interrupted.
  const std::atomic<bool>* stop = nullptr;
};

// InvalidArgument names the field, the value and the range.
Result<void> check(const SampleOptions& options);

struct Samples {
  std::vector<Duration> times;  // in the order of their numbers; at least one

  // Percentiles are samples: the smallest that the given share of them does not exceed.
  [[nodiscard]] Summary summary() const;
  // Refused unless 0 < share < 1.
  [[nodiscard]] Result<Duration> percentile(double share) const;
};

// Completion times of one transfer.
Result<Samples> samples(const Transfer& transfer, const SchemeSpec& scheme, const SampleOptions& options);

// The engine: `draw_one` gives seconds, is called from all threads, and must use nothing but its Draws.
Samples draw_samples(const SampleOptions& options, const std::function<double(Draws&)>& draw_one);

}  // namespace sdr::model

// Many runs of one WriteTrial, spread over threads: run n has the same result whoever does it, so the results are the
// same for any number of threads.
//
// Threads: called from one; uses as many as it is told, the calling one among them.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "experiment/write_trial.hpp"
#include "sdr/result.hpp"

namespace sdr::experiment {

struct TrialPlan {
  static constexpr std::uint64_t kMostRuns = 100'000'000;
  static constexpr unsigned kMostThreads = 1024;

  std::uint64_t runs = 1;
  unsigned threads = 1;
  // Set by another thread: no further run is begun, and the result is the error Closed.
  const std::atomic<bool>* stop = nullptr;
};

// For a program that is there for many runs: memory that one run gives back serves the next. Otherwise the page faults
// of a few megabytes cost more than the protocol of a short run. For the whole process; a hint where it is not glibc's.
void keep_memory_for_runs();

// The results of runs 0, 1, ... in that order. A Write that failed is a result; what is an error here is a trial that
// cannot be run.
Result<std::vector<TrialResult>> run_all(const WriteTrial& trial, const TrialPlan& plan);

}  // namespace sdr::experiment

#include "experiment/trials.hpp"

#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>
#include <thread>

namespace sdr::experiment {
namespace {

constexpr int kKeptBlock = 32 << 20;  // the most that glibc takes
constexpr int kKeptInAll = 512 << 20;

Error out_of_range(const char* what, std::uint64_t value, std::uint64_t most) {
  return {ErrorCode::InvalidArgument, fmt::format("{} {} is not from 1 to {}", what, value, most)};
}

}  // namespace

void keep_memory_for_runs() {
#if defined(__GLIBC__)
  ::mallopt(M_MMAP_THRESHOLD, kKeptBlock);
  ::mallopt(M_TRIM_THRESHOLD, kKeptInAll);
#endif
}

Result<std::vector<TrialResult>> run_all(const WriteTrial& trial, const TrialPlan& plan) {
  if (plan.runs < 1 || plan.runs > TrialPlan::kMostRuns) return out_of_range("runs", plan.runs, TrialPlan::kMostRuns);
  if (plan.threads < 1 || plan.threads > TrialPlan::kMostThreads)
    return out_of_range("threads", plan.threads, TrialPlan::kMostThreads);
  std::vector<TrialResult> results(plan.runs);
  std::atomic<std::uint64_t> next{0};
  std::mutex mutex;
  std::optional<Error> error;
  const auto stopped = [&] { return plan.stop != nullptr && *plan.stop; };
  const auto work = [&] {
    while (!stopped()) {
      const std::uint64_t n = next.fetch_add(1, std::memory_order_relaxed);
      if (n >= plan.runs) return;
      Result<TrialResult> result = run(trial, n);
      if (result) {
        results[n] = std::move(result).value();
        continue;
      }
      const std::lock_guard lock(mutex);
      if (!error) error = result.error();
      next = plan.runs;
    }
  };
  std::vector<std::thread> others;
  for (std::uint64_t t = 1; t < std::min<std::uint64_t>(plan.threads, plan.runs); ++t) others.emplace_back(work);
  work();
  for (std::thread& thread : others) thread.join();
  if (error) return *error;
  if (stopped()) return Error{ErrorCode::Closed, fmt::format("stopped before all of {} runs were done", plan.runs)};
  return results;
}

}  // namespace sdr::experiment

// CellWorker: a thread that computes cells of a sweep, one at a time, so that the thread that talks to the other ranks
// goes on talking. And serve(): all that a rank other than 0 does.
//
// Threads: one owner; `compute` is called in the worker's thread. The destructor waits for the cell that is under way:
// who does not want to wait ends the process (SweepRanks::leave).
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "sdr/report.hpp"
#include "sdr/result.hpp"
#include "sdr/sweep_journal.hpp"
#include "sdr/sweep_ranks.hpp"
#include "sdr/units.hpp"

namespace sdr::cli {

class CellWorker {
 public:
  // The entry of a cell, whether it could be computed or not.
  using Compute = std::function<Json(std::uint64_t cell)>;

  explicit CellWorker(Compute compute);
  ~CellWorker();
  CellWorker(const CellWorker&) = delete;
  CellWorker& operator=(const CellWorker&) = delete;

  void start(std::uint64_t cell);
  // The next entry that is ready, waiting for one no longer than `patience`.
  std::optional<Json> take(Duration patience);

 private:
  void work();

  Compute compute_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::uint64_t> wanted_;  // guarded by mutex_
  std::deque<Json> ready_;            // guarded by mutex_
  bool stopping_ = false;             // guarded by mutex_
  std::thread thread_;
};

// How often ranks say that they are there.
[[nodiscard]] Duration beat_of(Duration patience);

// Computes what rank 0 says until it says that all is done; returns whether every rank was there in the end. An error
// when it refuses this rank, or is silent for longer than `patience`. `now` reads the clock.
Result<bool> serve(SweepRanks& ranks, const SweepIdentity& identity, CellWorker& worker, Duration patience,
                   const std::function<TimePoint()>& now);

}  // namespace sdr::cli

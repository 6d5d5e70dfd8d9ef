// TaskPool: a few threads that run tasks, first come first served. The Executor that libsdr brings along.
//
// Threads: run() from any thread, tasks included. The destructor, called from a thread that is not one of the pool's,
// waits until everything queued has run, tasks queued by tasks included. Idle threads sleep on a condition variable.
// Invariant: every task that was given to run() runs exactly once.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "sdr/executor.hpp"

namespace sdr::runtime {

class TaskPool final : public Executor {
 public:
  // 0: one thread a usable core, which is also the most there will be. Throws std::system_error without threads.
  explicit TaskPool(unsigned threads);
  ~TaskPool() override;
  TaskPool(const TaskPool&) = delete;
  TaskPool& operator=(const TaskPool&) = delete;

  void run(std::function<void()> task) override;
  [[nodiscard]] unsigned threads() const { return static_cast<unsigned>(threads_.size()); }

 private:
  void work();
  void finish();

  std::mutex mutex_;
  std::condition_variable something_to_do_;
  std::deque<std::function<void()>> queue_;  // guarded by mutex_
  bool stopping_ = false;                    // guarded by mutex_
  std::vector<std::thread> threads_;
};

}  // namespace sdr::runtime

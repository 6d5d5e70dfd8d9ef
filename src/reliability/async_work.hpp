// AsyncWork: tasks on an Executor that use memory of ours or of the user, and must not outlive it.
//
// run() hands a task to the executor; idle() says whether all have ended. A cancelled task that has not begun does
// nothing. The destructor cancels and waits: tasks are short (about a megabyte of coding each).
// Threads: one owner; tasks run anywhere. Results are visible to the owner once idle() is true.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <thread>
#include <utility>

#include "sdr/executor.hpp"

namespace sdr::reliability {

class AsyncWork {
 public:
  AsyncWork() : state_(std::make_shared<State>()) {}
  ~AsyncWork() {
    if (state_ == nullptr) return;
    cancel();
    while (!idle()) std::this_thread::yield();
  }
  AsyncWork(const AsyncWork&) = delete;
  AsyncWork& operator=(const AsyncWork&) = delete;

  void run(Executor& executor, std::function<void()> task) {
    state_->pending.fetch_add(1, std::memory_order_relaxed);
    executor.run([state = state_, task = std::move(task)] {
      if (!state->cancelled.load(std::memory_order_relaxed)) task();
      state->pending.fetch_sub(1, std::memory_order_release);
    });
  }
  void cancel() { state_->cancelled.store(true, std::memory_order_relaxed); }
  [[nodiscard]] bool idle() const { return state_->pending.load(std::memory_order_acquire) == 0; }

 private:
  struct State {
    std::atomic<int> pending{0};
    std::atomic<bool> cancelled{false};
  };
  std::shared_ptr<State> state_;
};

}  // namespace sdr::reliability

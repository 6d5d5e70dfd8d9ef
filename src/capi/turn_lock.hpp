// TurnLock: a mutex that serves in order of asking.
//
// A program that polls sdr_send_poll() in a tight loop would, with an unfair mutex, take it again before the thread
// that drives the QP has woken up, and so wait for ever for what it keeps from happening. Here whoever asks next is
// served next. Waiters sleep (futex); an uncontended lock costs two atomic operations.
//
// Threads: any. Not recursive. Source: the ticket lock of Reed and Kanodia (1979).
#pragma once

#include <atomic>

namespace sdr::capi {

class TurnLock {
 public:
  void lock() {
    const int turn = next_.fetch_add(1, std::memory_order_relaxed);
    for (int serving = serving_.load(std::memory_order_acquire); serving != turn;
         serving = serving_.load(std::memory_order_acquire)) {
      serving_.wait(serving, std::memory_order_acquire);
    }
  }
  void unlock() {
    serving_.fetch_add(1, std::memory_order_release);
    serving_.notify_all();
  }

 private:
  // int, which std::atomic hands to the futex as it is; it may wrap around.
  std::atomic<int> next_{0};
  std::atomic<int> serving_{0};
};

}  // namespace sdr::capi

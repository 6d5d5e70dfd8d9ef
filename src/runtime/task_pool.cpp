#include "runtime/task_pool.hpp"

#include <string>
#include <utility>

#include "runtime/thread.hpp"

namespace sdr::runtime {

TaskPool::TaskPool(unsigned threads) {
  const unsigned count = bounded_threads(threads);
  threads_.reserve(count);
  try {
    for (unsigned i = 0; i < count; ++i) {
      threads_.push_back(start_thread("sdr-task-" + std::to_string(i), [this] { work(); }));
    }
  } catch (...) {
    finish();  // the threads that did start refer to this object
    throw;
  }
}

TaskPool::~TaskPool() {
  finish();
}

void TaskPool::finish() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  something_to_do_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void TaskPool::run(std::function<void()> task) {
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back(std::move(task));
  }
  something_to_do_.notify_one();
}

void TaskPool::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    something_to_do_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
    // A task may queue another while the pool stops; it does so on a thread that then comes by here again.
    if (queue_.empty()) return;
    std::function<void()> task = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    task();
    task = nullptr;  // what it captured goes away outside the lock
    lock.lock();
  }
}

}  // namespace sdr::runtime

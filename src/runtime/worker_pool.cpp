#include "runtime/worker_pool.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "runtime/clock.hpp"
#include "runtime/thread.hpp"

namespace sdr::runtime {
namespace {

// How long a worker that has just had work looks for more before it sleeps. About what a sleep and a wake-up cost;
// more would take the core from the thread whose packets are awaited.
constexpr Duration kPollTime = std::chrono::microseconds(20);
// A deadline this near is waited for awake: the kernel would not be back in time.
constexpr Duration kTooShortToSleep = std::chrono::microseconds(3);
constexpr Duration kPollUnwatched = std::chrono::milliseconds(1);

bool contains(const std::vector<std::shared_ptr<Agent>>& agents, const Agent* agent) {
  return std::any_of(agents.begin(), agents.end(), [&](const auto& a) { return a.get() == agent; });
}

}  // namespace

// One thread and its agents. Others say which agents there should be (wanted_, with a version); the thread adopts that
// between two rounds and says which version it runs. remove() waits for the version without the agent.
class WorkerPool::Worker {
 public:
  explicit Worker(unsigned number) : thread_(start_thread("sdr-worker-" + std::to_string(number), [this] { run(); })) {}

  ~Worker() {
    stopping_.store(true, std::memory_order_release);
    sleeper_.wake();
    thread_.join();
  }

  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  std::size_t load() {
    const std::lock_guard lock(mutex_);
    return wanted_.size();
  }

  void add(std::shared_ptr<Agent> agent) {
    {
      const std::lock_guard lock(mutex_);
      wanted_.push_back(std::move(agent));
      version_.fetch_add(1, std::memory_order_release);
    }
    sleeper_.wake();
  }

  // Takes the agent off the list and returns it, so that it is not destroyed under a lock. The thread may still be
  // inside it: wait_until_adopted().
  std::shared_ptr<Agent> take_out(const Agent& agent) {
    std::shared_ptr<Agent> taken;
    {
      const std::lock_guard lock(mutex_);
      const auto at = std::find_if(wanted_.begin(), wanted_.end(), [&](const auto& a) { return a.get() == &agent; });
      if (at == wanted_.end()) return nullptr;
      taken = std::move(*at);
      wanted_.erase(at);
      version_.fetch_add(1, std::memory_order_release);
    }
    sleeper_.wake();
    return taken;
  }

  // Returns when the thread runs what is wanted now. An agent on the thread itself cannot wait for that.
  void wait_until_adopted() {
    if (std::this_thread::get_id() == thread_.get_id()) return;
    std::unique_lock lock(mutex_);
    const std::uint64_t target = version_.load(std::memory_order_relaxed);
    adopted_.wait(lock, [&] { return running_version_ >= target; });
  }

  void wake() { sleeper_.wake(); }

 private:
  void run() {
    TimePoint poll_until = TimePoint::min();
    while (!stopping_.load(std::memory_order_acquire)) {
      adopt_changes();
      const TimePoint start = now();
      TimePoint next = round(start);
      if (unwatched_) next = std::min(next, start + kPollUnwatched);
      if (next <= start) {
        poll_until = start + kPollTime;
        continue;
      }
      if (start < poll_until || next - start < kTooShortToSleep) continue;
      const WakeReason reason = sleeper_.sleep_until(next);
      // Where a packet or a message came from, there are often more. A timer says nothing of the kind.
      if (reason != WakeReason::Deadline) poll_until = now() + kPollTime;
    }
    for (const auto& agent : running_) agent->unwatch(sleeper_);
    running_.clear();
  }

  // Calls every agent once; the earliest time that one of them asked for.
  TimePoint round(TimePoint start) {
    TimePoint next = kNever;
    for (const auto& agent : running_) {
      next = std::min(next, agent->do_work(start));
      // The list may have lost an agent further on: adopt that before calling it.
      if (version_.load(std::memory_order_acquire) != seen_version_) return start;
    }
    return next;
  }

  // Where the kernel has no room for another descriptor (memory, max_user_watches), the agent is polled instead.
  void watch(Agent& agent) {
    try {
      agent.watch(sleeper_);
    } catch (const std::system_error&) {
      unwatched_ = true;
    }
  }

  void adopt_changes() {
    if (version_.load(std::memory_order_acquire) == seen_version_) return;
    std::vector<std::shared_ptr<Agent>> wanted;
    {
      const std::lock_guard lock(mutex_);
      wanted = wanted_;
      seen_version_ = version_.load(std::memory_order_relaxed);
    }
    for (const auto& agent : running_) {
      if (!contains(wanted, agent.get())) agent->unwatch(sleeper_);
    }
    for (const auto& agent : wanted) {
      if (!contains(running_, agent.get())) watch(*agent);
    }
    running_.swap(wanted);
    wanted.clear();  // lets go of the removed ones before remove() returns
    {
      const std::lock_guard lock(mutex_);
      running_version_ = seen_version_;
    }
    adopted_.notify_all();
  }

  Sleeper sleeper_;
  std::atomic<bool> stopping_{false};
  std::mutex mutex_;
  std::condition_variable adopted_;
  std::vector<std::shared_ptr<Agent>> wanted_;   // guarded by mutex_
  std::uint64_t running_version_ = 0;            // guarded by mutex_: the version that the thread has adopted
  std::atomic<std::uint64_t> version_{0};        // written under mutex_, read by the thread without
  std::uint64_t seen_version_ = 0;               // the thread's own
  std::vector<std::shared_ptr<Agent>> running_;  // the thread's own
  bool unwatched_ = false;                       // the thread's own: an agent's descriptors do not wake it
  std::thread thread_;                           // last: it starts when all of the above is there
};

WorkerPool::WorkerPool(unsigned threads) {
  const unsigned count = bounded_threads(threads);
  workers_.reserve(count);
  for (unsigned i = 0; i < count; ++i) workers_.push_back(std::make_unique<Worker>(i));
}

WorkerPool::~WorkerPool() = default;

void WorkerPool::add(std::shared_ptr<Agent> agent) {
  const std::lock_guard lock(mutex_);
  if (home_.contains(agent.get())) return;
  Worker* least = workers_.front().get();
  for (const auto& worker : workers_) {
    if (worker->load() < least->load()) least = worker.get();
  }
  home_.emplace(agent.get(), least);
  least->add(std::move(agent));
}

void WorkerPool::remove(const Agent& agent) {
  std::shared_ptr<Agent> taken;  // should it be the last, the agent dies at the end of this function
  Worker* worker = nullptr;
  {
    const std::lock_guard lock(mutex_);
    const auto at = home_.find(&agent);
    if (at != home_.end()) {
      worker = at->second;
      taken = worker->take_out(agent);
      home_.erase(at);
    }
  }
  if (worker != nullptr) {
    worker->wait_until_adopted();
    return;
  }
  // Unknown, or another thread is removing it this moment: what holds for that one must hold for this one.
  for (const auto& each : workers_) each->wait_until_adopted();
}

void WorkerPool::wake(const Agent& agent) {
  const std::lock_guard lock(mutex_);
  const auto at = home_.find(&agent);
  if (at != home_.end()) at->second->wake();
}

}  // namespace sdr::runtime

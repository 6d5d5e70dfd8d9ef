// WorkerPool: the threads that drive connections, each of which is an Agent.
//
// Model: a worker calls do_work on each of its agents in turn. While an agent has work the worker comes straight back;
// after that it polls for a short, bounded time, because the next packet is often microseconds away, and then sleeps
// until the earliest time an agent asked for, a watched descriptor, or a wake(). An idle worker uses no CPU. Any
// wake-up calls every agent of that worker: do_work with nothing to do must be cheap.
//
// Threads: add, remove and wake from any thread. An agent stays with one worker, and everything the pool calls on it
// (do_work, watch, unwatch) happens on that worker's thread: an agent needs no lock against the pool.
//
// Invariant: when remove() has returned, no worker is inside the agent, none will enter it again, and its descriptors
// are unwatched: it may be destroyed and they may be closed. The one exception is an agent that removes itself from
// inside do_work: it is left alone as soon as that call has returned and unwatch has been called. An agent must not
// remove another one from inside do_work: two that did so crosswise would wait for each other. A removed agent may be
// added again when remove() has returned, but not by the do_work in which it removed itself.
#pragma once

#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "runtime/sleeper.hpp"
#include "sdr/units.hpp"

namespace sdr::runtime {

class Agent {
 public:
  virtual ~Agent() = default;

  // Does what there is to do now, in bounded time. Returns when it next has something to do by itself (kNever: only
  // when woken); a time that is not after `now` means "call again at once". Must not throw and must not block.
  virtual TimePoint do_work(TimePoint now) = 0;
  // Tells the sleeper which descriptors are its own, and takes them back: the same ones, once each. watch() may throw
  // the sleeper's std::system_error: the worker then calls its agents every millisecond.
  virtual void watch(Sleeper& sleeper) = 0;
  virtual void unwatch(Sleeper& sleeper) = 0;
};

class WorkerPool {
 public:
  // 0: one worker a usable core, which is also the most there will be. Throws std::system_error without threads or
  // descriptors.
  explicit WorkerPool(unsigned threads);
  // Not from an agent. Agents that are still here are unwatched and released.
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  // To the worker with the fewest agents. An agent that is here already stays where it is.
  void add(std::shared_ptr<Agent> agent);
  void remove(const Agent& agent);
  // do_work will be called after this, with everything the caller wrote before it visible. Unknown agents are ignored,
  // so that a wake-up may race with remove().
  void wake(const Agent& agent);

  [[nodiscard]] unsigned threads() const { return static_cast<unsigned>(workers_.size()); }

 private:
  class Worker;

  std::mutex mutex_;
  std::unordered_map<const Agent*, Worker*> home_;  // guarded by mutex_
  std::vector<std::unique_ptr<Worker>> workers_;    // fixed after construction
};

}  // namespace sdr::runtime

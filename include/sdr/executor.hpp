// Executor: where libsdr's heavier computations (erasure coding) run.
//
// Whoever builds a connection hands one in: an application with its own thread pool wraps that, everyone else takes
// the library's (runtime/task_pool.hpp), and the simulator takes InlineExecutor, under which a run is repeatable.
// run() may be called from any thread and must not wait for the task (InlineExecutor, which is the task's thread,
// excepted). Tasks must not throw. An executor outlives every task that it was given.
#pragma once

#include <functional>

namespace sdr {

class Executor {
 public:
  virtual ~Executor() = default;

  virtual void run(std::function<void()> task) = 0;
};

// Runs every task at once, on the thread that asks.
class InlineExecutor final : public Executor {
 public:
  void run(std::function<void()> task) override { task(); }
};

}  // namespace sdr

// WorkerPool: agents are driven when they should be, left alone when they were removed, and cost nothing when idle.
#include "runtime/worker_pool.hpp"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "runtime/clock.hpp"
#include "runtime/thread.hpp"

namespace sdr::runtime {
namespace {

using std::chrono::milliseconds;

// Does what the test says, and notices when it is entered by two threads or after it should have been left alone.
class TestAgent : public Agent {
 public:
  explicit TestAgent(std::function<TimePoint(TestAgent&, TimePoint)> work = {}) : work_(std::move(work)) {}
  ~TestAgent() override {
    EXPECT_FALSE(inside.load());
    alive = false;
  }

  TimePoint do_work(TimePoint time) override {
    EXPECT_TRUE(alive);
    EXPECT_FALSE(forbidden.load());
    EXPECT_FALSE(inside.exchange(true));
    thread = ::pthread_self();
    const TimePoint next = work_ ? work_(*this, time) : kNever;
    inside = false;
    ++calls;
    calls.notify_all();
    return next;
  }
  void watch(Sleeper& sleeper) override {
    sleeper.watch(fd);
    ++watches;
  }
  void unwatch(Sleeper& sleeper) override {
    sleeper.unwatch(fd);
    ++unwatches;
    unwatches.notify_all();
  }

  void wait_for_calls(std::uint64_t at_least) {
    for (std::uint64_t seen = calls; seen < at_least; seen = calls) calls.wait(seen);
  }

  int fd = -1;
  bool alive = true;
  pthread_t thread{};
  std::atomic<bool> forbidden{false};
  std::atomic<bool> inside{false};
  std::atomic<std::uint64_t> calls{0};
  std::atomic<int> watches{0};
  std::atomic<int> unwatches{0};

 private:
  std::function<TimePoint(TestAgent&, TimePoint)> work_;
};

Duration cpu_time(pthread_t thread) {
  clockid_t clock{};
  EXPECT_EQ(::pthread_getcpuclockid(thread, &clock), 0);
  timespec time{};
  EXPECT_EQ(::clock_gettime(clock, &time), 0);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

TEST(WorkerPool, Threads_AreNeverMoreThanTheUsableCores) {
  EXPECT_EQ(WorkerPool(0).threads(), usable_cores());
  EXPECT_EQ(WorkerPool(1).threads(), 1U);
  EXPECT_EQ(WorkerPool(100'000).threads(), usable_cores());
}

TEST(WorkerPool, AddedAgent_IsWatchedAndCalled) {
  WorkerPool pool(1);
  const auto agent = std::make_shared<TestAgent>();
  pool.add(agent);
  agent->wait_for_calls(1);
  EXPECT_EQ(agent->watches, 1);
  pool.remove(*agent);
  EXPECT_EQ(agent->unwatches, 1);
}

TEST(WorkerPool, AgentAddedTwice_IsCalledByOneWorker) {
  WorkerPool pool(2);
  const auto agent = std::make_shared<TestAgent>();
  pool.add(agent);
  pool.add(agent);
  agent->wait_for_calls(1);
  pool.remove(*agent);
  EXPECT_EQ(agent->watches, 1);
  EXPECT_EQ(agent->unwatches, 1);
}

TEST(WorkerPool, AgentThatWantsToBeCalledAtOnce_Is) {
  WorkerPool pool(1);
  const auto agent =
      std::make_shared<TestAgent>([](TestAgent& self, TimePoint time) { return self.calls < 10'000 ? time : kNever; });
  pool.add(agent);
  agent->wait_for_calls(10'000);
  pool.remove(*agent);
}

TEST(WorkerPool, AgentWithATimer_IsCalledAtItsTime) {
  WorkerPool pool(1);
  std::atomic<int> fired{0};
  TimePoint due = now() + milliseconds(1);
  const auto agent = std::make_shared<TestAgent>([&](TestAgent&, TimePoint time) {
    if (time >= due) {
      ++fired;
      fired.notify_all();
      due = time + milliseconds(1);
    }
    return due;
  });
  pool.add(agent);
  for (int seen = fired; seen < 5; seen = fired) fired.wait(seen);
  pool.remove(*agent);
}

TEST(WorkerPool, Wake_CallsAnAgentThatSleepsForEver) {
  WorkerPool pool(1);
  const auto agent = std::make_shared<TestAgent>();
  pool.add(agent);
  agent->wait_for_calls(1);
  for (int i = 0; i < 1000; ++i) {
    const std::uint64_t before = agent->calls;
    pool.wake(*agent);
    agent->wait_for_calls(before + 1);
  }
  pool.remove(*agent);
  pool.wake(*agent);  // no longer known: nothing happens
}

TEST(WorkerPool, ReadableDescriptor_CallsTheAgent) {
  WorkerPool pool(1);
  const int event = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  std::atomic<int> got{0};
  const auto agent = std::make_shared<TestAgent>([&](TestAgent&, TimePoint) {
    std::uint64_t count = 0;
    if (::read(event, &count, sizeof count) == static_cast<ssize_t>(sizeof count)) {
      ++got;
      got.notify_all();
    }
    return kNever;
  });
  agent->fd = event;
  pool.add(agent);
  for (int i = 0; i < 100; ++i) {
    const std::uint64_t one = 1;
    ASSERT_EQ(::write(event, &one, sizeof one), static_cast<ssize_t>(sizeof one));
    for (int seen = got; seen <= i; seen = got) got.wait(seen);
  }
  pool.remove(*agent);
  ::close(event);
}

TEST(WorkerPool, ADescriptorThatCannotBeWatched_IsLookedAtAllTheSame) {
  WorkerPool pool(1);
  const auto agent = std::make_shared<TestAgent>();
  agent->fd = 1 << 20;  // nobody's
  pool.add(agent);
  agent->wait_for_calls(5);
  EXPECT_EQ(agent->watches, 0);
  pool.remove(*agent);
}

TEST(WorkerPool, Agents_AreSpreadOverTheWorkers) {
  WorkerPool pool(0);
  std::vector<std::shared_ptr<TestAgent>> agents;
  for (unsigned i = 0; i < 3 * pool.threads(); ++i) agents.push_back(std::make_shared<TestAgent>());
  for (const auto& agent : agents) pool.add(agent);
  for (const auto& agent : agents) agent->wait_for_calls(1);
  for (const auto& agent : agents) pool.remove(*agent);
  std::multiset<pthread_t> threads;
  for (const auto& agent : agents) threads.insert(agent->thread);
  for (const auto& agent : agents) EXPECT_EQ(threads.count(agent->thread), 3U);
}

TEST(WorkerPool, IdleWorkers_UseNoProcessorTime) {
  WorkerPool pool(1);
  const auto agent = std::make_shared<TestAgent>();
  pool.add(agent);
  agent->wait_for_calls(1);  // or the wake might count as one with that of add()
  pool.wake(*agent);
  agent->wait_for_calls(2);
  std::this_thread::sleep_for(milliseconds(5));  // past the bounded polling
  const std::uint64_t calls = agent->calls;
  const Duration before = cpu_time(agent->thread);
  std::this_thread::sleep_for(milliseconds(200));
  // A polling worker would have used nearly all of the 200 ms, or its share of a busy machine.
  EXPECT_LT(cpu_time(agent->thread) - before, milliseconds(10));
  EXPECT_EQ(agent->calls, calls);
  pool.remove(*agent);
}

TEST(WorkerPool, Remove_WaitsForTheWorkerToLeave) {
  WorkerPool pool(1);
  for (int i = 0; i < 600; ++i) {
    auto agent = std::make_shared<TestAgent>([](TestAgent&, TimePoint time) { return time; });
    pool.add(agent);
    if (i % 2 == 0) agent->wait_for_calls(3);
    pool.remove(*agent);
    agent->forbidden = true;
    EXPECT_FALSE(agent->inside);
    EXPECT_EQ(agent->watches, agent->unwatches);
    EXPECT_EQ(agent.use_count(), 1);
  }
}

TEST(WorkerPool, AgentRemovedByTwoThreads_IsLeftWhenEitherReturns) {
  WorkerPool pool(2);
  for (int i = 0; i < 200; ++i) {
    const auto agent = std::make_shared<TestAgent>([](TestAgent&, TimePoint time) { return time; });
    pool.add(agent);
    const auto remove = [&] {
      pool.remove(*agent);
      agent->forbidden = true;
    };
    std::thread other(remove);
    remove();
    other.join();
  }
}

TEST(WorkerPool, AgentThatRemovesItself_IsNotCalledAgain) {
  WorkerPool pool(1);
  auto agent = std::make_shared<TestAgent>([&](TestAgent& self, TimePoint time) {
    if (self.calls == 2) {
      pool.remove(self);
      self.forbidden = true;
    }
    return time;
  });
  pool.add(agent);
  for (int seen = agent->unwatches; seen < 1; seen = agent->unwatches) agent->unwatches.wait(seen);
  EXPECT_EQ(agent->calls, 3U);
}

TEST(WorkerPool, UnknownAgent_CanBeRemovedAndWoken) {
  WorkerPool pool(2);
  TestAgent stranger;
  pool.remove(stranger);
  pool.wake(stranger);
  EXPECT_EQ(stranger.calls, 0U);
}

TEST(WorkerPool, AgentsStillThereAtTheEnd_AreUnwatchedAndReleased) {
  std::vector<std::shared_ptr<TestAgent>> agents;
  {
    WorkerPool pool(2);
    for (int i = 0; i < 5; ++i) {
      agents.push_back(std::make_shared<TestAgent>([](TestAgent&, TimePoint time) { return time; }));
      pool.add(agents.back());
    }
    agents.front()->wait_for_calls(1);
  }
  for (const auto& agent : agents) {
    agent->forbidden = true;
    EXPECT_EQ(agent->watches, agent->unwatches);
    EXPECT_EQ(agent.use_count(), 1);
  }
}

// Everything at once, for the thread sanitizer: agents come and go on three threads while others wake them.
TEST(WorkerPool, AgentsThatComeAndGoWhileOthersWakeThem_AreNeverTouchedAfterwards) {
  WorkerPool pool(2);
  const auto steady = std::make_shared<TestAgent>();
  pool.add(steady);
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 300; ++i) {
        auto agent = std::make_shared<TestAgent>(
            [](TestAgent& self, TimePoint time) { return self.calls % 4 == 3 ? kNever : time; });
        pool.add(agent);
        pool.wake(*agent);
        pool.wake(*steady);
        agent->wait_for_calls(1);
        pool.remove(*agent);
        agent->forbidden = true;
        pool.wake(*agent);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  pool.remove(*steady);
}

}  // namespace
}  // namespace sdr::runtime

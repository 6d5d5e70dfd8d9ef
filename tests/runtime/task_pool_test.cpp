// TaskPool and InlineExecutor: every task runs once, the destructor leaves none behind.
#include "runtime/task_pool.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "runtime/thread.hpp"

namespace sdr::runtime {
namespace {

TEST(InlineExecutor, Task_HasRunWhenRunReturns) {
  InlineExecutor executor;
  std::thread::id where;
  executor.run([&] { where = std::this_thread::get_id(); });
  EXPECT_EQ(where, std::this_thread::get_id());
}

TEST(TaskPool, Threads_AreNeverMoreThanTheUsableCores) {
  EXPECT_EQ(TaskPool(0).threads(), usable_cores());
  EXPECT_EQ(TaskPool(1).threads(), 1U);
  EXPECT_EQ(TaskPool(100'000).threads(), usable_cores());
}

TEST(TaskPool, QueuedTasks_AllRunBeforeTheDestructorReturns) {
  std::atomic<int> ran{0};
  {
    TaskPool pool(2);
    for (int i = 0; i < 5000; ++i) pool.run([&] { ++ran; });
  }
  EXPECT_EQ(ran, 5000);
}

TEST(TaskPool, TasksFromSeveralThreads_EachRunOnce) {
  std::vector<std::atomic<int>> ran(4000);
  {
    TaskPool pool(2);
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        for (std::size_t i = 0; i < 1000; ++i) pool.run([&ran, t, i] { ++ran[t * 1000 + i]; });
      });
    }
    for (auto& thread : threads) thread.join();
  }
  for (const auto& count : ran) EXPECT_EQ(count, 1);
}

TEST(TaskPool, TasksQueuedByTasks_RunEvenWhileThePoolStops) {
  std::atomic<int> ran{0};
  std::function<void(int)> descend;
  {
    TaskPool pool(2);
    descend = [&](int depth) {
      ++ran;
      if (depth > 0) pool.run([&descend, depth] { descend(depth - 1); });
    };
    for (int i = 0; i < 10; ++i) pool.run([&descend] { descend(100); });
  }
  EXPECT_EQ(ran, 10 * 101);
}

TEST(TaskPool, WhatATaskCaptured_IsGoneSoonAfterItRan) {
  const auto resource = std::make_shared<int>(1);
  {
    TaskPool pool(1);
    pool.run([resource] {});
  }
  EXPECT_EQ(resource.use_count(), 1);
}

TEST(TaskPool, EmptyPool_StopsAtOnce) {
  for (int i = 0; i < 100; ++i) TaskPool pool(2);
}

}  // namespace
}  // namespace sdr::runtime

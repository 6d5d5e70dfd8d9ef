// Sleeper: no wake-up is lost, deadlines are never early, descriptors end a sleep, with both kinds of timer.
#include "runtime/sleeper.hpp"

#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

#include "runtime/clock.hpp"
#include "runtime/entropy.hpp"

namespace sdr::runtime {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

class EventDescriptor {
 public:
  EventDescriptor() : fd_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {}
  ~EventDescriptor() { ::close(fd_); }
  [[nodiscard]] int fd() const { return fd_; }
  void raise() const {
    const std::uint64_t one = 1;
    ASSERT_EQ(::write(fd_, &one, sizeof one), static_cast<ssize_t>(sizeof one));
  }
  void lower() const {
    std::uint64_t count = 0;
    ASSERT_EQ(::read(fd_, &count, sizeof count), static_cast<ssize_t>(sizeof count));
  }

 private:
  int fd_;
};

class SleeperTest : public ::testing::TestWithParam<Sleeper::Timer> {
 protected:
  Sleeper sleeper_{GetParam()};
};

INSTANTIATE_TEST_SUITE_P(Timers, SleeperTest, ::testing::Values(Sleeper::Timer::Epoll, Sleeper::Timer::TimerDescriptor),
                         [](const auto& timer) {
                           return timer.param == Sleeper::Timer::Epoll ? "Epoll" : "TimerDescriptor";
                         });

TEST_P(SleeperTest, Deadline_InThePast_ReturnsAtOnce) {
  EXPECT_EQ(sleeper_.sleep_until(now() - milliseconds(5)), WakeReason::Deadline);
  EXPECT_EQ(sleeper_.sleep_until(TimePoint{}), WakeReason::Deadline);
  EXPECT_EQ(sleeper_.sleep_until(TimePoint::min()), WakeReason::Deadline);
}

TEST_P(SleeperTest, Deadline_IsNeverEarly) {
  for (const auto ahead : {microseconds(1), microseconds(30), microseconds(700), microseconds(3000)}) {
    const TimePoint deadline = now() + ahead;
    EXPECT_EQ(sleeper_.sleep_until(deadline), WakeReason::Deadline);
    EXPECT_GE(now(), deadline);
  }
}

TEST_P(SleeperTest, Wake_BeforeTheSleep_IsNotLost) {
  sleeper_.wake();
  EXPECT_EQ(sleeper_.sleep_until(kNever), WakeReason::Woken);
}

TEST_P(SleeperTest, ManyWakes_BetweenTwoSleeps_CountAsOne) {
  for (int i = 0; i < 10; ++i) sleeper_.wake();
  EXPECT_EQ(sleeper_.sleep_until(kNever), WakeReason::Woken);
  EXPECT_EQ(sleeper_.sleep_until(now() + milliseconds(1)), WakeReason::Deadline);
}

TEST_P(SleeperTest, Wake_FromAnotherThread_EndsASleepWithoutDeadline) {
  std::thread waker([&] {
    std::this_thread::sleep_for(milliseconds(2));
    sleeper_.wake();
  });
  EXPECT_EQ(sleeper_.sleep_until(kNever), WakeReason::Woken);
  waker.join();
}

TEST_P(SleeperTest, ReadableDescriptor_EndsEverySleepUntilItIsRead) {
  const EventDescriptor event;
  sleeper_.watch(event.fd());
  EXPECT_EQ(sleeper_.sleep_until(now() + microseconds(100)), WakeReason::Deadline);
  event.raise();
  EXPECT_EQ(sleeper_.sleep_until(kNever), WakeReason::Descriptor);
  EXPECT_EQ(sleeper_.sleep_until(kNever), WakeReason::Descriptor);
  event.lower();
  EXPECT_EQ(sleeper_.sleep_until(now() + microseconds(100)), WakeReason::Deadline);
}

TEST_P(SleeperTest, DescriptorWatchedTwice_NeedsTwoUnwatches) {
  const EventDescriptor event;
  event.raise();
  sleeper_.watch(event.fd());
  sleeper_.watch(event.fd());
  sleeper_.unwatch(event.fd());
  EXPECT_EQ(sleeper_.sleep_until(kNever), WakeReason::Descriptor);
  sleeper_.unwatch(event.fd());
  EXPECT_EQ(sleeper_.sleep_until(now() + microseconds(100)), WakeReason::Deadline);
  sleeper_.unwatch(event.fd());
}

TEST_P(SleeperTest, NoDescriptor_IsIgnored) {
  sleeper_.watch(-1);
  sleeper_.unwatch(-1);
  EXPECT_EQ(sleeper_.sleep_until(now()), WakeReason::Deadline);
}

TEST_P(SleeperTest, MoreReadableDescriptorsThanOneWaitReports_DoNotHideAWake) {
  std::array<EventDescriptor, 40> events;
  for (const auto& event : events) {
    event.raise();
    sleeper_.watch(event.fd());
  }
  std::thread waker([&] { sleeper_.wake(); });
  while (sleeper_.sleep_until(kNever) != WakeReason::Woken) {
  }
  waker.join();
}

TEST_P(SleeperTest, Signal_DoesNotEndTheSleep) {
  struct sigaction action {};
  action.sa_handler = [](int) {};
  struct sigaction before {};
  ASSERT_EQ(::sigaction(SIGUSR1, &action, &before), 0);
  const pthread_t self = ::pthread_self();
  std::thread other([&] {
    for (int i = 0; i < 5; ++i) {
      std::this_thread::sleep_for(milliseconds(1));
      ::pthread_kill(self, SIGUSR1);
    }
  });
  const TimePoint deadline = now() + milliseconds(10);
  EXPECT_EQ(sleeper_.sleep_until(deadline), WakeReason::Deadline);
  EXPECT_GE(now(), deadline);
  other.join();
  ::sigaction(SIGUSR1, &before, nullptr);
}

// Two threads hand a ball to and fro, each asleep without a deadline while the other has it: one lost wake-up, at any
// point of the other's falling asleep, and this never ends.
TEST_P(SleeperTest, TenThousandHandOvers_LoseNoWake) {
  constexpr int kRounds = 10'000;
  Sleeper other(GetParam());
  std::atomic<bool> here{true};
  int ball = 0;
  const auto play = [&](Sleeper& mine, Sleeper& theirs, bool side) {
    for (int i = 0; i < kRounds; ++i) {
      while (here.load(std::memory_order_acquire) != side) mine.sleep_until(kNever);
      ++ball;
      here.store(!side, std::memory_order_release);
      theirs.wake();
    }
  };
  std::thread there([&] { play(other, sleeper_, false); });
  play(sleeper_, other, true);
  there.join();
  EXPECT_EQ(ball, 2 * kRounds);
}

// What was written before wake() is seen after the sleep that it ended, by wake() alone.
TEST_P(SleeperTest, WhatWasWrittenBeforeWake_IsSeenAfterTheSleep) {
  int plain = 0;
  std::thread waker([&] {
    plain = 42;
    sleeper_.wake();
  });
  EXPECT_EQ(sleeper_.sleep_until(kNever), WakeReason::Woken);
  EXPECT_EQ(plain, 42);
  waker.join();
}

TEST(Clock, NeverRunsBackwards) {
  TimePoint last = now();
  for (int i = 0; i < 1000; ++i) {
    const TimePoint next = now();
    ASSERT_GE(next, last);
    last = next;
  }
}

TEST(Entropy, TwoDraws_Differ) {
  EXPECT_NE(random_u64(), random_u64());
}

}  // namespace
}  // namespace sdr::runtime

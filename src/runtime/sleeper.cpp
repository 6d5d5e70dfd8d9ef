#include "runtime/sleeper.hpp"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <initializer_list>
#include <system_error>

#include "runtime/clock.hpp"

namespace sdr::runtime {
namespace {

constexpr int kEventsAtOnce = 16;  // what does not fit is reported by the next wait: descriptors are level-triggered

// The default slack of 50 us would blur every pacing deadline. Per thread, therefore on the first sleep of each.
void tighten_timer_slack() {
  static thread_local const bool done = [] {
    constexpr unsigned long kSlackNanoseconds = 1'000;
    ::prctl(PR_SET_TIMERSLACK, kSlackNanoseconds, 0, 0, 0);
    return true;
  }();
  static_cast<void>(done);
}

[[noreturn]] void refuse(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

void add_to_epoll(int epoll, int fd, const char* what) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = fd;
  if (::epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) != 0) refuse(what);
}

timespec to_timespec(Duration duration) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(duration);
  timespec spec{};
  spec.tv_sec = seconds.count();
  spec.tv_nsec = (duration - seconds).count();
  return spec;
}

void drain(int counter) {
  std::uint64_t count = 0;
  // EAGAIN: there was nothing, which is as good.
  [[maybe_unused]] const auto got = ::read(counter, &count, sizeof count);
}

}  // namespace

Sleeper::Sleeper(Timer timer) {
  try {
    epoll_ = ::epoll_create1(EPOLL_CLOEXEC);
    if (epoll_ < 0) refuse("cannot create an epoll descriptor");
    wake_event_ = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (wake_event_ < 0) refuse("cannot create an eventfd");
    add_to_epoll(epoll_, wake_event_, "cannot watch an eventfd");
    if (timer == Timer::TimerDescriptor) open_timer();
  } catch (...) {
    close_descriptors();
    throw;
  }
}

Sleeper::~Sleeper() {
  close_descriptors();
}

void Sleeper::close_descriptors() {
  for (const int fd : {timer_, wake_event_, epoll_}) {
    if (fd >= 0) ::close(fd);
  }
}

void Sleeper::open_timer() {
  timer_ = ::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
  if (timer_ < 0) refuse("cannot create a timerfd");
  add_to_epoll(epoll_, timer_, "cannot watch a timerfd");
}

void Sleeper::watch(int fd) {
  if (fd < 0) return;
  const auto known = std::find_if(watched_.begin(), watched_.end(), [&](const auto& w) { return w.first == fd; });
  if (known != watched_.end()) {
    ++known->second;
    return;
  }
  add_to_epoll(epoll_, fd, "cannot watch a descriptor");
  watched_.emplace_back(fd, 1);
}

void Sleeper::unwatch(int fd) {
  const auto known = std::find_if(watched_.begin(), watched_.end(), [&](const auto& w) { return w.first == fd; });
  if (known == watched_.end() || --known->second > 0) return;
  watched_.erase(known);
  ::epoll_ctl(epoll_, EPOLL_CTL_DEL, fd, nullptr);
}

void Sleeper::wake() {
  // Release what the waker did; the sleeper's exchange acquires it. Only a thread that is (about to be) inside the
  // kernel needs the descriptor: one that is awake finds Notified before it goes to sleep.
  if (state_.exchange(State::Notified, std::memory_order_acq_rel) != State::Asleep) return;
  const std::uint64_t one = 1;
  // Cannot block or fail: the counter is far from its limit, one write per sleep.
  [[maybe_unused]] const auto put = ::write(wake_event_, &one, sizeof one);
}

WakeReason Sleeper::sleep_until(TimePoint deadline) {
  tighten_timer_slack();
  for (;;) {
    State expected = State::Awake;
    if (!state_.compare_exchange_strong(expected, State::Asleep, std::memory_order_acq_rel)) {
      state_.exchange(State::Awake, std::memory_order_acq_rel);
      return WakeReason::Woken;
    }
    std::array<epoll_event, kEventsAtOnce> events{};
    const int count = wait_for_events(deadline, events.data(), kEventsAtOnce);
    const bool notified = state_.exchange(State::Awake, std::memory_order_acq_rel) == State::Notified;

    bool descriptor = false;
    for (int i = 0; i < count; ++i) {
      const int fd = events[static_cast<std::size_t>(i)].data.fd;
      if (fd == wake_event_) {
        drain(wake_event_);
      } else if (fd != timer_) {
        descriptor = true;
      }
    }
    if (notified) return WakeReason::Woken;
    if (descriptor) return WakeReason::Descriptor;
    if (deadline != kNever && now() >= deadline) return WakeReason::Deadline;
    // Here by a signal, or by the late write of a wake() that an earlier sleep has reported already.
  }
}

// How many events there are, 0 at the deadline or after a signal.
int Sleeper::wait_for_events(TimePoint deadline, epoll_event* events, int capacity) {
  if (timer_ >= 0) return wait_with_timer_descriptor(deadline, events, capacity);

  timespec timeout{};
  if (deadline != kNever) {
    const TimePoint start = now();
    if (deadline > start) timeout = to_timespec(deadline - start);
  }
  const int count = ::epoll_pwait2(epoll_, events, capacity, deadline == kNever ? nullptr : &timeout, nullptr);
  if (count >= 0) return count;
  if (errno == ENOSYS || errno == EPERM) {
    open_timer();
    return wait_with_timer_descriptor(deadline, events, capacity);
  }
  return 0;
}

int Sleeper::wait_with_timer_descriptor(TimePoint deadline, epoll_event* events, int capacity) {
  // All zeros would mean "never": a deadline that has passed does not need the timer.
  const bool passed = deadline != kNever && deadline <= now();
  itimerspec setting{};
  if (deadline != kNever && !passed) setting.it_value = to_timespec(deadline.time_since_epoch());
  ::timerfd_settime(timer_, TFD_TIMER_ABSTIME, &setting, nullptr);  // also forgets an expiry nobody read
  const int count = ::epoll_pwait(epoll_, events, capacity, passed ? 0 : -1, nullptr);
  return count >= 0 ? count : 0;
}

}  // namespace sdr::runtime

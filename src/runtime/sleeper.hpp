// Sleeper: puts one thread to sleep until a descriptor is readable, a time has come, or another thread wakes it.
//
// Threads: watch, unwatch and sleep_until belong to the one thread that sleeps; wake() is for any thread, as long as
// the Sleeper lives.
//
// Invariant: a wake() is never lost. One that comes while the thread is awake makes the next sleep_until return at
// once; several between two sleeps count as one. What was written before wake() is visible after the sleep_until that
// it ended. While the thread is awake a wake() costs one atomic exchange and no system call, so it may be called per
// posted message.
//
// Descriptors are watched by level: one that is left unread ends every sleep. Watching a descriptor twice needs two
// unwatch calls, so that several agents may share a socket.
#pragma once

#include <atomic>
#include <utility>
#include <vector>

#include "sdr/units.hpp"

struct epoll_event;

namespace sdr::runtime {

enum class WakeReason {
  Deadline,    // the time came
  Descriptor,  // something watched is readable (or has an error to read)
  Woken,       // wake() was called; descriptors may be readable as well
};

class Sleeper {
 public:
  // How deadlines are kept: by epoll_pwait2 (Linux 5.11), or by a timerfd, which is also the fallback where the kernel
  // or a sandbox has no epoll_pwait2. Both count nanoseconds.
  enum class Timer { Epoll, TimerDescriptor };

  // Throws std::system_error when the process is out of descriptors.
  explicit Sleeper(Timer timer = Timer::Epoll);
  ~Sleeper();
  Sleeper(const Sleeper&) = delete;
  Sleeper& operator=(const Sleeper&) = delete;

  // Negative descriptors ("none") are ignored. Throws std::system_error when the kernel refuses to watch it.
  void watch(int fd);
  // Before the descriptor is closed. One that is not watched is ignored.
  void unwatch(int fd);

  // kNever sleeps without a deadline; a deadline in the past looks at the descriptors and returns.
  WakeReason sleep_until(TimePoint deadline);

  void wake();

 private:
  enum class State : int { Awake, Asleep, Notified };

  int wait_for_events(TimePoint deadline, epoll_event* events, int capacity);
  int wait_with_timer_descriptor(TimePoint deadline, epoll_event* events, int capacity);
  void open_timer();
  void close_descriptors();

  // Who moves the state: the sleeping thread Awake -> Asleep and back, any waker anything -> Notified.
  std::atomic<State> state_{State::Awake};
  int epoll_ = -1;
  int wake_event_ = -1;
  int timer_ = -1;                            // -1 as long as epoll_pwait2 serves
  std::vector<std::pair<int, int>> watched_;  // descriptor, how often
};

}  // namespace sdr::runtime

#include "sdr/driver.hpp"

#include <algorithm>
#include <variant>

#include "runtime/clock.hpp"
#include "runtime/entropy.hpp"
#include "runtime/sleeper.hpp"
#include "runtime/task_pool.hpp"
#include "runtime/thread.hpp"

namespace sdr {
namespace {

// How long to look for more before sleeping, after something has come. About what a sleep and a wake-up cost; more
// would take the core from the thread whose packets are awaited.
constexpr Duration kPollTime = std::chrono::microseconds(20);
// A deadline this near is waited for awake: the kernel would not be back in time.
constexpr Duration kTooShortToSleep = std::chrono::microseconds(5);
// What the application posts between two rounds is due in the next one. So a sleep takes two rounds in a row that had
// nothing to do, and is bounded for the case that something came in exactly the second.
constexpr int kIdleRounds = 2;
constexpr Duration kLongestSleep = std::chrono::milliseconds(100);

std::vector<int> fds_of(const Connection& connection) {
  return connection.wait_fds();
}

std::vector<int> fds_of(const QueuePair& queue_pair) {
  std::vector<int> fds = {queue_pair.control_fd()};
  for (std::uint8_t c = 0; c < queue_pair.geometry().channels; ++c) fds.push_back(queue_pair.channel_fd(c));
  return fds;
}

}  // namespace

class Driver::Impl {
 public:
  using Driven = std::variant<Connection*, QueuePair*>;

  template <typename T>
  void add(T& driven) {
    Entry entry{&driven, fds_of(driven)};
    for (const int fd : entry.fds) sleeper_.watch(fd);
    entries_.push_back(std::move(entry));
  }

  void remove(const void* driven) {
    const auto at = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) {
      return std::visit([](auto* p) { return static_cast<const void*>(p); }, entry.driven) == driven;
    });
    if (at == entries_.end()) return;
    for (const int fd : at->fds) sleeper_.unwatch(fd);
    entries_.erase(at);
  }

  // Progress of all; the time at which one of them wants to be called again.
  TimePoint progress(TimePoint now) {
    TimePoint next = kNever;
    for (const Entry& entry : entries_) {
      next = std::min(next, std::visit([&](auto* p) { return p->progress(now); }, entry.driven));
    }
    return next;
  }

  // Sleeps until `next` or `deadline`, unless it is worth staying awake.
  void rest(TimePoint now, TimePoint next, TimePoint deadline) {
    if (next <= now) {
      poll_until_ = now + kPollTime;
      idle_rounds_ = 0;
      return;
    }
    const TimePoint until = std::min({next, deadline, now + kLongestSleep});
    if (now < poll_until_ || until - now < kTooShortToSleep || ++idle_rounds_ < kIdleRounds) return;
    idle_rounds_ = 0;
    // Where a packet came from there are often more. A timer says nothing of the kind.
    if (sleeper_.sleep_until(until) != runtime::WakeReason::Deadline) poll_until_ = runtime::now() + kPollTime;
  }

  runtime::Sleeper sleeper_;

 private:
  struct Entry {
    Driven driven;
    std::vector<int> fds;
  };
  std::vector<Entry> entries_;
  TimePoint poll_until_ = TimePoint::min();
  int idle_rounds_ = 0;
};

Driver::Driver() : impl_(std::make_unique<Impl>()) {}
Driver::~Driver() = default;

void Driver::add(Connection& connection) {
  impl_->add(connection);
}
void Driver::add(QueuePair& queue_pair) {
  impl_->add(queue_pair);
}
void Driver::remove(const Connection& connection) {
  impl_->remove(&connection);
}
void Driver::remove(const QueuePair& queue_pair) {
  impl_->remove(&queue_pair);
}
void Driver::watch(int fd) {
  impl_->sleeper_.watch(fd);
}
void Driver::unwatch(int fd) {
  impl_->sleeper_.unwatch(fd);
}

bool Driver::run_until(const std::function<bool()>& done, Duration limit) {
  const TimePoint start = now();
  const TimePoint deadline = limit < kNever - start ? start + limit : kNever;
  for (TimePoint round = start;; round = now()) {
    const TimePoint next = impl_->progress(round);
    if (done()) return true;
    if (round >= deadline) return false;
    impl_->rest(round, next, deadline);
  }
}

void Driver::run_once(Duration limit) {
  const TimePoint start = now();
  const TimePoint deadline = limit < kNever - start ? start + limit : kNever;
  impl_->rest(start, impl_->progress(start), deadline);
}

TimePoint Driver::now() {
  return runtime::now();
}
std::uint64_t Driver::random_token() {
  return runtime::random_u64();
}

std::shared_ptr<Executor> Driver::make_executor(unsigned threads) {
  const unsigned cores = runtime::usable_cores();
  return std::make_shared<runtime::TaskPool>(threads != 0 ? threads : std::max(1U, cores - 1));
}

}  // namespace sdr

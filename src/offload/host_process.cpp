// The `host` device: DeviceWorker on threads of this process.
#include <fmt/format.h>
#include <pthread.h>
#include <sched.h>

#include <chrono>
#include <system_error>
#include <thread>
#include <vector>

#include "offload/device_worker.hpp"
#include "offload/process.hpp"
#include "runtime/clock.hpp"
#include "runtime/sleeper.hpp"
#include "runtime/thread.hpp"

namespace sdr::offload {
namespace {

constexpr std::uint32_t kPatience = 2000;  // rounds without work before a worker sleeps

struct HostPlatform {
  using Orders = offload::Orders;
  // A real device would sleep until its queue has an event.
  static void relax(std::uint32_t times) {
    if (times < kPatience)
      std::this_thread::yield();
    else
      sleep();
  }
  static void sleep() {
    thread_local runtime::Sleeper sleeper;
    sleeper.sleep_until(runtime::now() + std::chrono::microseconds(20));
  }
  static void begin_batch() {}
  static void keep_batch() {}
  static void drop_batch() {}
};

class HostProcess final : public Process {
 public:
  explicit HostProcess(const Windows& windows) : windows_(windows) {}
  ~HostProcess() override { static_cast<void>(HostProcess::end()); }

  Result<void> start() {
    const std::vector<int> cores = cores_for(windows_.shape().workers);
    for (std::uint32_t w = 0; w < windows_.shape().workers; ++w) {
      try {
        threads_.push_back(runtime::start_thread(fmt::format("sdr-device-{}", w), [windows = windows_, w] {
          DeviceWorker<HostPlatform> worker(windows, w, {});
          worker.run();
        }));
      } catch (const std::system_error& error) {
        return Error{ErrorCode::System, fmt::format("device worker {} of {} did not start: {}", w,
                                                    windows_.shape().workers, error.what())};
      }
      if (!cores.empty()) pin(threads_.back(), cores[w]);
    }
    return {};
  }

  Result<void> running() override { return {}; }

  // A thread of this process cannot be killed: it sees the stop word before its next batch.
  Result<void> end() override {
    windows_.header().stop.store(1, std::memory_order_relaxed);
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
    return {};
  }

 private:
  // One each, and one left over for the host; empty where there are fewer: threads that poll and share a core are
  // better placed by the scheduler.
  static std::vector<int> cores_for(std::uint32_t workers) {
    cpu_set_t set;
    CPU_ZERO(&set);
    std::vector<int> cores;
    if (::sched_getaffinity(0, sizeof set, &set) != 0) return cores;
    for (int core = CPU_SETSIZE - 1; core >= 0 && cores.size() <= workers; --core)
      if (CPU_ISSET(static_cast<std::size_t>(core), &set)) cores.push_back(core);
    if (cores.size() <= workers) cores.clear();
    return cores;
  }
  // Best effort: a thread that is not pinned does the same work.
  static void pin(std::thread& thread, int core) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(static_cast<std::size_t>(core), &set);
    ::pthread_setaffinity_np(thread.native_handle(), sizeof set, &set);
  }

  const Windows windows_;
  std::vector<std::thread> threads_;
};

}  // namespace

Result<std::unique_ptr<Process>> start_host_process(const Windows& windows) {
  auto process = std::make_unique<HostProcess>(windows);
  if (const Result<void> started = process->start(); !started) return started.error();
  return std::unique_ptr<Process>(std::move(process));
}

}  // namespace sdr::offload

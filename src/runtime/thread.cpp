#include "runtime/thread.hpp"

#include <pthread.h>
#include <sched.h>
#include <signal.h>

#include <algorithm>
#include <utility>

namespace sdr::runtime {

unsigned usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  // Refused on machines of more than 1024 cores, where the exact number matters little.
  if (::sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1U, static_cast<unsigned>(CPU_COUNT(&set)));
  return std::max(1U, std::thread::hardware_concurrency());
}

unsigned bounded_threads(unsigned requested) {
  const unsigned cores = usable_cores();
  return requested == 0 ? cores : std::min(requested, cores);
}

std::thread start_thread(const std::string& name, std::function<void()> body) {
  // A new thread inherits the mask, so that not even its first instruction can take a signal.
  struct BlockedSignals {
    sigset_t before{};
    BlockedSignals() {
      sigset_t all;
      ::sigfillset(&all);
      // What a thread's own instructions raise must reach its handler: the kernel kills the process when it is blocked.
      for (const int own : {SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGSYS, SIGTRAP}) ::sigdelset(&all, own);
      ::pthread_sigmask(SIG_SETMASK, &all, &before);
    }
    ~BlockedSignals() { ::pthread_sigmask(SIG_SETMASK, &before, nullptr); }
  } const blocked;
  std::thread thread(std::move(body));
  ::pthread_setname_np(thread.native_handle(), name.substr(0, 15).c_str());
  return thread;
}

}  // namespace sdr::runtime

#include "runtime/clock.hpp"

#include <time.h>

namespace sdr::runtime {
namespace {

Duration read(clockid_t clock) {
  timespec time{};
  ::clock_gettime(clock, &time);  // cannot fail: the clock exists and the pointer is good
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

}  // namespace

TimePoint now() {
  return TimePoint(read(CLOCK_MONOTONIC));
}

Duration cpu_time() {
  return read(CLOCK_PROCESS_CPUTIME_ID);
}

}  // namespace sdr::runtime

#include "runtime/clock.hpp"

#include <time.h>

namespace sdr::runtime {

TimePoint now() {
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC, &time);  // cannot fail: the clock exists and the pointer is good
  return TimePoint(std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec));
}

}  // namespace sdr::runtime

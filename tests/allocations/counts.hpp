// Counts of what the packet path must not do: allocations, mutex locks and clock reads of this process so far.
//
// The program that includes counts_test.cpp has its own operator new, pthread_mutex_lock and clock_gettime, which count
// and pass on; whatever the library, the C++ run time or a shared library calls is seen. Under a sanitizer, which
// replaces the same functions, only allocations are counted.
//
// Threads: any.
#pragma once

#include <cstdint>

namespace sdr::testing_support {

struct Counts {
  std::uint64_t allocations = 0;
  std::uint64_t locks = 0;
  std::uint64_t clock_reads = 0;

  friend Counts operator-(const Counts& a, const Counts& b) {
    return {a.allocations - b.allocations, a.locks - b.locks, a.clock_reads - b.clock_reads};
  }
};

Counts counts_so_far();

// Whether locks and clock reads are counted in this build.
bool counts_calls();

}  // namespace sdr::testing_support

#include "runtime/entropy.hpp"

#include <sys/random.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace sdr::runtime {

std::uint64_t random_u64() {
  std::uint64_t value = 0;
  for (;;) {
    // Up to 256 bytes come whole or not at all (getrandom(2)).
    if (::getrandom(&value, sizeof value, 0) == static_cast<ssize_t>(sizeof value)) return value;
    if (errno == EINTR) continue;
    // A guessable token would be accepted from anyone: rather not run.
    std::fprintf(stderr, "libsdr: no randomness from the kernel: %s\n", std::strerror(errno));
    std::abort();
  }
}

}  // namespace sdr::runtime

// Threads of the library: how many make sense, and how they are started.
#pragma once

#include <functional>
#include <string>
#include <thread>

namespace sdr::runtime {

// Cores that this process may run on (sched_getaffinity), at least 1. A container with two cores of a large host has
// two.
[[nodiscard]] unsigned usable_cores();

// What a pool makes of the number it was asked for: 0 means one thread a usable core, and never more than those, since
// threads that poll starve the thread they wait for.
[[nodiscard]] unsigned bounded_threads(unsigned requested);

// A thread with a name (15 characters are kept) and every signal blocked: signal handlers are the application's, and
// run on its threads. Throws std::system_error when the system has no thread left.
[[nodiscard]] std::thread start_thread(const std::string& name, std::function<void()> body);

}  // namespace sdr::runtime

// Long computations beside Python: the interpreter is free for other threads, and Ctrl-C is answered.
//
// The work runs on a thread of its own, without the interpreter lock; the calling thread looks for signals twenty times
// a second. When a handler raises (KeyboardInterrupt), `stop` is set, the work is waited for, which takes as long as
// the piece it is at, and the exception goes on. The work never touches a Python object.
#pragma once

#include <pybind11/pybind11.h>

#include <atomic>
#include <chrono>
#include <future>

namespace sdr::python {

template <typename Work>
auto interruptible(Work work) {
  std::atomic<bool> stop{false};
  const pybind11::gil_scoped_release released;
  auto result = std::async(std::launch::async, [&] { return work(stop); });
  while (result.wait_for(std::chrono::milliseconds(50)) != std::future_status::ready) {
    const pybind11::gil_scoped_acquire acquired;
    if (PyErr_CheckSignals() == 0) continue;
    pybind11::error_already_set error;
    stop = true;
    {
      const pybind11::gil_scoped_release again;
      result.wait();
    }
    throw error;
  }
  return result.get();
}

}  // namespace sdr::python

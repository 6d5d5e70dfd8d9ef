// ChildProcess: a copy of this process that runs one function. It dies with its parent, and when this object goes it is
// ended, should it still run. Start it before there are threads.
#pragma once

#include <sys/types.h>

#include <functional>
#include <utility>

#include "sdr/result.hpp"

namespace sdr::cli {

class ChildProcess {
 public:
  // The child's exit code is what `body` returns.
  static Result<ChildProcess> start(const std::function<int()>& body);
  ChildProcess(ChildProcess&& other) noexcept : pid_(std::exchange(other.pid_, -1)) {}
  ChildProcess& operator=(ChildProcess&&) = delete;
  ~ChildProcess();

 private:
  explicit ChildProcess(pid_t pid) : pid_(pid) {}
  pid_t pid_;
};

}  // namespace sdr::cli

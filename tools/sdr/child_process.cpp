#include "sdr/child_process.hpp"

#include <fmt/core.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

namespace sdr::cli {

Result<ChildProcess> ChildProcess::start(const std::function<int()>& body) {
  std::fflush(nullptr);
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return Error{ErrorCode::System, fmt::format("cannot start a second process: {}", std::strerror(errno))};
  if (pid > 0) return ChildProcess(pid);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  // The parent may have died before that.
  const int code = ::getppid() == parent ? body() : 1;
  std::fflush(nullptr);
  ::_exit(code);
}

ChildProcess::~ChildProcess() {
  if (pid_ < 0) return;
  // Its work is done by now, or of no use to anybody.
  ::kill(pid_, SIGKILL);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

}  // namespace sdr::cli

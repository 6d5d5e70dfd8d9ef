// SdrCommand: the built sdr as a child process, its output in files that can be read while it runs.
//
// Every wait is bounded; a child that a test leaves behind is killed with it. One thread.
#pragma once

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "tests/tools/temporary_directory.hpp"

namespace sdr::testing {

// Far more than anything here takes; a bound for what hangs.
inline constexpr std::chrono::seconds kPatience{60};

// Asks until the answer is true; false when patience has run out.
inline bool eventually(const std::function<bool()>& asks) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (!asks()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

class SdrCommand {
 public:
  // `prepare` runs in the child, before the command does.
  explicit SdrCommand(std::vector<std::string> arguments, const std::function<void()>& prepare = {}) {
    arguments.insert(arguments.begin(), SDR_BINARY_DIR "/sdr");
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    const std::string out = (output_ / "out").string();
    const std::string err = (output_ / "err").string();
    pid_ = fork();
    if (pid_ != 0) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(open(out.c_str(), O_CREAT | O_WRONLY | O_TRUNC, 0600), STDOUT_FILENO);
    dup2(open(err.c_str(), O_CREAT | O_WRONLY | O_TRUNC, 0600), STDERR_FILENO);
    if (prepare) prepare();
    execv(argv[0], argv.data());
    _exit(127);
  }
  ~SdrCommand() {
    if (status_ || pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  SdrCommand(const SdrCommand&) = delete;
  SdrCommand& operator=(const SdrCommand&) = delete;

  [[nodiscard]] pid_t pid() const { return pid_; }
  void signal(int number) const { ::kill(pid_, number); }
  [[nodiscard]] bool ended() {
    int status = 0;
    if (!status_ && waitpid(pid_, &status, WNOHANG) == pid_) status_ = status;
    return status_.has_value();
  }
  // The exit code; minus the signal that ended it; -1000 when it did not end.
  int wait() {
    if (!eventually([this] { return ended(); })) return -1000;
    return WIFEXITED(*status_) ? WEXITSTATUS(*status_) : -WTERMSIG(*status_);
  }
  [[nodiscard]] std::string out() const { return read_file(output_ / "out"); }
  [[nodiscard]] std::string err() const { return read_file(output_ / "err"); }
  [[nodiscard]] bool says(const std::string& text) const { return err().find(text) != std::string::npos; }
  // "127.0.0.1:PORT", of one that listens and says so first.
  [[nodiscard]] std::string address() {
    const std::string mark = "listening on ";
    std::string text;
    eventually([&] {
      text = err();
      return ended() || text.find('\n') != std::string::npos;
    });
    const std::size_t at = text.find(mark);
    if (at == std::string::npos) return "";
    return text.substr(at + mark.size(), text.find(' ', at + mark.size()) - at - mark.size());
  }

 private:
  TemporaryDirectory output_;
  pid_t pid_ = -1;
  std::optional<int> status_;
};

}  // namespace sdr::testing

// The `riscv` device: the device program in an emulator, a process of its own that shares the two windows and nothing
// else. The program is part of this library (SDR_RISCV_PROGRAM, put in by the build) and reaches the emulator as a file
// in memory.
#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include "offload/process.hpp"
#include "runtime/clock.hpp"
#include "runtime/sleeper.hpp"

#ifdef SDR_RISCV_PROGRAM
asm(".pushsection .rodata\n"
    ".balign 16\n"
    ".globl sdr_riscv_program_begin\n"
    ".hidden sdr_riscv_program_begin\n"
    "sdr_riscv_program_begin:\n"
    ".incbin \"" SDR_RISCV_PROGRAM
    "\"\n"
    ".globl sdr_riscv_program_end\n"
    ".hidden sdr_riscv_program_end\n"
    "sdr_riscv_program_end:\n"
    ".popsection\n");
extern "C" const char sdr_riscv_program_begin[];
extern "C" const char sdr_riscv_program_end[];
#endif

namespace sdr::offload {
namespace {

constexpr const char* kEmulator = "qemu-riscv64";

std::string_view program() {
#ifdef SDR_RISCV_PROGRAM
  return {sdr_riscv_program_begin, static_cast<std::size_t>(sdr_riscv_program_end - sdr_riscv_program_begin)};
#else
  return {};
#endif
}

std::string emulator_path() {
  const char* path = std::getenv("PATH");
  std::string_view left = path == nullptr ? "/usr/bin" : path;
  while (!left.empty()) {
    const std::size_t end = left.find(':');
    std::string candidate = fmt::format("{}/{}", left.substr(0, end), kEmulator);
    if (::access(candidate.c_str(), X_OK) == 0) return candidate;
    left = end == std::string_view::npos ? "" : left.substr(end + 1);
  }
  return {};
}

// A descriptor that is closed at the end.
class Descriptor {
 public:
  explicit Descriptor(int value) : value_(value) {}
  Descriptor(Descriptor&& other) noexcept : value_(std::exchange(other.value_, -1)) {}
  Descriptor& operator=(Descriptor&&) = delete;
  ~Descriptor() {
    if (value_ >= 0) ::close(value_);
  }
  [[nodiscard]] int get() const { return value_; }

 private:
  int value_;
};

Result<Descriptor> program_file() {
  Descriptor file(::memfd_create("sdr-device-program", MFD_CLOEXEC));
  const std::string_view bytes = program();
  if (file.get() < 0 || ::write(file.get(), bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size()))
    return Error{ErrorCode::System, fmt::format("no file in memory for the device program of {} bytes: {}",
                                                bytes.size(), std::strerror(errno))};
  return file;
}

class RiscvProcess final : public Process {
 public:
  RiscvProcess(pid_t pid, const Windows& windows) : pid_(pid), windows_(windows) {}
  ~RiscvProcess() override { static_cast<void>(RiscvProcess::end()); }

  Result<void> running() override {
    if (!reaped_) reap(WNOHANG);
    if (!reaped_) return {};
    return Error{ErrorCode::Closed, fmt::format("the riscv device (process {}) {}", pid_, how_it_ended())};
  }

  Result<void> end() override {
    if (ended_) return {};
    ended_ = true;
    windows_.header().stop.store(1, std::memory_order_relaxed);
    runtime::Sleeper sleeper;
    constexpr Duration kPatience = std::chrono::seconds(2);
    const TimePoint until = runtime::now() + kPatience;
    while (!reaped_ && runtime::now() < until) {
      reap(WNOHANG);
      if (!reaped_) sleeper.sleep_until(runtime::now() + std::chrono::milliseconds(1));
    }
    if (reaped_) {
      if (WIFEXITED(status_) && WEXITSTATUS(status_) == 0) return {};
      return Error{ErrorCode::Closed, fmt::format("the riscv device (process {}) {}", pid_, how_it_ended())};
    }
    ::kill(pid_, SIGKILL);
    reap(0);
    return Error{ErrorCode::Closed, fmt::format("the riscv device (process {}) did not stop in {} and was killed", pid_,
                                                to_string(kPatience))};
  }

  [[nodiscard]] int id() const override { return static_cast<int>(pid_); }

 private:
  void reap(int options) {
    pid_t reaped = 0;
    do {
      reaped = ::waitpid(pid_, &status_, options);
    } while (reaped < 0 && errno == EINTR);
    // Gone without a status: the application reaps every child by itself.
    if (reaped < 0) status_ = 0;
    if (reaped != 0) reaped_ = true;
  }
  [[nodiscard]] std::string how_it_ended() const {
    if (WIFSIGNALED(status_)) return fmt::format("was ended by signal {}", WTERMSIG(status_));
    return fmt::format("ended with exit code {}", WEXITSTATUS(status_));
  }

  const pid_t pid_;
  const Windows windows_;
  int status_ = 0;
  bool reaped_ = false;
  bool ended_ = false;
};

Result<pid_t> spawn(const std::string& emulator, const std::string& plugin, const std::array<int, 3>& files,
                    const Windows& windows) {
  constexpr int kFirst = 3;  // what the child knows them as
  std::vector<std::string> words{emulator};
  if (!plugin.empty()) {
    words.emplace_back("-plugin");
    words.push_back(plugin);
  }
  words.push_back(fmt::format("/proc/self/fd/{}", kFirst));
  for (const auto& word :
       {std::to_string(kFirst + 1), std::to_string(windows.device_bytes()), std::to_string(kFirst + 2),
        std::to_string(windows.host_bytes()), std::to_string(::getpid())})
    words.push_back(word);
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);

  // Out of the way of their new numbers first.
  std::vector<Descriptor> high;
  for (const int file : files) {
    high.emplace_back(::fcntl(file, F_DUPFD_CLOEXEC, 64));
    if (high.back().get() < 0)
      return Error{ErrorCode::System, fmt::format("no descriptor for the riscv device: {}", std::strerror(errno))};
  }
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  for (std::size_t i = 0; i < files.size(); ++i)
    ::posix_spawn_file_actions_adddup2(&actions, high[i].get(), kFirst + static_cast<int>(i));
  // A terminal's interrupt is for the host, which then ends its device.
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  pid_t pid = -1;
  const int error = ::posix_spawn(&pid, emulator.c_str(), &actions, &attributes, arguments.data(), environ);
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return Error{ErrorCode::System, fmt::format("cannot start {}: {}", emulator, std::strerror(error))};
  return pid;
}

}  // namespace

Result<void> riscv_available() {
  if (program().empty())
    return Error{ErrorCode::InvalidArgument,
                 "this build has no riscv device: riscv64-linux-gnu-g++ (Debian and Ubuntu: g++-riscv64-linux-gnu) was "
                 "not there when it was configured"};
  if (emulator_path().empty())
    return Error{
        ErrorCode::System,
        fmt::format("the riscv device needs {} (Debian and Ubuntu: qemu-user), which is not in PATH", kEmulator)};
  return {};
}

Result<std::unique_ptr<Process>> start_riscv_process(const Windows& windows, const SharedMemory& device,
                                                     const SharedMemory& host, const std::string& plugin) {
  if (const Result<void> available = riscv_available(); !available) return available.error();
  const Result<Descriptor> file = program_file();
  if (!file) return file.error();
  const Result<pid_t> pid =
      spawn(emulator_path(), plugin, {file->get(), device.descriptor(), host.descriptor()}, windows);
  if (!pid) return pid.error();
  return std::unique_ptr<Process>(std::make_unique<RiscvProcess>(*pid, windows));
}

}  // namespace sdr::offload

#include "sdr/emulate_commands.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <utility>

#include "runtime/clock.hpp"

namespace sdr::cli {
namespace {

constexpr char kTerminate = 'T';
constexpr int kAwaitStepMs = 10;
constexpr Duration kAwait = std::chrono::seconds(10);

struct Ended {
  std::uint8_t which = 0;
  std::uint8_t code = 0;
};

Error failed(const char* what) {
  return {ErrorCode::System, fmt::format("{}: {}", what, std::strerror(errno))};
}

// --- in a command's process, before it is one ---

// Whether the network namespace that this process is in has a listening TCP socket or a UDP socket on the port.
bool has_socket(std::uint16_t port) {
  for (const char* table : {"tcp", "tcp6", "udp", "udp6"}) {
    std::ifstream file(fmt::format("/proc/thread-self/net/{}", table));
    std::string line;
    std::getline(file, line);  // the titles
    while (std::getline(file, line)) {
      std::istringstream columns(line);
      std::string number, local, remote, state;
      columns >> number >> local >> remote >> state;
      const bool bound = table[0] == 'u' || state == "0A";  // TCP_LISTEN
      if (bound && local.ends_with(fmt::format(":{:04X}", port))) return true;
    }
  }
  return false;
}

void await_socket(const EmulatedEnd& at, std::uint16_t port) {
  if (!enter(at)) return;
  for (const TimePoint end = runtime::now() + kAwait; runtime::now() < end; ::poll(nullptr, 0, kAwaitStepMs)) {
    if (has_socket(port)) return;
  }
  fmt::print(stderr, "sdr emulate: the left end has no socket on port {} after {}; the right command starts anyway\n",
             port, to_string(kAwait));
}

void set_environment(const EmulatedEnds& ends, std::size_t which) {
  const auto set = [](const char* name, const std::string& value) { ::setenv(name, value.c_str(), 1); };
  const TunAddresses& left = ends.end[EmulatedEnds::kLeft].addresses;
  const TunAddresses& right = ends.end[EmulatedEnds::kRight].addresses;
  const bool is_left = which == EmulatedEnds::kLeft;
  set("SDR_END", is_left ? "left" : "right");
  set("SDR_LEFT", left.ipv4);
  set("SDR_RIGHT", right.ipv4);
  set("SDR_SELF", is_left ? left.ipv4 : right.ipv4);
  set("SDR_PEER", is_left ? right.ipv4 : left.ipv4);
  if (!left.has_ipv6 || !right.has_ipv6) return;
  set("SDR_LEFT6", left.ipv6);
  set("SDR_RIGHT6", right.ipv6);
  set("SDR_SELF6", is_left ? left.ipv6 : right.ipv6);
  set("SDR_PEER6", is_left ? right.ipv6 : left.ipv6);
}

[[noreturn]] void become_command(const EmulatedEnds& ends, const CommandPlan& plan, std::size_t which) {
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  const bool is_left = which == EmulatedEnds::kLeft;
  if (!is_left && plan.await_port != 0) await_socket(ends.end[EmulatedEnds::kLeft], plan.await_port);
  if (Result<void> entered = enter(ends.end[which]); !entered) ::_exit(127);
  set_environment(ends, which);
  if (is_left) {
    // The terminal, and with it Ctrl-C, is the right end's; the left one is ended by us.
    ::setpgid(0, 0);
    const int null = ::open("/dev/null", O_RDONLY);
    if (null >= 0) ::dup2(null, STDIN_FILENO);
  }
  if (plan.output_to_stderr) ::dup2(STDERR_FILENO, STDOUT_FILENO);
  ::execl("/bin/sh", "sh", "-c", plan.command[which].c_str(), nullptr);
  ::_exit(127);
}

// --- init ---

class Init {
 public:
  Init(const EmulatedEnds& ends, const CommandPlan& plan, int orders, int events) : orders_(orders), events_(events) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (const int number : {SIGINT, SIGTERM, SIGPIPE}) ::signal(number, SIG_DFL);
    sigset_t child;
    ::sigemptyset(&child);
    ::sigaddset(&child, SIGCHLD);
    ::sigprocmask(SIG_BLOCK, &child, nullptr);
    children_ = ::signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
    // So that /proc shows this namespace; where that is not allowed, programs see the outer one, which does no harm.
    if (::unshare(CLONE_NEWNS) == 0 && ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0) {
      static_cast<void>(::mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr));
    }
    for (std::size_t which : {EmulatedEnds::kLeft, EmulatedEnds::kRight}) {
      if (plan.command[which].empty()) continue;
      pids_[which] = ::fork();
      if (pids_[which] == 0) become_command(ends, plan, which);
      if (pids_[which] < 0) report({static_cast<std::uint8_t>(which), 127});
    }
  }

  // Until the parent's end of the pipe closes.
  void run() {
    for (;;) {
      reap();
      std::array<pollfd, 2> watched = {pollfd{orders_, POLLIN, 0}, pollfd{children_, POLLIN, 0}};
      ::poll(watched.data(), watched.size(), 1000);
      signalfd_siginfo ignored;
      while (::read(children_, &ignored, sizeof ignored) > 0) {
      }
      if (watched[0].revents == 0) continue;
      char order = 0;
      if (::read(orders_, &order, 1) <= 0) return;
      if (order == kTerminate) ::kill(-1, SIGTERM);
    }
  }

 private:
  void reap() {
    int status = 0;
    for (pid_t pid = 0; (pid = ::waitpid(-1, &status, WNOHANG)) > 0;) {
      for (std::size_t which = 0; which < 2; ++which) {
        if (pid != pids_[which]) continue;
        const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        report({static_cast<std::uint8_t>(which), static_cast<std::uint8_t>(code)});
      }
    }
  }
  void report(Ended ended) const {
    if (::write(events_, &ended, sizeof ended) != sizeof ended) ::_exit(1);
  }

  int orders_;
  int events_;
  int children_ = -1;
  std::array<pid_t, 2> pids_{};
};

}  // namespace

Result<EmulatedCommands> EmulatedCommands::start(const EmulatedEnds& ends, const CommandPlan& plan) {
  int events[2];
  int orders[2];
  if (::pipe2(events, O_CLOEXEC | O_NONBLOCK) != 0) return failed("pipe");
  FileDescriptor events_out(events[0]), events_in(events[1]);
  if (::pipe2(orders, O_CLOEXEC) != 0) return failed("pipe");
  FileDescriptor orders_out(orders[0]), orders_in(orders[1]);
  if (::unshare(CLONE_NEWPID) != 0) return failed("cannot make a PID namespace");
  std::fflush(nullptr);
  const pid_t init = ::fork();
  if (init < 0) return failed("cannot start a second process");
  if (init == 0) {
    // Its ends only, or the pipes would never close.
    events_out = FileDescriptor();
    orders_in = FileDescriptor();
    Init(ends, plan, orders_out.get(), events_in.get()).run();
    ::_exit(0);
  }
  return EmulatedCommands(init, std::move(events_out), std::move(orders_in), plan);
}

EmulatedCommands::EmulatedCommands(pid_t init, FileDescriptor events, FileDescriptor orders, const CommandPlan& plan)
    : init_(init),
      events_(std::move(events)),
      orders_(std::move(orders)),
      started_{!plan.command[0].empty(), !plan.command[1].empty()} {}

EmulatedCommands::EmulatedCommands(EmulatedCommands&& other) noexcept
    : init_(std::exchange(other.init_, -1)),
      events_(std::move(other.events_)),
      orders_(std::move(other.orders_)),
      started_(other.started_),
      codes_(other.codes_) {}

EmulatedCommands::~EmulatedCommands() {
  if (init_ < 0) return;
  ::kill(init_, SIGKILL);  // and with it all of the namespace
  while (::waitpid(init_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

void EmulatedCommands::poll() {
  Ended ended;
  ssize_t got = 0;
  while ((got = ::read(events_.get(), &ended, sizeof ended)) == sizeof ended) codes_[ended.which % 2] = ended.code;
  if (got != 0) return;
  // Init is gone: somebody killed it, and with it everything that ran.
  for (std::size_t which = 0; which < 2; ++which) {
    if (running(which)) codes_[which] = 128 + SIGKILL;
  }
}

void EmulatedCommands::ask_to_end() {
  // Should it be gone, there is nobody left to ask.
  [[maybe_unused]] const ssize_t asked = ::write(orders_.get(), &kTerminate, 1);
}

}  // namespace sdr::cli

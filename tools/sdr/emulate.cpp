// sdr emulate: a long, lossy path between two network namespaces of this machine, for any program.
#include <fmt/core.h>
#include <sched.h>
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "runtime/clock.hpp"
#include "runtime/sleeper.hpp"
#include "sdr/emulate_commands.hpp"
#include "sdr/emulate_ends.hpp"
#include "sdr/emulate_report.hpp"
#include "sdr/json_fields.hpp"
#include "sdr/options.hpp"
#include "sdr/path_forwarder.hpp"
#include "sdr/report.hpp"
#include "sdr/subcommands.hpp"
#include "sdr/transfer_interrupt.hpp"

namespace sdr::cli {
namespace {

using namespace std::chrono_literals;

constexpr std::string_view kName = "emulate";
constexpr Duration kGrace = 2s;       // for commands that are asked to end
constexpr Duration kLookEvery = 2ms;  // at commands and signals, while packets keep coming
constexpr Duration kShortestPause = 10us;
constexpr Duration kLongestPause = 50us;
constexpr int kMostPriority = -20;  // nice

constexpr const char* kExamples = R"(Examples:
  sdr emulate --link rtt=50ms,rate=1Gbit,loss=1e-3
      a shell at the right end; the left one answers ping $SDR_PEER
  sdr emulate --link rtt=50ms,rate=1Gbit,loss=1e-3 --await-port 5201 \
      --left 'iperf3 -s -1' --right 'iperf3 -c $SDR_PEER'
  sdr emulate --link rtt=25ms,rate=1Gbit,loss=1e-2 --await-port 7000 \
      --left 'sdr perf --listen 0.0.0.0:7000 --once' --right 'sdr perf $SDR_PEER:7000 --rate 990Mbit'
  sdr emulate --link rtt=20ms,rate=100Mbit --queue codel,ecn --at 5s:rate=10Mbit --right CMD

Addresses: left 10.0.0.1 and fd00::1, right 10.0.0.2 and fd00::2, in the commands' environment
as SDR_LEFT, SDR_RIGHT, SDR_SELF, SDR_PEER, and with a 6 behind for IPv6. Needs root, or user
namespaces and the right to open /dev/net/tun. Exit code: that of the right command, or of the
left one when that was waited for and the right one succeeded; 1 when the run was cut short.)";

struct EmulateOptions {
  std::string link = "rtt=25ms,rate=1Gbit";
  std::string queue = "drop-tail";
  std::vector<std::string> changes;
  std::vector<std::string> sysctls;
  std::string left;
  std::string right;
  std::string until = "right";
  std::string timeout;
  std::string report;
  std::uint16_t await_port = 0;
  bool json = false;
};

Error invalid(std::string message) {
  return {ErrorCode::InvalidArgument, std::move(message)};
}

Result<simulation::PathSpec> path_of(const EmulateOptions& options) {
  simulation::PathSpec spec;
  Result<simulation::LinkSpec> link = simulation::LinkSpec::parse(options.link);
  if (!link) return link.error();
  spec.link = std::move(link).value();
  const Result<simulation::QueueSpec> queue = simulation::QueueSpec::parse(options.queue, spec.link);
  if (!queue) return queue.error();
  spec.queue = *queue;
  for (const std::string& change : options.changes) {
    if (Result<void> added = spec.add_change(change); !added) return added.error();
  }
  return spec;
}

// Two percent of the RTT, but no less than what waking up takes.
Duration late_limit(const simulation::PathSpec& spec) {
  return std::max<Duration>(spec.link.rtt / 50, 200us);
}

// How long to leave the ends alone after they had something, so that several packets share the cost of waking up: a
// small part of the RTT, and none where that is no more than waking up takes. A path that looks all the time takes a
// whole core, and the kernel holds a real-time thread off that for 50 ms of each second (sched_rt_runtime_us).
Duration pause_between_looks(const simulation::PathSpec& spec) {
  const Duration part = std::min<Duration>(spec.link.rtt / 40, kLongestPause);
  return part < kShortestPause ? Duration::zero() : part;
}

// The path must not wait until its ends leave it a core: it runs before any of them, which it can, since it sleeps
// whenever nothing is due. Where neither of the two is allowed, the lateness will show it.
void claim_processor() {
  const sched_param lowest{.sched_priority = 1};
  if (::sched_setscheduler(0, SCHED_RR | SCHED_RESET_ON_FORK, &lowest) == 0) return;
  static_cast<void>(::setpriority(PRIO_PROCESS, 0, kMostPriority));
}

// One run: from starting the commands until they have ended.
class Emulation {
 public:
  Emulation(EmulatedEnds ends, EmulatedCommands commands, const Interrupt& interrupt, const EmulateOptions& options,
            const simulation::PathSpec& spec)
      : ends_(std::move(ends)),
        commands_(std::move(commands)),
        interrupt_(interrupt),
        options_(options),
        spec_(spec),
        start_(runtime::now()),
        deadline_(options.timeout.empty() ? kNever : start_ + *parse_duration(options.timeout)),
        forwarder_(ends_, spec, late_limit(spec), start_),
        pause_(pause_between_looks(spec)) {}

  EmulateResult run() {
    const Duration cpu_before = runtime::cpu_time();
    claim_processor();
    for (const int fd : {ends_.end[0].tun.fd(), ends_.end[1].tun.fd(), commands_.fd(), interrupt_.fd()}) {
      sleeper_.watch(fd);
    }
    while (!ended()) forward();
    const Duration elapsed = runtime::now() - start_;
    EmulateResult result{.spec = spec_, .elapsed = elapsed, .cpu_time = runtime::cpu_time() - cpu_before};
    for (std::size_t end = 0; end < 2; ++end) {
      result.code[end] = codes_[end];
      result.way[end] = forwarder_.counts(end);
      result.unread[end] = ends_.dropped_unread(end);
    }
    return result;
  }

  // Why it ended before its commands did; empty when it did not.
  [[nodiscard]] const std::string& cut_short() const { return cut_short_; }

 private:
  void forward() {
    using Worked = PathForwarder::Worked;
    const Worked worked = forwarder_.work();
    const TimePoint now = runtime::now();
    if (worked == Worked::Nothing) {
      sleeper_.sleep_until(std::min({forwarder_.next(), deadline_, now + 100ms}));
    } else if (worked == Worked::Some && pause_ > Duration::zero()) {
      pauser_.sleep_until(now + pause_);
    }
    if (worked != Worked::Nothing && now < look_at_) return;
    look(runtime::now());
    look_at_ = runtime::now() + kLookEvery;
  }

  void look(TimePoint now) {
    commands_.poll();
    if (ending_) return;
    if (Interrupt::caught() != nullptr) {
      cut_short_ = fmt::format("ended by {}", Interrupt::caught());
      sleeper_.unwatch(interrupt_.fd());  // it stays readable, and would let us sleep no more
    } else if (now >= deadline_) {
      cut_short_ = fmt::format("not done within --timeout {}", options_.timeout);
    } else if (!done()) {
      return;
    }
    // What ends from here on, ends because we ask it to.
    for (std::size_t end = 0; end < 2; ++end) codes_[end] = commands_.code(end);
    ending_ = true;
    commands_.ask_to_end();
    deadline_ = now + kGrace;
  }

  [[nodiscard]] bool done() const {
    const bool left = !commands_.running(EmulatedEnds::kLeft);
    const bool right = !commands_.running(EmulatedEnds::kRight);
    if (options_.until == "both" || options_.right.empty()) return left && right;
    return options_.until == "left" ? left : right;
  }
  [[nodiscard]] bool ended() const {
    if (!ending_) return false;
    const bool gone = !commands_.running(EmulatedEnds::kLeft) && !commands_.running(EmulatedEnds::kRight);
    return gone || runtime::now() >= deadline_;
  }

  EmulatedEnds ends_;
  EmulatedCommands commands_;
  const Interrupt& interrupt_;
  const EmulateOptions& options_;
  const simulation::PathSpec& spec_;
  TimePoint start_;
  TimePoint deadline_;  // of the run; then of the commands' ending
  PathForwarder forwarder_;
  Duration pause_;
  runtime::Sleeper pauser_;   // for a time
  runtime::Sleeper sleeper_;  // until there is something to do
  TimePoint look_at_{};
  bool ending_ = false;
  std::string cut_short_;
  std::array<std::optional<int>, 2> codes_;
};

Result<void> apply_sysctls(const EmulatedEnds& ends, const std::vector<std::string>& sysctls) {
  for (const std::string& text : sysctls) {
    const std::size_t equals = text.find('=');
    if (Result<void> set = ends.set_sysctl(text.substr(0, equals), text.substr(equals + 1)); !set) return set;
  }
  return {};
}

Result<int> emulate(const EmulateOptions& options) {
  if (options.until == "left" && options.left.empty()) return invalid("--until left needs a command for --left");
  if (Result<void> writable = check_writable(options.report); !writable) return writable.error();
  const Result<simulation::PathSpec> spec = path_of(options);
  if (!spec) return spec.error();
  Result<EmulatedEnds> ends = EmulatedEnds::make(spec->link.mtu);
  if (!ends) return ends.error();
  if (Result<void> set = apply_sysctls(*ends, options.sysctls); !set) return set.error();
  const CommandPlan plan{
      .command = {options.left, options.right}, .await_port = options.await_port, .output_to_stderr = options.json};
  const Interrupt interrupt;  // before there is anything that a signal would have to end
  Result<EmulatedCommands> commands = EmulatedCommands::start(*ends, plan);
  if (!commands) return commands.error();
  Emulation emulation(std::move(ends).value(), std::move(commands).value(), interrupt, options, *spec);
  const EmulateResult result = emulation.run();

  const Json json = to_json(result);
  if (options.json) {
    print_json(json);
  } else {
    print_summary(result);
  }
  if (!options.report.empty()) {
    if (Result<void> written = write_json(options.report, json); !written) return written.error();
  }
  if (const std::string slow = too_slow(result); !slow.empty()) fmt::print(stderr, "sdr {}: {}\n", kName, slow);
  if (!emulation.cut_short().empty()) return Error{ErrorCode::System, emulation.cut_short()};
  const int right = result.code[EmulatedEnds::kRight].value_or(kDone);
  return right != kDone ? right : result.code[EmulatedEnds::kLeft].value_or(kDone);
}

int run_emulate(EmulateOptions options) {
  if (options.left.empty() && options.right.empty()) {
    const char* shell = std::getenv("SHELL");
    options.right = shell == nullptr ? "/bin/sh" : shell;
  }
  const Result<int> code = emulate(options);
  return code ? *code : complain(kName, code.error());
}

CLI::Validator sysctl_text() {
  return CLI::Validator(
      [](std::string& text) {
        const std::size_t equals = text.find('=');
        const bool fine = text.starts_with("net.") && equals != std::string::npos && text.find("..") > equals &&
                          text.find('/') > equals;
        return fine ? std::string() : fmt::format("\"{}\" is not net.NAME=VALUE", printable(text));
      },
      "");
}

}  // namespace

void add_emulate(CLI::App& app, Run& run) {
  CLI::App* command =
      app.add_subcommand("emulate", "A long, lossy path between two network namespaces, for any program");
  auto options = std::make_shared<EmulateOptions>();
  command->footer(kExamples);
  command->add_option("--link", options->link, "rtt=50ms,rate=1Gbit,loss=1e-3,burst=4,mtu=1500,...: each direction")
      ->transform(link_text())
      ->type_name("LINK")
      ->capture_default_str();
  command
      ->add_option("--queue", options->queue,
                   "Before the rate: drop-tail, codel or policer, with limit= (burst=) as a size, a time or 1bdp; "
                   "codel also target=, interval=, ecn")
      ->type_name("QUEUE")
      ->capture_default_str();
  command->add_option("--at", options->changes, "What the link becomes at a time: 5s:rate=100Mbit,rtt=75ms; repeatable")
      ->type_name("TIME:KEYS")
      ->allow_extra_args(false);
  command->add_option("--left", options->left, "Command of the left end, for sh -c")->type_name("CMD");
  command->add_option("--right", options->right, "Command of the right end; has the terminal (default: a shell)")
      ->type_name("CMD");
  command->add_option("--until", options->until, "Whose end ends the run; the other command gets SIGTERM")
      ->check(CLI::IsMember({"right", "left", "both"}))
      ->capture_default_str();
  command
      ->add_option("--await-port", options->await_port,
                   "Start the right command when the left end has a TCP or UDP socket on this port")
      ->check(whole_number(1, 65535))
      ->type_name("PORT");
  command->add_option("--sysctl", options->sysctls, "Set at both ends: net.ipv4.tcp_congestion_control=bbr; repeatable")
      ->check(sysctl_text())
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
  command->add_option("--timeout", options->timeout, "Longest run; beyond it commands are ended and the exit code is 1")
      ->check(duration_text())
      ->type_name("TIME");
  command->add_option("--report", options->report, "The JSON report as a file")->type_name("FILE");
  command->add_flag("--json", options->json, "The report as JSON on stdout; the commands' output goes to stderr");
  command->callback([options, &run] { run = [options] { return run_emulate(*options); }; });
}

}  // namespace sdr::cli

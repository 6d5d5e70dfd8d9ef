// sdr emulate as its users run it. Needs namespaces and /dev/net/tun: where this machine does not let us have them, the
// tests that carry packets are skipped with the command's own words.
//
// Nothing here depends on how fast the machine is: paths are slow, and only lower bounds of times are checked.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/e2e/sdr_command.hpp"

namespace sdr::testing {
namespace {

using Arguments = std::vector<std::string>;
using Json = nlohmann::json;

const std::string kSdr = SDR_BINARY_DIR "/sdr";

struct Outcome {
  int code = 0;
  std::string out;
  std::string err;

  [[nodiscard]] Json json() const { return Json::parse(out, nullptr, false); }
};

Outcome emulate(Arguments more) {
  more.insert(more.begin(), {"emulate", "--timeout", "50s"});
  SdrCommand command(more);
  const int code = command.wait();
  return {code, command.out(), command.err()};
}

// Empty when this machine lets us make paths.
const std::string& refusal() {
  static const std::string reason = [] {
    const Outcome trial = emulate({"--right", "true"});
    return trial.code == 0 ? std::string() : trial.err;
  }();
  return reason;
}

#define NEEDS_NAMESPACES() \
  if (!refusal().empty()) GTEST_SKIP() << refusal()

bool is_one_line(const std::string& text) {
  return text.starts_with("sdr emulate: ") && text.find('\n') == text.size() - 1;
}

// Whether a process sleeps for this time. A command line has zeros between its words, so that neither a shell that is
// to start such a process nor sdr itself is taken for one.
bool somebody_sleeps(const std::string& seconds) {
  std::string wanted = "sleep";
  wanted += '\0';
  wanted += seconds;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    std::ifstream file(entry.path() / "cmdline", std::ios::binary);
    const std::string line((std::istreambuf_iterator<char>(file)), {});
    if (line.starts_with(wanted)) return true;
  }
  return false;
}

// --- usage ---

TEST(Emulate, WrongUsage_IsOneLineAndTwo) {
  for (const Arguments& wrong : {Arguments{"--link", "rtt=fast"},
                                 {"--queue", "red"},
                                 {"--queue", "policer,burst=100"},
                                 {"--at", "5s"},
                                 {"--at", "5s:mtu=9000"},
                                 {"--until", "noon"},
                                 {"--until", "left"},
                                 {"--await-port", "0"},
                                 {"--sysctl", "kernel.hostname=x"},
                                 {"--sysctl", "net./../kernel.hostname=x"},
                                 {"--timeout", "0s"}}) {
    const Outcome outcome = emulate(wrong);
    EXPECT_EQ(outcome.code, 2) << wrong[1] << outcome.err;
    EXPECT_TRUE(is_one_line(outcome.err)) << outcome.err;
    EXPECT_TRUE(outcome.out.empty());
  }
}

// --- the ends ---

TEST(Emulate, Commands_FindTheAddressesInTheirEnvironment_AndTheRightOnesCodeIsOurs) {
  NEEDS_NAMESPACES();
  const Outcome outcome = emulate({"--link", "rtt=1ms,rate=100Mbit", "--left", "echo $SDR_END $SDR_SELF $SDR_PEER",
                                   "--right", "sleep 0.2; echo $SDR_END $SDR_SELF $SDR_PEER; exit 7"});
  EXPECT_EQ(outcome.code, 7) << outcome.err;
  EXPECT_EQ(outcome.out, "left 10.0.0.1 10.0.0.2\nright 10.0.0.2 10.0.0.1\n");
  EXPECT_NE(outcome.err.find("left to right"), std::string::npos) << outcome.err;
}

TEST(Emulate, ACommandThatASignalEnds_CountsAs128AndTheSignal) {
  NEEDS_NAMESPACES();
  EXPECT_EQ(emulate({"--right", "kill -9 $$"}).code, 128 + SIGKILL);
}

TEST(Emulate, UntilBoth_WaitsForBoth_AndTheLeftOnesFailureShows) {
  NEEDS_NAMESPACES();
  const Outcome outcome = emulate({"--until", "both", "--left", "sleep 0.3; exit 3", "--right", "true"});
  EXPECT_EQ(outcome.code, 3) << outcome.err;
}

TEST(Emulate, TheLeftCommand_IsEndedWithTheRightOne) {
  NEEDS_NAMESPACES();
  const Outcome outcome = emulate({"--json", "--left", "sleep 1000", "--right", "true"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(outcome.json()["left_exit_code"].is_null());
  EXPECT_EQ(outcome.json()["right_exit_code"], 0);
}

TEST(Emulate, BeyondItsTimeout_EndsTheCommandsAndSaysSo) {
  NEEDS_NAMESPACES();
  SdrCommand command({"emulate", "--timeout", "300ms", "--right", "sleep 1000"});
  EXPECT_EQ(command.wait(), 1);
  EXPECT_TRUE(command.says("not done within --timeout 300ms")) << command.err();
}

// --- the path ---

// A Write over the path: the report of sdr perf, and that of the path.
struct Transfer {
  Json perf;
  Json path;
};

Transfer transfer(Arguments path_options, const std::string& perf_options, const std::string& peer = "$SDR_PEER") {
  const TemporaryDirectory folder;
  const std::string report = (folder / "report.json").string();
  const std::string host = peer == "$SDR_PEER" ? "0.0.0.0" : "[::]";
  path_options.insert(path_options.end(), {"--report", report, "--await-port", "7000", "--left",
                                           kSdr + " perf --once --listen " + host + ":7000 >&2", "--right",
                                           kSdr + " perf " + peer + ":7000 --json " + perf_options});
  const Outcome outcome = emulate(path_options);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const Json path = Json::parse(read_file(report), nullptr, false);
  EXPECT_FALSE(path.is_discarded());
  return {outcome.json(), path};
}

TEST(Emulate, AWrite_TakesTheRttAndTheRateOfThePath) {
  NEEDS_NAMESPACES();
  const Transfer run = transfer({"--link", "rtt=30ms,rate=40Mbit"}, "--size 512KiB --iters 3 --rate 40Mbit");
  EXPECT_EQ(run.perf["mtu"], 1456) << "of the interface's 1500";
  EXPECT_EQ(run.perf["verified"], true);
  // 361 packets of 1500 bytes at 40 Mbit/s, and 30 ms. Nothing may be faster than the path; sdr perf reads its clock
  // once a batch, so that a busy machine may take a few milliseconds off one of its times.
  EXPECT_GE(run.perf["completion_ms"]["max"].get<double>(), 108.2 + 30 - 10);
  const Json& data = run.path["right_to_left"];
  EXPECT_EQ(data["drops"]["loss"], 0);
  EXPECT_GE(data["delivered_packets"].get<int>(), 4 * 361) << "the warm-up, too";
  EXPECT_EQ(run.path["left_exit_code"], 0);
}

TEST(Emulate, OverIpv6_ItIsTheSame) {
  NEEDS_NAMESPACES();
  if (!std::filesystem::exists("/proc/sys/net/ipv6")) GTEST_SKIP() << "this kernel has no IPv6";
  const Transfer run =
      transfer({"--link", "rtt=10ms,rate=40Mbit"}, "--size 64KiB --iters 2 --rate 40Mbit", "[$SDR_PEER6]");
  EXPECT_EQ(run.perf["verified"], true);
  EXPECT_GE(run.path["right_to_left"]["delivered_packets"].get<int>(), 3 * 46) << "64 KiB in packets of the MTU";
}

TEST(Emulate, Losses_AreThoseOfTheLink_AndRepaired) {
  NEEDS_NAMESPACES();
  const Transfer run =
      transfer({"--link", "rtt=10ms,rate=40Mbit,loss=0.05,seed=3"}, "--size 2MiB --iters 2 --rate 38Mbit");
  EXPECT_EQ(run.perf["verified"], true);
  const Json& data = run.path["right_to_left"];
  const auto packets = data["packets"].get<double>();
  EXPECT_NEAR(data["drops"]["loss"].get<double>() / packets, 0.05, 5 * std::sqrt(0.05 / packets));
}

TEST(Emulate, AQueueThatIsTooShort_DropsAndSaysHowMany) {
  NEEDS_NAMESPACES();
  const Transfer run = transfer({"--link", "rtt=10ms,rate=20Mbit", "--queue", "drop-tail,limit=15000"},
                                "--size 512KiB --iters 1 --rate 60Mbit --scheme sr-nack");
  const Json& data = run.path["right_to_left"];
  EXPECT_GT(data["drops"]["queue_full"].get<int>(), 100);
  EXPECT_EQ(data["drops"]["loss"], 0);
  EXPECT_LE(data["queue_bytes"]["max"].get<int>(), 15000);
  const int accounted = data["delivered_packets"].get<int>() + data["drops"]["queue_full"].get<int>();
  EXPECT_LE(accounted, data["packets"].get<int>());
  EXPECT_NEAR(accounted, data["packets"].get<int>(), 20) << "a few are still under way when the commands end";
}

TEST(Emulate, APolicer_DelaysNothing) {
  NEEDS_NAMESPACES();
  const Transfer run = transfer({"--link", "rtt=10ms,rate=20Mbit", "--queue", "policer,burst=30000"},
                                "--size 256KiB --iters 1 --rate 60Mbit --scheme sr-nack");
  const Json& data = run.path["right_to_left"];
  EXPECT_GT(data["drops"]["policer"].get<int>(), 30);
  EXPECT_EQ(data["queue_bytes"]["max"], 0);
  EXPECT_EQ(data["wait_ms"]["max"], 0.0);
}

TEST(Emulate, ARateThatFalls_SlowsWhatComesAfter) {
  NEEDS_NAMESPACES();
  const Transfer run =
      transfer({"--link", "rtt=2ms,rate=100Mbit", "--queue", "drop-tail,limit=8MiB", "--at", "0s:rate=10Mbit"},
               "--size 256KiB --iters 1 --rate 100Mbit");
  EXPECT_GE(run.perf["completion_ms"]["max"].get<double>(), 256 * 1.024 * 8 / 10 - 10);
  EXPECT_EQ(run.path["changes"].size(), 1U);
}

// --- nothing stays ---

TEST(Emulate, WhenItIsInterruptedOrKilled_NothingOfItStays) {
  NEEDS_NAMESPACES();
  for (const int number : {SIGINT, SIGTERM, SIGKILL}) {
    // A number that nobody else sleeps for; the grandchild has left its parent's session.
    const std::string mark = std::to_string(100'000'000 + ::getpid() * 10 + number % 10);
    SdrCommand command({"emulate", "--left", "sleep " + mark, "--right", "setsid sleep " + mark + " & sleep " + mark});
    ASSERT_TRUE(eventually([&] { return somebody_sleeps(mark); }));
    command.signal(number);
    EXPECT_EQ(command.wait(), number == SIGKILL ? -SIGKILL : 1) << command.err();
    EXPECT_TRUE(eventually([&] { return !somebody_sleeps(mark); })) << "after signal " << number;
  }
}

}  // namespace
}  // namespace sdr::testing

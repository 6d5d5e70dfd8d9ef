// sdr offload as its users run it.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "offload/process.hpp"
#include "tests/e2e/sdr_command.hpp"

namespace sdr::testing {
namespace {

using Json = nlohmann::ordered_json;

TEST(Offload, OfEachDevice_ReportsThatItWasExact) {
  for (const char* device : {"host", "riscv"}) {
    if (std::string(device) == "riscv" && !offload::riscv_available()) continue;
    SdrCommand command({"offload", "--device", device, "--packets", "50000", "--order", "mix", "--json"});
    ASSERT_EQ(command.wait(), 0) << command.err();
    const Json report = Json::parse(command.out(), nullptr, false);
    EXPECT_TRUE(report.at("verified").get<bool>());
    EXPECT_EQ(report.at("emulated").get<bool>(), std::string(device) == "riscv");
    EXPECT_EQ(report.at("device_counts").at("completions"), report.at("pushed").at("completions"));
    EXPECT_EQ(report.at("device_counts").at("out_of_range"), report.at("pushed").at("out_of_range"));
  }
}

// Processes whose parent is `parent`, by /proc.
pid_t child_of(pid_t parent) {
  std::ifstream file("/proc/" + std::to_string(parent) + "/task/" + std::to_string(parent) + "/children");
  pid_t child = -1;
  return file >> child ? child : -1;
}

TEST(Offload, EmulatorWhoseHostIsKilled_EndsByItself) {
  if (!offload::riscv_available()) GTEST_SKIP() << offload::riscv_available().error().message;
  SdrCommand command({"offload", "--device", "riscv", "--packets", "100000000000"});
  pid_t emulator = -1;
  ASSERT_TRUE(eventually([&] { return (emulator = child_of(command.pid())) > 0; }));
  command.signal(SIGKILL);
  EXPECT_EQ(command.wait(), -SIGKILL);
  // Gone, or left for whoever reaps it.
  EXPECT_TRUE(eventually([&] {
    std::ifstream stat("/proc/" + std::to_string(emulator) + "/stat");
    std::string text;
    return !std::getline(stat, text) || text.find(") Z ") != std::string::npos;
  }));
}

TEST(Offload, KilledEmulator_IsOneLineAndExitCode1) {
  if (!offload::riscv_available()) GTEST_SKIP() << offload::riscv_available().error().message;
  SdrCommand command({"offload", "--device", "riscv", "--packets", "100000000000"});
  pid_t emulator = -1;
  ASSERT_TRUE(eventually([&] { return (emulator = child_of(command.pid())) > 0; }));
  ::kill(emulator, SIGKILL);
  EXPECT_EQ(command.wait(), 1);
  EXPECT_NE(command.err().find("was ended by signal 9"), std::string::npos) << command.err();
}

// --- sdr perf over a device ---

class PerfOver : public ::testing::TestWithParam<std::tuple<const char*, const char*>> {
 protected:
  void SetUp() override {
    if (std::string(std::get<0>(GetParam())) == "riscv" && !offload::riscv_available())
      GTEST_SKIP() << offload::riscv_available().error().message;
  }
};
INSTANTIATE_TEST_SUITE_P(Devices, PerfOver,
                         ::testing::Combine(::testing::Values("host", "riscv"),
                                            ::testing::Values("none", "sr-nack", "ec-rs", "adaptive")),
                         [](const auto& test) {
                           std::string name = std::string(std::get<0>(test.param)) + "_" + std::get<1>(test.param);
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST_P(PerfOver, EveryWriteArrivesAndIsVerified) {
  const auto [device, scheme] = GetParam();
  std::vector<std::string> arguments = {"perf", "--self",     "--json", "--offload", device, "--scheme",
                                        scheme, "--size",     "300001", "--iters",   "5",    "--offload-threads",
                                        "2",    "--channels", "2"};
  // Without reliability a lossy link would lose messages.
  if (std::string(scheme) != "none") {
    arguments.emplace_back("--link");
    arguments.emplace_back("rtt=25ms,rate=200Mbit,loss=1e-2");
  }
  SdrCommand command(arguments);
  ASSERT_EQ(command.wait(), 0) << command.err();
  const Json report = Json::parse(command.out(), nullptr, false);
  EXPECT_TRUE(report.at("verified").get<bool>());
  EXPECT_EQ(report.at("writes_complete"), 5);
  EXPECT_EQ(report.at("offload").at("device"), device);
  EXPECT_TRUE(report.at("offload").at("failures").empty()) << report.at("offload").dump();
}

std::vector<pid_t> children_of(pid_t parent) {
  std::ifstream file("/proc/" + std::to_string(parent) + "/task/" + std::to_string(parent) + "/children");
  std::vector<pid_t> children;
  for (pid_t child = 0; file >> child;) children.push_back(child);
  return children;
}

bool is_emulator(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/comm");
  std::string name;
  return std::getline(file, name) && name.starts_with("qemu-riscv64");
}

TEST(Offload, EmulatorsKilledInTheMidstOfWrites_AreReportedAndTheWritesGoOn) {
  if (!offload::riscv_available()) GTEST_SKIP() << offload::riscv_available().error().message;
  SdrCommand command({"perf", "--self", "--json", "--offload", "riscv", "--scheme", "adaptive", "--size", "1MiB",
                      "--iters", "12", "--link", "rtt=20ms,rate=200Mbit,loss=1e-2"});
  std::vector<pid_t> emulators;
  ASSERT_TRUE(eventually([&] {
    emulators.clear();
    for (const pid_t child : children_of(command.pid())) {
      if (is_emulator(child)) emulators.push_back(child);
      for (const pid_t grandchild : children_of(child))
        if (is_emulator(grandchild)) emulators.push_back(grandchild);
    }
    return emulators.size() == 2;
  }));
  std::this_thread::sleep_for(std::chrono::milliseconds(200));  // some Writes in: the run takes most of a second
  for (const pid_t emulator : emulators) ::kill(emulator, SIGKILL);
  ASSERT_EQ(command.wait(), 0) << command.err();
  const Json report = Json::parse(command.out(), nullptr, false);
  EXPECT_TRUE(report.at("verified").get<bool>());
  EXPECT_EQ(report.at("writes_complete"), 12);
  ASSERT_EQ(report.at("offload").at("failures").size(), 2U) << report.at("offload").dump();
  for (const Json& failure : report.at("offload").at("failures")) {
    EXPECT_NE(failure.get<std::string>().find("the riscv device (process "), std::string::npos) << failure;
    EXPECT_NE(failure.get<std::string>().find("signal 9"), std::string::npos) << failure;
  }
  EXPECT_NE(command.err().find("went on without it"), std::string::npos) << command.err();
}

TEST(Offload, WrongUsage_IsOneLineAndExitCode2) {
  for (const std::vector<std::string>& arguments : {std::vector<std::string>{"offload", "--device", "gpu"},
                                                    {"offload", "--chunk-packets", "12"},
                                                    {"offload", "--threads", "5"},
                                                    {"offload", "--order", "backwards"}}) {
    SdrCommand command(arguments);
    EXPECT_EQ(command.wait(), 2);
    EXPECT_EQ(command.err().find('\n'), command.err().size() - 1) << command.err();
  }
}

}  // namespace
}  // namespace sdr::testing

// sdr offload as its users run it.
#include <gtest/gtest.h>

#include <csignal>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
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

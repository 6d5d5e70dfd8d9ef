// The device's orders are strong enough for the thread sanitizer, and it sees when one of them is not.
//
// A separate program, because the finding must not fail the program that looks for it. Compiled here, with the system's
// compiler: the suite itself need not be built with the sanitizer.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace sdr::offload {
namespace {

int run(const std::string& command) {
  const int status = std::system((command + " >/dev/null 2>&1").c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(DeviceOrder, OfTheProtocol_HasNoRaceAndEachWeakerOneIsCaught) {
  const char* compiler = std::getenv("CXX");
  const std::string program = testing::TempDir() + "/sdr_device_order_" + std::to_string(::getpid());
  const std::string source = SDR_SOURCE_DIR;
  const int built =
      run(std::string(compiler == nullptr ? "c++" : compiler) + " -std=c++20 -O1 -g -fsanitize=thread -pthread -I" +
          source + "/src -I" + source + "/include " + source + "/tests/offload/device_order.cpp -o " + program);
  if (built != 0) GTEST_SKIP() << "no compiler with -fsanitize=thread";
  const auto order = [&](const char* which) { return run("TSAN_OPTIONS=exitcode=66 " + program + " " + which); };
  if (order("nothing") != 0) {
    std::filesystem::remove(program);
    GTEST_SKIP() << "the sanitizer does not run here";
  }
  EXPECT_EQ(order("product"), 0);
  for (const char* weak : {"weak-entry-publish", "weak-entry-take", "weak-ring-consumed", "weak-ring-reuse",
                           "weak-doorbell-ring", "weak-doorbell-see"}) {
    EXPECT_EQ(order(weak), 66) << weak;
  }
  std::filesystem::remove(program);
}

}  // namespace
}  // namespace sdr::offload

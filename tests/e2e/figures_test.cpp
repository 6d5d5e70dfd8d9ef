// sdr figures as its users run it: files in a directory.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/e2e/sdr_command.hpp"

namespace sdr::testing {
namespace {

bool has_gnuplot() {
  return std::system("command -v gnuplot >/dev/null 2>&1") == 0;
}

TEST(Figures, ASmallRun_LeavesDataPicturesAndAPage) {
  if (!has_gnuplot()) GTEST_SKIP() << "gnuplot is not installed";
  const TemporaryDirectory directory;
  const std::string out = (directory / "new/figures").string();
  SdrCommand command({"figures", "--out", out, "--only", "3b,9,11", "--samples", "100", "--jobs", "2"});
  ASSERT_EQ(command.wait(), 0) << command.err();
  EXPECT_NE(command.out().find(out + "/index.html"), std::string::npos) << command.out();
  const std::string page = read_file(out + "/index.html");
  for (const std::string id : {"3b", "9", "11"}) {
    const std::string stem = std::string(out).append("/figure-").append(id);
    EXPECT_TRUE(read_file(stem + ".png").starts_with("\x89PNG\r\n\x1a\n")) << id;
    EXPECT_GT(read_file(stem + ".png").size(), 10000U) << id;
    EXPECT_NE(read_file(stem + ".svg").find("</svg>"), std::string::npos) << id;
    EXPECT_GT(read_file(stem + ".csv").size(), 500U) << id;
    EXPECT_NE(page.find(std::string("Figure ").append(id).append(":")), std::string::npos) << id;
    EXPECT_FALSE(std::filesystem::exists(stem + ".log")) << id;
  }
  EXPECT_FALSE(std::filesystem::exists(out + "/figure-3a.csv")) << "not asked for";
  EXPECT_EQ(page.find("nan"), std::string::npos);
}

TEST(Figures, OfOurScheme_AreDrawnAndHeldAgainstWhatWeClaim) {
  if (!has_gnuplot()) GTEST_SKIP() << "gnuplot is not installed";
  const TemporaryDirectory directory;
  const std::string out = (directory / "out").string();
  SdrCommand command({"figures", "--out", out, "--only", "adaptive-bursts", "--samples", "100", "--jobs", "2"});
  ASSERT_EQ(command.wait(), 0) << command.err();
  EXPECT_NE(command.out().find("claims about the adaptive scheme hold"), std::string::npos) << command.out();
  EXPECT_EQ(command.out().find("statements of the paper"), std::string::npos) << command.out();
  const std::string stem = out + "/figure-adaptive-bursts";
  EXPECT_GT(read_file(stem + ".png").size(), 20000U);
  EXPECT_NE(read_file(stem + ".svg").find("</svg>"), std::string::npos);
  EXPECT_NE(read_file(stem + ".csv").find("\"mean run of 8 packets\",1048576,"), std::string::npos);
  const std::string page = read_file(out + "/index.html");
  EXPECT_NE(page.find("we claim"), std::string::npos);
  EXPECT_NE(page.find("not measured"), std::string::npos) << "a percentile of 100 Writes";
  EXPECT_EQ(page.find("nan"), std::string::npos);
}

TEST(Figures, TheSameSeed_GivesTheSameDataWithAnyNumberOfJobs) {
  const TemporaryDirectory directory;
  std::string data[2];
  for (const int i : {0, 1}) {
    const std::string out = (directory / std::to_string(i)).string();
    SdrCommand command(
        {"figures", "--out", out, "--only", "9,adaptive", "--samples", "100", "--jobs", i == 0 ? "1" : "3"});
    ASSERT_NE(command.wait(), 2) << command.err();
    data[i] = read_file(out + "/figure-9.csv") + read_file(out + "/figure-adaptive.csv");
  }
  EXPECT_GT(data[0].size(), 1000U);
  EXPECT_EQ(data[0], data[1]);
}

TEST(Figures, WithoutGnuplot_WritesTheDataAndNamesThePackage) {
  const TemporaryDirectory directory;
  const std::string out = (directory / "out").string();
  SdrCommand command({"figures", "--out", out, "--only", "3b", "--samples", "100"},
                     [] { setenv("PATH", "/nonexistent", 1); });
  EXPECT_EQ(command.wait(), 1);
  EXPECT_TRUE(command.says("sdr figures: gnuplot is not installed")) << command.err();
  EXPECT_TRUE(command.says("gnuplot-nox")) << command.err();
  EXPECT_EQ(command.err().find('\n'), command.err().size() - 1) << "one line";
  EXPECT_TRUE(std::filesystem::exists(out + "/figure-3b.csv"));
  EXPECT_TRUE(std::filesystem::exists(out + "/index.html"));
}

struct BadUse {
  std::vector<std::string> arguments;
  int code;
  const char* says;
};

TEST(Figures, BadInput_IsRefusedWithWhatIsWrong) {
  const TemporaryDirectory directory;
  write_file(directory / "file", "in the way");
  const std::string out = (directory / "out").string();
  const std::vector<BadUse> uses = {
      {{"figures"}, 2, "--out"},
      {{"figures", "--out", out, "--only", "7"}, 2, "no figure \"7\"; there are 3a"},
      {{"figures", "--out", out, "--samples", "5"}, 2, "\"5\" is not a whole number from 100 to 1000000"},
      {{"figures", "--out", out, "--jobs", "0"}, 2, "\"0\" is not a whole number from 1 to 1024"},
      {{"figures", "--out", (directory / "file").string(), "--only", "3b"}, 1, "file"},
      {{"figures", "--out", (directory / "file/below").string(), "--only", "3b"}, 1, "cannot make the directory"},
      {{"figures", "--out", "/proc/figures", "--only", "3b"}, 1, "/proc/figures"},
  };
  for (const BadUse& use : uses) {
    SdrCommand command(use.arguments);
    EXPECT_EQ(command.wait(), use.code) << command.err();
    EXPECT_TRUE(command.says(use.says)) << command.err();
    EXPECT_TRUE(command.err().starts_with("sdr figures: ")) << command.err();
    EXPECT_EQ(command.err().find('\n'), command.err().size() - 1) << "one line: " << command.err();
  }
  EXPECT_FALSE(std::filesystem::exists(out)) << "nothing is made for wrong usage";
}

}  // namespace
}  // namespace sdr::testing

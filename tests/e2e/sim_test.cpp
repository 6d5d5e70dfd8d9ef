// sdr sim as its users run it: the same answer every time, a picture, and refusals that name what is wrong.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "tests/e2e/sim_command.hpp"

namespace sdr::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

double value(const std::string& json, const std::string& name, const std::string& within = "") {
  const std::size_t from = within.empty() ? 0 : json.find("\"" + within + "\": {");
  const std::string mark = "\"" + name + "\": ";
  const std::size_t at = from == std::string::npos ? from : json.find(mark, from);
  return at == std::string::npos ? -1 : std::strtod(json.c_str() + at + mark.size(), nullptr);
}

TEST(Sim, ThePaperSPath_GivesAllFigures) {
  const Simulated result = sim({"--scheme", "ec-rs", "--size", "128MiB", "--loss", "1e-3", "--runs", "5", "--json"});
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("\"scheme\": \"ec-rs:32:8\""));
  EXPECT_NEAR(value(result.out, "ideal_ms"), 27.684, 0.001);
  EXPECT_NEAR(value(result.out, "floor_ms"), 27.687, 0.001);
  EXPECT_NEAR(value(result.out, "mean", "completion_ms"), value(result.out, "mean", "theory_ms"), 1.4);
  for (const char* share : {"mean", "p50", "p99", "p999"}) {
    EXPECT_GE(value(result.out, share, "slowdown"), 1.0) << share;
    EXPECT_LT(value(result.out, share, "slowdown"), 1.2) << share;
  }
  EXPECT_GT(value(result.out, "chunks_recovered"), 0);
  EXPECT_GT(value(result.out, "packets_lost"), 0);
  EXPECT_EQ(value(result.out, "chunks_sent"), 5 * 32768);
  EXPECT_EQ(value(result.out, "rate_gbps"), 400);
}

TEST(Sim, TheSameCommand_PrintsTheSameWhateverTheJobs) {
  const std::vector<std::string> arguments = {"--scheme", "sr-nack", "--size", "2MiB",   "--loss", "1e-2",  "--burst",
                                              "4",        "--runs",  "40",     "--seed", "7",      "--json"};
  const auto with_jobs = [&](const char* jobs) {
    std::vector<std::string> all = arguments;
    all.insert(all.end(), {"--jobs", jobs});
    return sim(all).out;
  };
  const std::string one = with_jobs("1");
  EXPECT_GT(value(one, "chunks_retransmitted"), 0);
  EXPECT_EQ(with_jobs("2"), one);
  EXPECT_EQ(with_jobs("3"), one);
  EXPECT_NE(sim({"--scheme", "sr-nack", "--size", "2MiB", "--loss", "1e-2", "--runs", "40", "--json"}).out, one);
}

TEST(Sim, ForAPerson_PrintsATable) {
  const Simulated result = sim({"--size", "1MiB", "--loss", "1e-2", "--runs", "20"});
  ASSERT_EQ(result.code, 0) << result.err;
  for (const char* word : {"scheme", "link", "completion", "theory", "slowdown", "repairs", "Mpacket/s"}) {
    EXPECT_THAT(result.out, HasSubstr(word));
  }
}

TEST(Sim, LinkTextAndOptions_AreOneLink) {
  const Simulated result = sim(
      {"--link", "rtt=10ms,rate=1Gbit,mtu=1500", "--loss", "1e-2", "--outage", "1s+1ms", "--size", "1MiB", "--json"});
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("\"link\": \"rtt=10ms,rate=1Gbit,loss=0.01,mtu=1500,outage=1s+1ms\""));
  EXPECT_EQ(value(result.out, "mtu"), 1456);
  EXPECT_THAT(result.out, HasSubstr("\"theory_ms\": null")) << "of outages the theory knows nothing";
}

TEST(Sim, ARecordedTrace_IsReadFromItsFile) {
  const TemporaryDirectory place;
  const std::string file = (place / "losses.txt").string();
  std::ofstream(file) << "# of a Tuesday\n100 2\n\n300 1  # one more\n100000 0\n";
  const Simulated result = sim({"--size", "4MiB", "--link", "rtt=10ms,rate=10Gbit,trace=" + file, "--json"});
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(value(result.out, "packets_lost"), 3);
  EXPECT_THAT(result.out, HasSubstr("trace=100:2:300:1:100000:0"));
}

TEST(Sim, ATrace_WorksOverSocketsToo) {
  const TemporaryDirectory place;
  const std::string file = (place / "losses.txt").string();
  std::ofstream(file) << "50 1\n";
  SdrCommand command({"perf", "--self", "--json", "--size", "1MiB", "--iters", "2", "--link",
                      "rtt=5ms,rate=400Mbit,losssize=1500,outage=5s+1ms,trace=" + file});
  ASSERT_EQ(command.wait(), 0) << command.err();
  EXPECT_GT(value(command.out(), "packets_lost"), 10);
}

TEST(Sim, ATimeline_IsAPictureOfBoundedSize) {
  const TemporaryDirectory place;
  const std::string file = (place / "run.svg").string();
  const Simulated result = sim({"--scheme", "sr-nack", "--size", "128MiB", "--loss", "1e-2", "--timeline", file});
  ASSERT_EQ(result.code, 0) << result.err;
  const std::string picture = read_file(file);
  EXPECT_TRUE(picture.starts_with("<svg")) << picture.substr(0, 40);
  EXPECT_TRUE(picture.ends_with("</svg>\n"));
  for (const char* word : {"sender", "receiver", "complete", "repairs", "lost", "sr-nack", "ms since"}) {
    EXPECT_THAT(picture, HasSubstr(word));
  }
  EXPECT_LT(picture.size(), 2U << 20);
  EXPECT_NE(sim({"--size", "1MiB", "--timeline", (place / "no/such/place.svg").string()}).code, 0);
}

TEST(Sim, AWriteThatFails_IsCountedAndExplained) {
  const Simulated result = sim({"--size", "64KiB", "--loss", "1", "--runs", "2", "--json"});
  EXPECT_EQ(result.code, 1);
  EXPECT_EQ(value(result.out, "writes_failed"), 2);
  EXPECT_THAT(result.out, HasSubstr("\"mean\": null"));
  EXPECT_THAT(result.err, AllOf(HasSubstr("sdr sim: 2 of 2 Writes failed"), HasSubstr("nothing heard from")));
}

TEST(Sim, BadInput_IsRefusedWithKeyValueAndRange) {
  const struct {
    std::vector<std::string> arguments;
    std::string says;
  } kBad[] = {
      {{"--loss", "1.5"}, "loss=1.5 is not a share from 0 to 1"},
      {{"--loss", "nan"}, "loss=nan is not a share"},
      {{"--rtt", "25"}, "rtt=25 is not a time from 0 to 60min"},
      {{"--rate", "7"}, "rate=7 is not 0 (not limited) or a bandwidth from 1kbit"},
      {{"--burst", "0.5"}, "burst=0.5 is not a mean length"},
      {{"--losssize", "0"}, "losssize=0 is not a packet size from 1 to 65535"},
      {{"--outage", "1s"}, "outage=1s is not up to 64 times BEGIN+LENGTH"},
      {{"--outage", "1s+0"}, "outage=1s+0 is not"},
      {{"--link", "trace=5"}, "trace=5 is not packets ARRIVED:LOST"},
      {{"--link", "trace=no-such-file"}, "trace=no-such-file is neither a file"},
      {{"--link", "lose=1"}, "unknown key \"lose\""},
      {{"--link", "loss=0.1", "--loss", "0.2"}, "loss is given twice"},
      {{"--size", "0"}, "size 0 is not from 1 B"},
      {{"--size", "0", "--scheme", "ec-rs:32:8"}, "size 0 is not from 1 B"},
      {{"--size", "many"}, "many"},
      {{"--scheme", "none"}, "unknown scheme \"none\""},
      {{"--scheme", "ec-rs", "--k", "250", "--m", "100"}, "250"},
      {{"--runs", "0"}, "\"0\" is not a whole number from 1"},
      {{"--jobs", "0"}, "\"0\" is not a whole number from 1 to 1024"},
      {{"--seed", "-1"}, "\"-1\" is not a whole number"},
      {{"--mtu", "100"}, "MTU \"100\""},
      {{"--mtu", "4096", "--link", "mtu=1500"}, "payload 4096"},
      {{"--chunk", "5000"}, "chunk size 5000"},
      {{"--step", "fast"}, "fast"},
  };
  for (const auto& bad : kBad) {
    const Simulated result = sim(bad.arguments);
    EXPECT_EQ(result.out, "") << bad.says;
    EXPECT_NE(result.code, 0) << bad.says;
    EXPECT_THAT(result.err, AllOf(HasSubstr("sdr sim: "), HasSubstr(bad.says)));
    EXPECT_EQ(result.err.find('\n'), result.err.size() - 1) << "one line: " << result.err;
  }
}

TEST(Sim, ATraceFileThatIsWrong_IsRefusedWithItsLine) {
  const TemporaryDirectory place;
  const std::string file = (place / "losses.txt").string();
  for (const char* line : {"10", "10 x", "10 2 3", "-1 2", "10 1:2"}) {
    std::ofstream(file) << "5 1\n" << line << "\n";
    const Simulated result = sim({"--link", "trace=" + file});
    EXPECT_EQ(result.code, 2);
    EXPECT_THAT(result.err, AllOf(HasSubstr("line 2"), HasSubstr(line), HasSubstr("ARRIVED LOST")));
  }
  std::ofstream(file) << "# nothing\n";
  EXPECT_THAT(sim({"--link", "trace=" + file}).err, HasSubstr("has no line"));
}

}  // namespace
}  // namespace sdr::testing

// sdr sim with several flows, as its users run it: the same answer every time, a picture, and refusals.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "tests/e2e/sim_command.hpp"

namespace sdr::testing {
namespace {

using ::testing::HasSubstr;

const std::vector<std::string> kTwo = {"--link",     "rtt=20ms,rate=20Mbit,outage=2s+500ms",
                                       "--queue",    "drop-tail,limit=1bdp",
                                       "--duration", "4s",
                                       "--flow",     "rate=12Mbit,name=ours",
                                       "--flow",     "tcp-cubic,start=1s,rtt=40ms",
                                       "--at",       "3s:rate=10Mbit"};

std::vector<std::string> with(std::vector<std::string> more) {
  std::vector<std::string> all = kTwo;
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

TEST(SimFlows, TheReport_HasEachFlow_AndWhatTheyMadeOfThePath) {
  const Simulated result = sim(with({"--json", "--series"}));
  ASSERT_EQ(result.code, 0) << result.err;
  const auto json = nlohmann::json::parse(result.out);
  ASSERT_EQ(json["flows"].size(), 2U);
  EXPECT_EQ(json["flows"][0]["name"], "ours");
  EXPECT_EQ(json["flows"][1]["base_rtt_ms"], 40);
  EXPECT_GT(json["flows"][0]["goodput_mbps"], 5);
  EXPECT_GT(json["flows"][1]["goodput_mbps"], 0.5);
  EXPECT_GT(json["drops"]["outage"], 0);
  EXPECT_GT(json["utilisation"], 0.7);
  EXPECT_EQ(json["changes"][0]["at_s"], 3);
  EXPECT_EQ(json["flows"][0]["series"]["rate_mbps"].size(), 300U);
  EXPECT_EQ(json["queue_series_ms"].size(), 300U);
}

TEST(SimFlows, WhatIsOfWritesByThemselves_IsRefusedBesideFlows) {
  for (const std::vector<std::string>& more : std::vector<std::vector<std::string>>{
           {"--size", "4MiB"}, {"--runs", "5"}, {"--scheme", "sr-rto"}, {"--mtu", "512"}, {"--known-loss"}}) {
    const Simulated result = sim(with(more));
    EXPECT_EQ(result.code, 2) << more[0];
    EXPECT_THAT(result.err, HasSubstr(more[0]));
  }
}

TEST(SimFlows, IntervalsAndChangesBeyondTheirLimits_AreRefused) {
  const Simulated fine = sim(with({"--interval", "1ns"}));
  EXPECT_EQ(fine.code, 2);
  EXPECT_THAT(fine.err, HasSubstr("4000000000 intervals"));
  const Simulated late = sim(with({"--at", "5s:rate=1Mbit"}));
  EXPECT_EQ(late.code, 2);
  EXPECT_THAT(late.err, HasSubstr("5.00 s is not before the end"));
}

TEST(SimFlows, TheSameCommand_PrintsTheSame_AndAnotherSeedDoesNot) {
  const std::vector<std::string> lossy = {
      "--link", "rtt=20ms,rate=20Mbit,loss=1e-2", "--duration", "2s", "--flow", "sdr", "--json"};
  const std::string first = sim(lossy).out;
  EXPECT_EQ(first, sim(lossy).out);
  std::vector<std::string> other = lossy;
  other.insert(other.end(), {"--seed", "5"});
  EXPECT_NE(first, sim(other).out);
}

TEST(SimFlows, ThePicture_NamesTheFlows_AndHasThreePanels) {
  const std::string file = ::testing::TempDir() + "flows.svg";
  const Simulated result = sim(with({"--plot", file}));
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("Jain's index"));
  std::ostringstream picture;
  picture << std::ifstream(file).rdbuf();
  for (const char* words : {"rate, Mbit/s", "queue, ms", "RTT, ms", "time, s", "ours", "tcp-cubic 2"}) {
    EXPECT_THAT(picture.str(), HasSubstr(words));
  }
  EXPECT_LT(picture.str().size(), 200'000U);
}

TEST(SimFlows, WhatCannotBe_IsWrongUsage) {
  EXPECT_EQ(sim({"--flow", "udp"}).code, 2);
  EXPECT_EQ(sim({"--flow", "sdr", "--queue", "red"}).code, 2);
  EXPECT_EQ(sim({"--flow", "sdr", "--at", "1s:mtu=900"}).code, 2);
  EXPECT_EQ(sim({"--at", "1s:rate=1Mbit"}).code, 2);
  EXPECT_EQ(sim({"--flow", "sdr,start=40s"}).code, 2);
  EXPECT_EQ(sim({"--link", "rtt=25ms", "--flow", "sdr"}).code, 2);
  EXPECT_EQ(sim({"--flow", "sdr", "--duration", "1s", "--plot", "/nowhere/at.svg"}).code, 1);
}

}  // namespace
}  // namespace sdr::testing

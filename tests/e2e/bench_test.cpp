// sdr bench as its users run it, and sdr plan on what it has written.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/e2e/sdr_command.hpp"
#include "tests/tools/temporary_directory.hpp"

namespace sdr::testing {
namespace {

using Arguments = std::vector<std::string>;
using Json = nlohmann::ordered_json;

struct Ran {
  int code = 0;
  std::string out;
  std::string err;
};

Ran run_sdr(const Arguments& arguments) {
  SdrCommand command(arguments);
  const int code = command.wait();
  return {code, command.out(), command.err()};
}

Json report_of(Arguments arguments) {
  arguments.emplace_back("--json");
  const Ran ran = run_sdr(arguments);
  EXPECT_EQ(ran.code, 0) << ran.err;
  Json report = Json::parse(ran.out, nullptr, false);
  for (const char* field : {"cpu", "kernel", "date", "cores"}) EXPECT_TRUE(report.contains(field)) << field;
  return report;
}

const Arguments kShortCoding = {"bench", "coding", "--runs",    "1",       "--each", "1us",      "--data",
                                "4MiB",  "--code", "ec-rs:8:2", "--chunk", "4KiB",   "--no-tail"};

TEST(Bench, OfTheWorker_HasItsRates) {
  const Json report = report_of({"bench", "worker", "--runs", "1", "--each", "1us"});
  for (const char* field : {"in_order_mpps", "shuffled_mpps", "one_packet_chunks_mpps"})
    EXPECT_GT(report[field].get<double>(), 0) << field;
}

TEST(Bench, OfTheTurnaround_HasNanosecondsByMessageSize) {
  const Json report = report_of({"bench", "turnaround", "--runs", "1", "--messages", "1"});
  ASSERT_GT(report["points"].size(), 3U);
  for (const Json& point : report["points"]) {
    EXPECT_GT(point["message_bytes"].get<std::uint64_t>(), 0U);
    EXPECT_GT(point["post_complete_ns"].get<double>(), 0);
  }
}

TEST(Bench, OfCoding_IsWhatPlansRead) {
  const Json report = report_of(kShortCoding);
  EXPECT_EQ(report["codes"].size(), 3U);
  const TemporaryDirectory directory;
  const std::string path = (directory / "coding.json").string();
  std::ofstream(path) << report.dump();
  const Arguments plan = {"plan", "--rtt",  "25ms", "--rate", "40Gbit",  "--loss",
                          "1e-3", "--size", "1MiB", "--json", "--bench", path};
  const Ran planned = run_sdr(plan);
  ASSERT_EQ(planned.code, 0) << planned.err;
  const double expected = report["rs_32_8"]["encode_GBps"].get<double>() * 8;
  bool found = false;
  const Json answer = Json::parse(planned.out);
  for (const Json& scheme : answer["schemes"]) {
    if (scheme["scheme"] != "ec-rs:32:8") continue;
    found = true;
    EXPECT_NEAR(scheme["encode_gbps"].get<double>(), expected, expected * 1e-3);
  }
  EXPECT_TRUE(found);

  std::ofstream(path) << R"({"rs_32_8": {"encode_GBps": "fast"}})";
  const Ran refused = run_sdr(plan);
  EXPECT_EQ(refused.code, 2);
  EXPECT_NE(refused.err.find("rs_32_8.encode_GBps \"fast\""), std::string::npos) << refused.err;
  EXPECT_NE(refused.err.find(path), std::string::npos) << refused.err;
}

TEST(Bench, OfMoreDataThanThereIsMemory_IsRefusedWithTheLimit) {
  const Ran result = run_sdr({"bench", "coding", "--data", "1TiB"});
  EXPECT_EQ(result.code, 2) << result.err;
  EXPECT_NE(result.err.find("half of this machine's memory"), std::string::npos) << result.err;
}

TEST(Bench, ForPeople_IsATable) {
  Arguments arguments = kShortCoding;
  const Ran ran = run_sdr(arguments);
  EXPECT_EQ(ran.code, 0) << ran.err;
  for (const char* part : {"memcpy", "ec-rs:32:8", "ec-xor:32:8", "ec-rs:8:2", "ISA-L"})
    EXPECT_NE(ran.out.find(part), std::string::npos) << part << " in:\n" << ran.out;
}

TEST(Bench, WrongArguments_AreWrongUsage) {
  const std::vector<std::pair<Arguments, std::string>> cases = {
      {{"bench"}, "subcommand"},
      {{"bench", "coding", "--code", "sr-nack"}, "sr-nack"},
      {{"bench", "coding", "--data", "1MiB"}, "data 1 MiB"},
      {{"bench", "coding", "--chunk", "100"}, "chunk 100"},
      {{"bench", "coding", "--threads", "0"}, "0"},
      {{"bench", "worker", "--cpu", "1023"}, "--cpu 1023"},
      {{"bench", "worker", "--each", "2min"}, "1 minute"},
      {{"bench", "turnaround", "--messages", "0"}, "0"},
  };
  for (const auto& [arguments, says] : cases) {
    const Ran ran = run_sdr(arguments);
    EXPECT_EQ(ran.code, 2) << says << ": " << ran.err;
    EXPECT_NE(ran.err.find(says), std::string::npos) << ran.err;
  }
}

}  // namespace
}  // namespace sdr::testing

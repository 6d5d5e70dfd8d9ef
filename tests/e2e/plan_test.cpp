// sdr plan as its users run it.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/e2e/sdr_command.hpp"
#include "tests/tools/temporary_directory.hpp"

namespace sdr::testing {
namespace {

using Arguments = std::vector<std::string>;
using Json = nlohmann::ordered_json;

constexpr const char* kProfile = R"({"version": 1, "rtt_ms": {"min": 24.5, "p50": 25, "p99": 26},
  "rate_bits_per_second": 400e9, "payloads": [
  {"bytes": 1024, "packets": 1000000, "loss": 0, "mean_burst": 1, "reorder": 0},
  {"bytes": 4096, "packets": 1000000, "loss": 1e-2, "mean_burst": 1, "reorder": 0},
  {"bytes": 8192, "packets": 1000000, "loss": 5e-2, "mean_burst": 3, "reorder": 0}]})";

struct Planned {
  int code = 0;
  std::string out;
  std::string err;
};

Planned run_plan(Arguments arguments) {
  arguments.insert(arguments.begin(), "plan");
  SdrCommand command(arguments);
  const int code = command.wait();
  return {code, command.out(), command.err()};
}

Json plan_json(Arguments arguments) {
  arguments.emplace_back("--json");
  const Planned planned = run_plan(arguments);
  EXPECT_EQ(planned.code, 0) << planned.err;
  return Json::parse(planned.out, nullptr, false);
}

const Arguments kPath = {"--rtt", "25ms", "--rate", "400Gbit", "--loss", "1e-2", "--size", "128MiB"};

Arguments and_also(Arguments arguments, const Arguments& more) {
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

TEST(Plan, InJson_HasEverySchemeAndTheBest) {
  const Json plan = plan_json(kPath);
  EXPECT_NEAR(plan["ideal_ms"].get<double>(), 27.684, 0.001);
  EXPECT_NEAR(plan["floor_ms"].get<double>(), 27.711, 0.001);
  EXPECT_EQ(plan["best"], "adaptive");
  EXPECT_EQ(plan["chunks"], 32768);
  ASSERT_EQ(plan["schemes"].size(), 7U);
  int best = 0;
  for (const Json& scheme : plan["schemes"]) {
    for (const char* field : {"mean_ms", "p50_ms", "p99_ms", "p999_ms", "overhead", "fallback", "encode_cores"}) {
      EXPECT_TRUE(scheme[field].is_number()) << field << " of " << scheme["scheme"];
    }
    EXPECT_LE(scheme["p50_ms"], scheme["p99_ms"]);
    EXPECT_LE(scheme["p99_ms"], scheme["p999_ms"]);
    EXPECT_GE(scheme["slowdown"]["mean"].get<double>(), 1.0);
    if (scheme["name"].get<std::string>().starts_with("ec-")) {
      EXPECT_GT(scheme["encode_gbps"].get<double>(), 0) << "measured here";
      EXPECT_GT(scheme["encode_cores"].get<double>(), 0);
    }
    if (!scheme["best"].get<bool>()) continue;
    ++best;
    EXPECT_EQ(scheme["name"], plan["best"]);
    EXPECT_EQ(scheme["scheme"], plan["best_scheme"]);
    EXPECT_LE(scheme["overhead"].get<double>(), 0.1);
  }
  EXPECT_EQ(best, 1);
  EXPECT_TRUE(plan["why"].get<std::string>().starts_with(plan["best_scheme"].get<std::string>()));
}

TEST(Plan, ForAPerson_PrintsATableAndWhy) {
  const Planned planned = run_plan(kPath);
  ASSERT_EQ(planned.code, 0) << planned.err;
  for (const char* part : {"128 MiB", "25.0 ms", "floor", "scheme", "p99.9 ms", "more bytes", "cores", "sr-rto",
                           "sr-nack", "ec-xor:32:8", "ec-rs:32:8", "->", "adaptive", "Best: adaptive: "}) {
    EXPECT_NE(planned.out.find(part), std::string::npos) << part << " is not in\n" << planned.out;
  }
}

TEST(Plan, SeveralSizes_AreSeveralPlans) {
  Arguments sizes = kPath;
  sizes.back() = "128KiB,1MiB";
  const Json plans = plan_json(and_also(sizes, {"--size", "1GiB"}));
  ASSERT_EQ(plans.size(), 3U);
  EXPECT_EQ(plans[0]["size_bytes"], 128 << 10);
  EXPECT_EQ(plans[2]["size_bytes"], 1 << 30);
}

TEST(Plan, ADistance_IsAnRtt) {
  EXPECT_EQ(plan_json({"--distance", "3750km", "--rate", "1Gbit", "--loss", "0.1%", "--size", "1MiB"})["rtt_ms"], 25);
}

TEST(Plan, Chunks_TakeTheLossOfTheirPackets) {
  const Json plan = plan_json(and_also(kPath, {"--mtu", "1024", "--chunk", "4p", "--burst", "1"}));
  EXPECT_EQ(plan["chunk_bytes"], 4096);
  EXPECT_NEAR(plan["chunk_loss"].get<double>(), 1 - 0.99 * 0.99 * 0.99 * 0.99, 1e-9);
  EXPECT_EQ(plan_json(and_also(kPath, {"--chunk", "8KiB"}))["chunks"], 16384);
}

TEST(Plan, OfALinkProfile_TakesWhatIsNotGiven) {
  const TemporaryDirectory directory;
  const std::string file = (directory / "profile.json").string();
  write_file(file, kProfile);
  const Json plan = plan_json({"--link-profile", file, "--size", "128MiB"});
  EXPECT_EQ(plan["rtt_ms"], 25);
  EXPECT_EQ(plan["mtu"], 4096);
  EXPECT_EQ(plan["loss"], 1e-2);
  EXPECT_EQ(plan["best"], "adaptive");
  const Json other = plan_json({"--link-profile", file, "--size", "1MiB", "--mtu", "8192", "--rtt", "5ms"});
  EXPECT_EQ(other["rtt_ms"], 5);
  EXPECT_EQ(other["loss"], 5e-2);
  EXPECT_EQ(other["burst"], 3);
  const Json clean = plan_json({"--link-profile", file, "--size", "1MiB", "--mtu", "1024"});
  ASSERT_EQ(clean["notes"].size(), 1U);
  EXPECT_NE(clean["notes"][0].get<std::string>().find("3.0e-06"), std::string::npos) << clean["notes"][0];
}

struct Wrong {
  Arguments arguments;
  std::vector<std::string> says;
};

void expect_refused(const Wrong& wrong, int code) {
  const Planned planned = run_plan(wrong.arguments);
  std::string line = "sdr plan";
  for (const std::string& argument : wrong.arguments) line += " " + argument;
  EXPECT_EQ(planned.code, code) << line << "\n" << planned.err;
  EXPECT_EQ(planned.out, "") << line;
  EXPECT_TRUE(planned.err.starts_with("sdr plan: ") && planned.err.find('\n') == planned.err.size() - 1) << line << "\n"
                                                                                                         << planned.err;
  for (const std::string& part : wrong.says) {
    EXPECT_NE(planned.err.find(part), std::string::npos) << part << " is not in: " << planned.err;
  }
}

TEST(PlanUsage, BadOptions_AreOneLineThatNamesFieldValueAndRange) {
  const auto with = [](const std::string& option, const std::string& value) {
    Arguments arguments = kPath;
    for (std::size_t i = 0; i < arguments.size(); i += 2) {
      if (arguments[i] == option) {
        arguments[i + 1] = value;
        return arguments;
      }
    }
    return and_also(arguments, {option, value});
  };
  const std::vector<Wrong> cases = {
      {{}, {"--size"}},
      {{"--size", "1MiB"}, {"--rtt", "--distance", "--link-profile"}},
      {{"--size", "1MiB", "--rtt", "1ms"}, {"--rate"}},
      {{"--size", "1MiB", "--rtt", "1ms", "--rate", "1Gbit"}, {"--loss"}},
      {with("--distance", "3750km"), {"--distance", "--rtt"}},
      {with("--loss", "1.5"), {"loss 1.5", "from 0 to 0.999"}},
      {with("--loss", "-1e-3"), {"loss", "0.001", "from 0 to 0.999"}},
      {with("--loss", "nan"), {"loss nan", "from 0 to 0.999"}},
      {with("--loss", "some"), {"loss \"some\"", "number"}},
      {with("--burst", "0.5"), {"burst 0.5", "from 1 to 1e6"}},
      {with("--size", "0"), {"size 0", "at least 1 byte"}},
      {with("--size", "1MiB,banana"), {"banana"}},
      {with("--rtt", "25"), {"unit"}},
      {with("--rtt", "61min"), {"rtt", "60 min"}},
      {with("--rate", "1furlong"), {"1furlong"}},
      {with("--budget-overhead", "150%"), {"budget 150 %", "from 0 to 100 %"}},
      {with("--budget-overhead", "x"), {"budget \"x\""}},
      {with("--mtu", "1001"), {"mtu 1001", "multiple of 8 from 64 to 65488"}},
      {with("--chunk", "6000"), {"6000", "4096", "8192"}},
      {{"--distance", "10mi", "--rate", "1Gbit", "--loss", "0", "--size", "1"}, {"distance \"10mi\"", "km"}},
      {{"--distance", "1e9km", "--rate", "1Gbit", "--loss", "0", "--size", "1"}, {"distance", "from 0 to 1e8 km"}},
  };
  for (const Wrong& wrong : cases) expect_refused(wrong, 2);
}

TEST(PlanUsage, BadProfiles_AreOneLineThatNamesFileAndField) {
  const TemporaryDirectory directory;
  const std::string file = (directory / "profile.json").string();
  const Arguments arguments = {"--link-profile", file, "--size", "1MiB"};
  expect_refused({arguments, {file, "No such file"}}, 1);
  std::string text = kProfile;
  write_file(file, text.substr(0, text.size() / 2));
  expect_refused({arguments, {file, "breaks off"}}, 2);
  write_file(file, text.replace(text.find("\"reorder\""), 9, "\"recorder\""));
  expect_refused({arguments, {file, "unknown field payloads[0].recorder", "reorder"}}, 2);
  write_file(file, kProfile);
  expect_refused({and_also(arguments, {"--mtu", "2048"}), {"mtu 2048", "1024, 4096, 8192"}}, 2);
}

TEST(PlanHelp, HasExamplesAndWhatIsAssumed) {
  const Planned help = run_plan({"--help"});
  EXPECT_EQ(help.code, 0);
  for (const char* part : {"Examples:", "  sdr plan ", "Assumed:"}) {
    EXPECT_NE(help.out.find(part), std::string::npos) << part;
  }
}

}  // namespace
}  // namespace sdr::testing

// What a spec of a sweep may hold, that everything else is refused by name, and what its cells are.
#include "sdr/sweep_spec.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "sdr/sweep_cell.hpp"
#include "tests/tools/temporary_directory.hpp"

namespace sdr::cli {
namespace {

constexpr const char* kSpec = R"({
  "version": 1,
  "schemes": ["sr-nack", "ec-rs:16:4"],
  "sizes": ["64KiB", 131072],
  "rtts": ["5ms", 0.01],
  "rates": ["10Gbit", 1e9],
  "losses": [1e-3, "1%"],
  "bursts": [1, 4],
  "mtus": [4096],
  "chunks": ["1p", "16KiB"],
  "link": "jitter=10us",
  "runs": 3,
  "seed": 7
})";

std::string with(const std::string& old, const std::string& replacement) {
  std::string text = kSpec;
  const std::size_t at = text.find(old);
  EXPECT_NE(at, std::string::npos) << old;
  return text.replace(at, old.size(), replacement);
}

TEST(SweepSpec, OfAGoodFile_IsReadAndPrintsBackToAnEqualOne) {
  const Result<SweepSpec> spec = SweepSpec::parse(kSpec);
  ASSERT_TRUE(spec.ok()) << spec.error().message;
  EXPECT_EQ(spec->cells(), 128U);
  EXPECT_EQ(spec->rtts[1], std::chrono::milliseconds(10));
  EXPECT_EQ(spec->losses[1], 0.01);
  const Result<SweepSpec> again = SweepSpec::parse(spec->to_json().dump());
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(again->to_json(), spec->to_json());
  EXPECT_EQ(again->digest(), spec->digest());
  EXPECT_NE(SweepSpec::parse(with("\"seed\": 7", "\"seed\": 8"))->digest(), spec->digest());
}

TEST(SweepSpec, Cells_AreNumberedWithTheLastListFastest) {
  const SweepSpec spec = SweepSpec::parse(kSpec).value();
  EXPECT_EQ(spec.cell(0).chunk, "1p");
  EXPECT_EQ(spec.cell(1).chunk, "16384");
  EXPECT_EQ(spec.cell(2).burst, 4);
  EXPECT_EQ(spec.cell(4).loss, 0.01);
  EXPECT_EQ(spec.cell(8).rate.bits_per_second, 1e9);
  EXPECT_EQ(spec.cell(16).rtt, std::chrono::milliseconds(10));
  EXPECT_EQ(spec.cell(32).size, 128_KiB);
  EXPECT_EQ(spec.cell(64).scheme.text(), "ec-rs:16:4");
  std::set<std::uint64_t> seeds;
  for (std::uint64_t cell = 0; cell < spec.cells(); ++cell) seeds.insert(spec.trial(spec.cell(cell)).seed);
  EXPECT_EQ(seeds.size(), spec.cells());
}

TEST(SweepSpec, Distances_AreRttsByTheSpeedOfLight) {
  const Result<SweepSpec> spec = SweepSpec::parse(with(R"("rtts": ["5ms", 0.01])", R"("distances": ["3750km", 75])"));
  ASSERT_TRUE(spec.ok()) << spec.error().message;
  EXPECT_EQ(spec->rtts[0], std::chrono::milliseconds(25));
  EXPECT_EQ(spec->rtts[1], std::chrono::microseconds(500));
}

TEST(SweepSpec, WhatTheSenderKnows_IsPartOfEveryTrial) {
  const Result<SweepSpec> spec = SweepSpec::parse(with("\"runs\"", R"("known_loss": true, "warm_writes": 3, "runs")"));
  ASSERT_TRUE(spec.ok()) << spec.error().message;
  EXPECT_TRUE(spec->trial(spec->cell(5)).known_loss);
  EXPECT_EQ(spec->trial(spec->cell(5)).warm_writes, 3U);
  EXPECT_EQ(SweepSpec::parse(spec->to_json().dump())->digest(), spec->digest());
  EXPECT_NE(SweepSpec::parse(kSpec)->digest(), spec->digest());
}

TEST(SweepSpec, WhatIsWrong_IsRefusedByFieldValueAndRange) {
  struct Case {
    std::string text;
    std::vector<std::string> says;
  };
  const std::string theory = with("\"version\": 1", R"("version": 1, "kind": "theory")");
  const std::vector<Case> cases = {
      {"", {"breaks off"}},
      {"[]", {"the spec", "not an object"}},
      {"{}", {"version", "missing"}},
      {with("\"version\": 1", "\"version\": 2"), {"version 2 is not 1"}},
      {with("\"version\": 1", "\"version\": 1, \"colour\": 3"), {"unknown field colour", "schemes, sizes"}},
      {with("\"version\": 1", "\"version\": 1, \"kind\": \"guess\""), {"kind \"guess\"", "theory or sampling"}},
      {theory, {"link", "kind simulation"}},
      {with("\"losses\"", "\"loses\""), {"unknown field loses"}},
      {with(R"("losses": [1e-3, "1%"],)", ""), {"losses", "missing"}},
      {with("[1e-3, \"1%\"]", "0.1"), {"losses 0.1", "list of 1 to"}},
      {with("[1e-3, \"1%\"]", "[]"), {"losses []", "list of 1 to"}},
      {with("1e-3, ", "1.5, "), {"losses[0] 1.5", "share from 0 to 1"}},
      {with("\"1%\"", "\"101%\""), {"losses[1] \"101%\"", "share"}},
      {with("\"1%\"", "0.001"), {"losses[1] 0.001", "already"}},
      {with("131072", "0"), {"sizes[1] 0", "1 B to 1 TiB"}},
      {with("131072", "-5"), {"sizes[1] -5", "1 B to 1 TiB"}},
      {with("131072", "\"many\""), {"sizes[1] \"many\"", "1 B to 1 TiB"}},
      {with("131072", "65536"), {"sizes[1] 65536", "already"}},
      {with("0.01]", "\"25\"]"), {"rtts[1] \"25\"", "60min"}},
      {with("0.01]", "4000]"), {"rtts[1] 4000", "60min"}},
      {with("\"rtts\"", R"("distances": [75], "rtts")"), {"distances", "rtts"}},
      {with("1e9", "7"), {"rates[1] 7", "1kbit to 1000Tbit"}},
      {with("[1, 4]", "[0.5]"), {"bursts[0] 0.5", "1 to 1e6"}},
      {with("[4096]", "[100]"), {"mtus[0] 100", "multiple of 8"}},
      {with("16KiB", "5000"), {"chunks[1]", "5000", "4096"}},
      {with("\"1p\"", "true"), {"chunks[0] true", "number of packets"}},
      {with("16:4", "250:100"), {"schemes[1] \"ec-rs:250:100\"", "255"}},
      {with("ec-rs:16:4", "none"), {"schemes[1] \"none\"", "sr-rto"}},
      {with("jitter=10us", "loss=0.1"), {"link", "losses"}},
      {with("jitter=10us", "jitter=7"), {"link", "jitter=7"}},
      {with("\"runs\": 3", "\"runs\": 0"), {"runs 0", "from 1 to"}},
      {with("\"runs\": 3", "\"runs\": 2.5"), {"runs 2.5", "whole"}},
      {with("\"runs\": 3,", ""), {"runs", "missing"}},
      {with("\"seed\": 7", "\"seed\": -1"), {"seed -1", "from 0"}},
      {with("\"seed\"", R"("known_loss": 1, "seed")"), {"known_loss 1", "true or false"}},
      {with("\"seed\"", R"("warm_writes": 1001, "seed")"), {"warm_writes 1001", "to 1000"}},
      {theory.substr(0, theory.find("\"link\"")) + R"("known_loss": true})", {"known_loss", "kind simulation"}},
  };
  for (const Case& bad : cases) {
    const Result<SweepSpec> spec = SweepSpec::parse(bad.text);
    ASSERT_FALSE(spec.ok()) << bad.text;
    EXPECT_EQ(spec.error().code, ErrorCode::InvalidArgument);
    for (const std::string& part : bad.says) {
      EXPECT_NE(spec.error().message.find(part), std::string::npos) << part << " in: " << spec.error().message;
    }
  }
}

TEST(SweepSpec, CutAnywhere_IsRefused) {
  const std::string text = SweepSpec::parse(kSpec)->to_json().dump();
  for (std::size_t length = 0; length < text.size(); ++length) {
    EXPECT_FALSE(SweepSpec::parse(text.substr(0, length)).ok()) << length;
  }
}

TEST(SweepSpec, OfAFile_ErrorsNameIt) {
  const sdr::testing::TemporaryDirectory directory;
  const std::string path = (directory / "spec.json").string();
  EXPECT_EQ(SweepSpec::load(path).error().code, ErrorCode::System);
  sdr::testing::write_file(path, "{");
  EXPECT_NE(SweepSpec::load(path).error().message.find(path), std::string::npos);
}

TEST(SweepCell, OfEveryKind_IsTheSameForAnyNumberOfThreads) {
  const std::string base = R"("schemes":["sr-nack","ec-rs"],"sizes":["256KiB"],"rtts":["5ms"],"rates":["10Gbit"],
                              "losses":[1e-2])";
  for (const std::string kind :
       {R"("kind":"simulation","runs":5,)", R"("kind":"sampling","runs":50,)", R"("kind":"theory",)"}) {
    const Result<SweepSpec> spec = SweepSpec::parse("{\"version\":1," + kind + base + "}");
    ASSERT_TRUE(spec.ok()) << spec.error().message;
    for (std::uint64_t cell = 0; cell < spec->cells(); ++cell) {
      const Result<Json> one = compute(*spec, cell, 1);
      ASSERT_TRUE(one.ok()) << one.error().message;
      EXPECT_EQ(one->dump(), compute(*spec, cell, 3)->dump());
      EXPECT_GT((*one)["theory_ms"]["mean"], 5.0);
    }
  }
}

}  // namespace
}  // namespace sdr::cli

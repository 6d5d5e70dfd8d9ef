// What a link profile may hold, and that everything else is refused by name.
#include "sdr/link_profile.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/tools/temporary_directory.hpp"

namespace sdr::cli {
namespace {

constexpr const char* kProfile = R"({
  "version": 1,
  "rtt_ms": {"min": 24.9, "p50": 25.1, "p99": 26.5},
  "rate_bits_per_second": 9.4e9,
  "payloads": [
    {"bytes": 1024, "packets": 1000000, "loss": 1e-4, "mean_burst": 1.0, "reorder": 0},
    {"bytes": 8192, "packets": 250000, "loss": 1e-3, "mean_burst": 2.5, "reorder": 1e-5}
  ]
})";

std::string with(const std::string& old, const std::string& replacement) {
  std::string text = kProfile;
  const std::size_t at = text.find(old);
  EXPECT_NE(at, std::string::npos) << old;
  return text.replace(at, old.size(), replacement);
}

TEST(LinkProfile, OfAGoodFile_IsReadAndPrintsBackToAnEqualOne) {
  const Result<LinkProfile> profile = LinkProfile::parse(kProfile);
  ASSERT_TRUE(profile.ok()) << profile.error().message;
  EXPECT_EQ(profile->rtt_p50, std::chrono::microseconds(25100));
  EXPECT_EQ(profile->rate.bits_per_second, 9.4e9);
  ASSERT_EQ(profile->payloads.size(), 2U);
  EXPECT_EQ(profile->payloads[1].mean_burst, 2.5);
  const Result<LinkProfile> again = LinkProfile::parse(profile->to_json().dump());
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(*again, *profile);
}

TEST(LinkProfile, WhatIsWrong_IsRefusedByFieldValueAndRange) {
  struct Case {
    std::string text;
    std::vector<std::string> says;
  };
  const std::vector<Case> cases = {
      {"", {"breaks off"}},
      {"[]", {"the profile", "not an object"}},
      {"{}", {"version", "missing"}},
      {with("\"version\": 1", "\"version\": 2"), {"version 2 is not 1"}},
      {with("\"version\": 1", "\"version\": 1.0"), {"version 1.0", "whole"}},
      {with("\"version\": 1", "\"version\": \"1\""), {"version \"1\""}},
      {with("\"version\": 1,", "\"version\": 1, \"colour\": 3,"), {"unknown field colour", "payloads"}},
      {with("\"min\": 24.9", "\"mean\": 24.9"), {"unknown field rtt_ms.mean", "min, p50, p99"}},
      {with("\"min\": 24.9, ", ""), {"rtt_ms.min", "missing"}},
      {with("24.9", "-1"), {"rtt_ms.min -1", "from 0 to 3600000"}},
      {with("24.9", "\"24.9\""), {"rtt_ms.min \"24.9\"", "not a number"}},
      {with("25.1", "24"), {"rtt_ms.p50 24", "from 24.9"}},
      {with("26.5", "1e9"), {"rtt_ms.p99", "3600000"}},
      {with("9.4e9", "0"), {"rate_bits_per_second 0", "from 1000"}},
      {with("9.4e9", "null"), {"rate_bits_per_second null"}},
      {with("\"bytes\": 1024", "\"bytes\": 0"), {"payloads[0].bytes 0", "from 1 to 65535"}},
      {with("\"bytes\": 8192", "\"bytes\": 1024"), {"payloads[1].bytes 1024", "from 1025"}},
      {with("\"bytes\": 8192", "\"bytes\": 8192.5"), {"payloads[1].bytes 8192.5", "whole"}},
      {with("250000", "0"), {"payloads[1].packets 0", "from 1"}},
      {with("\"loss\": 1e-3", "\"loss\": 1.5"), {"payloads[1].loss 1.5", "from 0 to 1"}},
      {with("\"loss\": 1e-3", "\"loss\": true"), {"payloads[1].loss true"}},
      {with(", \"reorder\": 1e-5", ""), {"payloads[1].reorder", "missing"}},
      {with("\"reorder\": 1e-5", "\"reorder\": 1e-5, \"x\": 0"), {"unknown field payloads[1].x"}},
      {with("2.5", "0.5"), {"payloads[1].mean_burst 0.5", "from 1"}},
      {R"({"version":1,"rtt_ms":7,"rate_bits_per_second":1e9,"payloads":[1]})", {"rtt_ms 7", "not an object"}},
      {R"({"version":1,"rtt_ms":{"min":1,"p50":1,"p99":1},"rate_bits_per_second":1e9,"payloads":[]})",
       {"payloads []", "1 to 1000"}},
      {R"({"version":1,"rtt_ms":{"min":1,"p50":1,"p99":1},"rate_bits_per_second":1e9,"payloads":[1]})",
       {"payloads[0] 1", "not an object"}},
  };
  for (const Case& bad : cases) {
    const Result<LinkProfile> profile = LinkProfile::parse(bad.text);
    ASSERT_FALSE(profile.ok()) << bad.text;
    EXPECT_EQ(profile.error().code, ErrorCode::InvalidArgument);
    for (const std::string& part : bad.says) {
      EXPECT_NE(profile.error().message.find(part), std::string::npos) << part << " in: " << profile.error().message;
    }
  }
}

TEST(LinkProfile, CutAnywhere_IsRefused) {
  const std::string text = LinkProfile::parse(kProfile)->to_json().dump();
  for (std::size_t length = 0; length < text.size(); ++length) {
    EXPECT_FALSE(LinkProfile::parse(text.substr(0, length)).ok()) << length;
  }
}

TEST(LinkProfile, OfAFile_ErrorsNameIt) {
  const sdr::testing::TemporaryDirectory directory;
  const std::string path = (directory / "profile.json").string();
  EXPECT_EQ(LinkProfile::load(path).error().code, ErrorCode::System);
  EXPECT_EQ(LinkProfile::load(directory.string()).error().code, ErrorCode::System);
  sdr::testing::write_file(path, kProfile);
  EXPECT_TRUE(LinkProfile::load(path).ok());
  sdr::testing::write_file(path, std::string(kProfile).substr(0, 100));
  const Result<LinkProfile> cut = LinkProfile::load(path);
  ASSERT_FALSE(cut.ok());
  EXPECT_NE(cut.error().message.find(path), std::string::npos) << cut.error().message;
  sdr::testing::write_file(path, std::string(2 << 20, ' '));
  EXPECT_NE(LinkProfile::load(path).error().message.find("1 MiB"), std::string::npos);
}

TEST(LinkProfile, Payloads_AreFoundBySize) {
  const LinkProfile profile = LinkProfile::parse(kProfile).value();
  EXPECT_EQ(profile.payload_of(8_KiB)->loss, 1e-3);
  const Result<LinkProfile::Payload> none = profile.payload_of(4_KiB);
  ASSERT_FALSE(none.ok());
  EXPECT_NE(none.error().message.find("1024, 8192"), std::string::npos) << none.error().message;
  EXPECT_EQ(profile.payload_up_to(4_KiB).bytes, 1_KiB);
  EXPECT_EQ(profile.payload_up_to(9_KiB).bytes, 8_KiB);
  EXPECT_EQ(profile.payload_up_to(100_B).bytes, 1_KiB) << "all are larger";
}

}  // namespace
}  // namespace sdr::cli

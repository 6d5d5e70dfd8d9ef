// Text forms of the units: every suffix, both directions, and what must be refused.
#include "sdr/units.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace sdr {
namespace {

std::uint64_t test_seed() {
  if (const char* given = std::getenv("SDR_TEST_SEED")) return std::strtoull(given, nullptr, 0);
  return std::random_device{}();
}

void expect_bytes(const std::string& text, std::uint64_t expected) {
  const auto parsed = parse_bytes(text);
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  EXPECT_EQ(parsed->count, expected) << text;
}

void expect_bandwidth(const std::string& text, double expected) {
  const auto parsed = parse_bandwidth(text);
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  EXPECT_DOUBLE_EQ(parsed->bits_per_second, expected) << text;
}

void expect_duration(const std::string& text, std::int64_t nanoseconds) {
  const auto parsed = parse_duration(text);
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  EXPECT_EQ(parsed->count(), nanoseconds) << text;
}

TEST(ParseBytes, EverySuffix_MeansItsPower) {
  expect_bytes("0", 0);
  expect_bytes("4096", 4096);
  expect_bytes("7B", 7);
  expect_bytes("64KiB", 64ULL << 10);
  expect_bytes("64MiB", 64ULL << 20);
  expect_bytes("3GiB", 3ULL << 30);
  expect_bytes("2TiB", 2ULL << 40);
  expect_bytes("5kB", 5'000);
  expect_bytes("5KB", 5'000);
  expect_bytes("5MB", 5'000'000);
  expect_bytes("5GB", 5'000'000'000);
  expect_bytes("5TB", 5'000'000'000'000);
}

TEST(ParseBytes, FractionsAndExponents_RoundToTheNearestByte) {
  expect_bytes("1.5KiB", 1536);
  expect_bytes(".5KiB", 512);
  expect_bytes("1.1GB", 1'100'000'000);
  expect_bytes("1e6", 1'000'000);
  expect_bytes("1e-3MB", 1'000);
  expect_bytes("0.3KiB", 307);
  expect_bytes("64 MiB", 64ULL << 20);
}

TEST(ParseBytes, WholeNumbers_AreExactUpToTheLastOne) {
  expect_bytes("18446744073709551615", std::numeric_limits<std::uint64_t>::max());
  expect_bytes("9223372036854775809", (1ULL << 63) + 1);
  expect_bytes("16777215TiB", 16777215ULL << 40);
}

TEST(ParseBytes, TooMuch_IsRefusedWithTheLimit) {
  for (const char* text : {"18446744073709551616", "16777216TiB", "1e30", "2e7TiB", "99999999999999999999999"}) {
    const auto parsed = parse_bytes(text);
    ASSERT_FALSE(parsed.ok()) << text;
    EXPECT_EQ(parsed.error().code, ErrorCode::InvalidArgument);
    EXPECT_NE(parsed.error().message.find("2^64 - 1"), std::string::npos) << parsed.error().message;
  }
}

TEST(ParseBytes, Garbage_IsRefusedByNameWithWhatWasExpected) {
  for (const char* text : {"",      " ",    "B",     "KiB",  "-1",   "+1",    "-0",    "nan",  "inf",  "NaNKiB",
                           "1 ",    " 1",   "1KiBx", "1kib", "1KIB", "1b",    "1K",    "1M",   "1mb",  "0x10",
                           "1,5MB", "1..5", "1e",    "1e+",  ".",    "12 34", "1Gbit", "1\tB", "1e400"}) {
    const auto parsed = parse_bytes(text);
    ASSERT_FALSE(parsed.ok()) << text;
    EXPECT_EQ(parsed.error().code, ErrorCode::InvalidArgument);
    EXPECT_NE(parsed.error().message.find('"' + std::string(text) + '"'), std::string::npos);
    EXPECT_NE(parsed.error().message.find("expected"), std::string::npos) << parsed.error().message;
  }
}

TEST(ParseBandwidth, EverySuffix_MeansItsPowerOfThousand) {
  expect_bandwidth("0", 0);
  expect_bandwidth("9600", 9600);
  const std::vector<std::pair<std::string, double>> prefixes = {{"", 1},    {"k", 1e3}, {"K", 1e3},
                                                                {"M", 1e6}, {"G", 1e9}, {"T", 1e12}};
  for (const auto& [prefix, scale] : prefixes) {
    for (const char* unit : {"bit", "bit/s", "bitps", "b/s", "bps"}) {
      expect_bandwidth("25" + prefix + unit, 25 * scale);
      expect_bandwidth("25 " + prefix + unit, 25 * scale);
      expect_bandwidth("1.5" + prefix + unit, 1.5 * scale);
    }
  }
}

TEST(ParseBandwidth, Exponents_Work) {
  expect_bandwidth("1e-3Gbit", 1e6);
  expect_bandwidth("4e11", 4e11);
}

TEST(ParseBandwidth, BytesMilliAndGarbage_AreRefused) {
  for (const char* text : {"", "Gbit", "1GB", "1GB/s", "1Gb", "1mbit", "1Mbit/", "1Mbit/h", "1Kibit", "-1Gbit",
                           "nanbit", "inf", "1Gbit/s/s", "1 Gbit ", "1s"}) {
    const auto parsed = parse_bandwidth(text);
    ASSERT_FALSE(parsed.ok()) << text;
    EXPECT_EQ(parsed.error().code, ErrorCode::InvalidArgument);
  }
}

TEST(ParseBandwidth, OutsideWhatTimesCanBeComputedFor_IsRefused) {
  for (const char* text : {"0.5", "1e-12Gbit", "1e19", "1e7Tbit"}) EXPECT_FALSE(parse_bandwidth(text).ok()) << text;
}

TEST(ParseDuration, EverySuffix_MeansItsLength) {
  expect_duration("17ns", 17);
  expect_duration("17us", 17'000);
  expect_duration("17\xC2\xB5s", 17'000);
  expect_duration("25ms", 25'000'000);
  expect_duration("3s", 3'000'000'000);
  expect_duration("2min", 120'000'000'000);
  expect_duration("0s", 0);
}

TEST(ParseDuration, FractionsAndExponents_RoundToTheNearestNanosecond) {
  expect_duration("1.5s", 1'500'000'000);
  expect_duration("1e-3s", 1'000'000);
  expect_duration("0.0000000006s", 1);
  expect_duration("25.0 ms", 25'000'000);
}

TEST(ParseDuration, NoUnit_IsRefusedWithThatReason) {
  for (const char* text : {"0", "25", "1.5"}) {
    const auto parsed = parse_duration(text);
    ASSERT_FALSE(parsed.ok()) << text;
    EXPECT_NE(parsed.error().message.find("needs a unit"), std::string::npos) << parsed.error().message;
  }
}

TEST(ParseDuration, NegativeTooLongAndGarbage_AreRefused) {
  for (const char* text : {"", "s", "-1s", "-0ms", "nans", "infs", "1S", "1MS", "1m", "1h", "1sec", "1 s ", "1e"}) {
    EXPECT_FALSE(parse_duration(text).ok()) << text;
  }
  expect_duration("9223372036854775807ns", std::numeric_limits<std::int64_t>::max());
  for (const char* text : {"9223372036854775808ns", "9223372037s", "1e300min", "18446744073709551615min"}) {
    EXPECT_FALSE(parse_duration(text).ok()) << text;
  }
}

TEST(FormatUnits, KnownValues_ReadLikeAPersonWroteThem) {
  EXPECT_EQ(to_string(Bytes{0}), "0 B");
  EXPECT_EQ(to_string(Bytes{1023}), "1023 B");
  EXPECT_EQ(to_string(64_MiB), "64 MiB");
  EXPECT_EQ(to_string(8192_KiB), "8 MiB");
  EXPECT_EQ(to_string(Bytes{1536}), "1.50 KiB");
  EXPECT_EQ(to_string(Bytes{(1ULL << 20) - 1}), "1.00 MiB");
  EXPECT_EQ(to_string(Bandwidth{}), "not limited");
  EXPECT_EQ(to_string(Bandwidth{1e9}), "1.00 Gbit/s");
  EXPECT_EQ(to_string(Bandwidth{400e6}), "400 Mbit/s");
  EXPECT_EQ(to_string(Bandwidth{999.96e6}), "1.00 Gbit/s");
  EXPECT_EQ(to_string(Bandwidth{12.34e3}), "12.3 Kbit/s");
  EXPECT_EQ(to_string(Duration(0)), "0 ns");
  EXPECT_EQ(to_string(Duration(999)), "999 ns");
  EXPECT_EQ(to_string(std::chrono::milliseconds(25)), "25.0 ms");
  EXPECT_EQ(to_string(std::chrono::milliseconds(1500)), "1.50 s");
  EXPECT_EQ(to_string(Duration(-2'500'000)), "-2.50 ms");
  EXPECT_EQ(to_string(std::chrono::minutes(2)), "2.00 min");
}

TEST(FormatUnits, AnyValue_IsReadBackToThreeDigits) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE("SDR_TEST_SEED=" + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (int i = 0; i < 20'000; ++i) {
    // 44 bits at most: beyond, TiB runs to more than four digits, and what is checked here does not change.
    const std::uint64_t value = random() >> (20 + random() % 44);
    const double wanted = static_cast<double>(value);
    const double tolerance = wanted * 0.00501 + 1e-9;

    const auto bytes = parse_bytes(to_string(Bytes{value}));
    ASSERT_TRUE(bytes.ok()) << bytes.error().message;
    EXPECT_NEAR(static_cast<double>(bytes->count), wanted, tolerance) << to_string(Bytes{value});

    const auto duration = parse_duration(to_string(Duration(static_cast<std::int64_t>(value))));
    ASSERT_TRUE(duration.ok()) << duration.error().message;
    EXPECT_NEAR(static_cast<double>(duration->count()), wanted, tolerance);

    if (value == 0) continue;
    const auto bandwidth = parse_bandwidth(to_string(Bandwidth{wanted}));
    ASSERT_TRUE(bandwidth.ok()) << bandwidth.error().message;
    EXPECT_NEAR(bandwidth->bits_per_second, wanted, tolerance);
  }
}

}  // namespace
}  // namespace sdr

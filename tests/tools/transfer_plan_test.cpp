// Ranges, the steps both ends walk, and the comparison of what a receiver holds with the source.
#include "sdr/transfer_plan.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "sdr/transfer_compare.hpp"
#include "tests/tools/temporary_directory.hpp"

namespace sdr::cli {
namespace {

std::uint64_t test_seed() {
  const char* given = std::getenv("SDR_TEST_SEED");
  return given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device{}();
}

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

TEST(Ranges, RandomAdditions_AgreeWithOneBitAByte) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE("SDR_TEST_SEED=" + std::to_string(seed));
  std::mt19937_64 random(seed);
  constexpr std::uint64_t kSize = 200;
  for (int run = 0; run < 200; ++run) {
    Ranges ranges;
    std::vector<bool> bits(kSize);
    for (int i = 0; i < 12; ++i) {
      const std::uint64_t offset = random() % kSize;
      const std::uint64_t length = random() % std::min<std::uint64_t>(30, kSize - offset + 1);
      ranges.add({offset, length});
      for (std::uint64_t b = offset; b < offset + length; ++b) bits[b] = true;
      Ranges expected;
      for (std::uint64_t b = 0; b < kSize; ++b) {
        if (bits[b]) expected.add({b, 1});
      }
      ASSERT_EQ(ranges, expected);
    }
    const Ranges rest = ranges.complement(kSize);
    EXPECT_EQ(rest.total() + ranges.total(), kSize);
    EXPECT_EQ(rest.complement(kSize), ranges);
    const auto first_hole = std::find(bits.begin(), bits.end(), false);
    EXPECT_EQ(ranges.prefix(), static_cast<std::uint64_t>(first_hole - bits.begin()));
    const Ranges wide = ranges.widened(16, kSize);
    for (const Range& r : wide) {
      EXPECT_EQ(r.offset % 16, 0U);
      EXPECT_TRUE(r.end() % 16 == 0 || r.end() == kSize);
    }
    EXPECT_EQ(wide.complement(kSize).total() + wide.total(), kSize);
  }
}

TEST(StepCursor, Steps_CoverWhatIsMissingAndNothingElse) {
  const std::vector<FileEntry> entries = {
      {.name = "d", .directory = true}, {.name = "d/new", .size = 2 * kBlock + 5}, {.name = "d/empty"},
      {.name = "d/held", .size = 100},  {.name = "d/partly", .size = 3 * kBlock},  {.name = "e", .directory = true}};
  std::map<std::uint32_t, Ranges> missing;
  missing[3] = {};
  missing[4].add({10, 20});
  missing[4].add({kBlock - 5, kBlock});
  std::vector<std::tuple<std::uint32_t, std::uint64_t, std::uint64_t, bool>> steps;
  StepCursor cursor(entries, missing);
  for (auto step = cursor.peek(); step; step = cursor.peek()) {
    steps.emplace_back(step->file, step->range.offset, step->range.length, step->last);
    cursor.pop();
  }
  const decltype(steps) expected = {
      {1, 0, kBlock, false}, {1, kBlock, kBlock, false}, {1, 2 * kBlock, 5, true},  {2, 0, 0, true},
      {3, 0, 0, true},       {4, 10, 20, false},         {4, kBlock - 5, 5, false}, {4, kBlock, kBlock - 5, true}};
  EXPECT_EQ(steps, expected);
}

TEST(StepCursor, NoFiles_NoSteps) {
  const std::vector<FileEntry> entries = {{.name = "d", .directory = true}};
  const std::map<std::uint32_t, Ranges> missing;
  EXPECT_FALSE(StepCursor(entries, missing).peek().has_value());
}

TEST(TransferCompare, Holes_CostNoMoreThanTheirUnits) {
  const std::string source = sdr::testing::random_bytes(3 * kCoarseUnit + 1000, 1);
  std::string held = source;
  held[kCoarseUnit + 5 * kFineUnit] ^= 1;
  held[held.size() - 1] ^= 1;
  const std::vector<FileEntry> entries = {{.name = "f", .size = source.size()}};

  const auto compare = [&](const Ranges& ranges, std::size_t unit) {
    Ranges equal;
    for (const Range& range : pages_of(ranges, unit)) {
      const Json wire = Json::parse(to_json(sum_page(0, bytes_of(held), range, unit)).dump());
      const Result<SumPage> page = parse_sum_page(wire, entries);
      EXPECT_TRUE(page.ok());
      for (const Range& r : equal_units(*page, bytes_of(source))) equal.add(r);
    }
    return equal;
  };
  Ranges equal = compare(Ranges::whole(source.size()), kCoarseUnit);
  EXPECT_EQ(equal.complement(source.size()).total(), kCoarseUnit + 1000);
  for (const Range& r : compare(equal.complement(source.size()), kFineUnit)) equal.add(r);
  EXPECT_EQ(equal.complement(source.size()).total(), kFineUnit + 1000);
  for (const Range& r : compare(equal.complement(source.size()).widened(kFinestUnit, source.size()), kFinestUnit))
    equal.add(r);
  EXPECT_EQ(equal.complement(source.size()).total(), kFinestUnit + 1000 % kFinestUnit);
}

TEST(TransferCompare, WhatNeverArrived_IsNotAskedAboutAgain) {
  const std::string source = sdr::testing::random_bytes(3 * kFineUnit + 100, 4);
  std::string held(source.size(), '\0');
  held.replace(kFineUnit, 700, source, kFineUnit, 700);
  const SumPage page = sum_page(0, bytes_of(held), {0, held.size()}, kFineUnit);
  const Ranges differing = differing_units(page, equal_units(page, bytes_of(source)), source.size());
  EXPECT_EQ(differing.total(), kFineUnit + 100) << "the short unit at the end is asked about, whatever is in it";
  EXPECT_EQ(differing.begin()->offset, kFineUnit);
}

TEST(TransferCompare, ShorterSource_IsEqualOnlyAsFarAsItGoes) {
  const std::string source = sdr::testing::random_bytes(kFineUnit + 10, 2);
  const std::string held = source + "more";
  const SumPage page = sum_page(0, bytes_of(held), {0, held.size()}, kFineUnit);
  EXPECT_EQ(equal_units(page, bytes_of(source)).total(), kFineUnit);
}

TEST(TransferCompare, MalformedPages_AreRefused) {
  const std::vector<FileEntry> entries = {{.name = "f", .size = 2 * kCoarseUnit}, {.name = "empty"}};
  const Json good = {{"file", 0U}, {"offset", kCoarseUnit}, {"unit", kCoarseUnit}, {"sums", "0123456789abcdef"}};
  EXPECT_TRUE(parse_sum_page(good, entries).ok());
  for (const auto& [field, value] :
       std::vector<std::pair<std::string, Json>>{{"file", 2U},
                                                 {"file", 1U},
                                                 {"file", -1},
                                                 {"offset", 1U},
                                                 {"offset", 2 * kCoarseUnit},
                                                 {"offset", 18446744073709551615ULL},
                                                 {"unit", 0U},
                                                 {"unit", 4096U},
                                                 {"sums", "0123456789abcde"},
                                                 {"sums", "0123456789abcdeg"},
                                                 {"sums", "0123456789abcdef0123456789abcdef"},
                                                 {"sums", 5}}) {
    Json bad = good;
    bad[field] = value;
    EXPECT_FALSE(parse_sum_page(bad, entries).ok()) << bad;
  }
}

TEST(TransferCompare, RangesOutOfOrderOrOutside_AreRefused) {
  const auto parse = [](const char* text) { return parse_ranges(Json::parse(text), 100).ok(); };
  EXPECT_TRUE(parse("[]"));
  EXPECT_TRUE(parse("[[0,10],[10,5],[90,10]]"));
  for (const char* text : {"5", "[5]", "[[0]]", "[[0,101]]", "[[101,0]]", "[[10,5],[0,5]]", "[[0,10],[9,2]]",
                           "[[-1,5]]", "[[0,18446744073709551615]]"}) {
    EXPECT_FALSE(parse(text)) << text;
  }
}

}  // namespace
}  // namespace sdr::cli

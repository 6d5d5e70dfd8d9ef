// What sdr plan takes from a report of sdr bench coding, and that what is missing or odd is refused by name.
#include "sdr/bench_record.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "sdr/bench_coding.hpp"
#include "tests/tools/temporary_directory.hpp"

namespace sdr::cli {
namespace {

constexpr const char* kReport = R"({
  "cpu": "any", "threads": 1, "memcpy_GBps": 13,
  "rs_32_8": {"encode_GBps": 10, "decode_GBps": 9.5, "isal_encode_GBps": 5},
  "xor_32_8": {"encode_GBps": 20, "decode_GBps": 20, "isal_encode_GBps": 20},
  "codes": [
    {"code": "ec-rs:32:8", "k": 32, "m": 8, "encode_GBps": 10},
    {"code": "ec-xor:32:4", "k": 32, "m": 4, "encode_GBps": 99},
    {"code": "ec-rs:4:2", "k": 4, "m": 2, "encode_GBps": 25},
    {"code": "ec-rs:32:2", "k": 32, "m": 2, "encode_GBps": 20},
    {"code": "ec-rs:32:16", "k": 32, "m": 16, "encode_GBps": 5}
  ]
})";

std::string with(const std::string& old, const std::string& replacement) {
  std::string text = kReport;
  const std::size_t at = text.find(old);
  EXPECT_NE(at, std::string::npos) << old;
  return text.replace(at, old.size(), replacement);
}

double gigabytes(const BenchRecord& record, model::SchemeKind kind, unsigned k, unsigned m) {
  return record.encode({.kind = kind, .data_chunks = k, .parity_chunks = m}).bits_per_second / 8e9;
}

TEST(BenchRecord, OfAReport_SaysHowFastACodeIs) {
  const Result<BenchRecord> record = BenchRecord::parse(kReport);
  ASSERT_TRUE(record.ok()) << record.error().message;
  using enum model::SchemeKind;
  EXPECT_NEAR(gigabytes(*record, EcRs, 32, 8), 10, 1e-9);
  EXPECT_NEAR(gigabytes(*record, EcRs, 223, 8), 10, 1e-9);
  EXPECT_NEAR(gigabytes(*record, EcXor, 32, 4), 20, 1e-9);
  EXPECT_NEAR(gigabytes(*record, EcRs, 32, 2), 20, 1e-9) << "the slower of two";
  EXPECT_NEAR(gigabytes(*record, EcRs, 32, 1), 20, 1e-9) << "not faster than what was measured";
  EXPECT_NEAR(gigabytes(*record, EcRs, 32, 5), 1 / (0.5 / 20 + 0.5 / 10), 1e-9) << "half way between 2 and 8";
  EXPECT_NEAR(gigabytes(*record, EcRs, 32, 12), 1 / (0.5 / 10 + 0.5 / 5), 1e-9);
  EXPECT_NEAR(gigabytes(*record, EcRs, 32, 32), 2.5, 1e-9) << "in proportion beyond the most parity";
  EXPECT_NEAR(gigabytes(*record, Adaptive, 239, 16), 5, 1e-9);
}

TEST(BenchRecord, OfTheLeastThatAReportHolds_WillDo) {
  const Result<BenchRecord> record =
      BenchRecord::parse(R"({"rs_32_8": {"encode_GBps": 8}, "xor_32_8": {"encode_GBps": 16}})");
  ASSERT_TRUE(record.ok()) << record.error().message;
  EXPECT_NEAR(gigabytes(*record, model::SchemeKind::EcRs, 32, 16), 4, 1e-9);
}

TEST(BenchRecord, WhatIsMissingOrOdd_IsRefusedByFieldValueAndRange) {
  struct Case {
    std::string text;
    std::vector<std::string> says;
  };
  const std::vector<Case> cases = {
      {"", {"breaks off"}},
      {"[1]", {"the report [1]", "not an object"}},
      {"{}", {"rs_32_8.encode_GBps", "missing"}},
      {with("\"encode_GBps\": 10, ", ""), {"rs_32_8.encode_GBps", "missing"}},
      {with("\"xor_32_8\": {\"encode_GBps\": 20", "\"xor_32_8\": {\"speed\": 20"), {"xor_32_8.encode_GBps", "missing"}},
      {with("\"encode_GBps\": 10, ", "\"encode_GBps\": \"10\", "), {"rs_32_8.encode_GBps \"10\"", "not a number"}},
      {with("\"encode_GBps\": 10, ", "\"encode_GBps\": 0, "), {"rs_32_8.encode_GBps 0", "from 1e-06 to 100000"}},
      {with("\"encode_GBps\": 10, ", "\"encode_GBps\": null, "), {"rs_32_8.encode_GBps null"}},
      {with("\"rs_32_8\": {", "\"rs_32_8\": 3, \"other\": {"), {"rs_32_8.encode_GBps", "missing"}},
      {with("\"threads\": 1", "\"threads\": 2"), {"threads 2", "from 1 to 1"}},
      {with("\"encode_GBps\": 25", "\"encode_GBps\": -1"), {"codes.2.encode_GBps -1"}},
      {with("\"m\": 16", "\"m\": 400"), {"codes.4.m 400", "from 1 to 254"}},
      {with("{\"code\": \"ec-rs:4:2\", ", "{"), {"codes.2.code"}},
      {R"({"rs_32_8": {"encode_GBps": 8}, "xor_32_8": {"encode_GBps": 8}, "codes": 7})", {"codes 7", "not an array"}},
  };
  for (const Case& c : cases) {
    const Result<BenchRecord> record = BenchRecord::parse(c.text);
    ASSERT_FALSE(record.ok()) << c.text;
    EXPECT_EQ(record.error().code, ErrorCode::InvalidArgument);
    for (const std::string& part : c.says)
      EXPECT_NE(record.error().message.find(part), std::string::npos) << record.error().message;
  }
}

TEST(BenchRecord, FilesThatCannotBeTaken_AreNamed) {
  const testing::TemporaryDirectory directory;
  const std::string path = (directory / "bench.json").string();
  Result<BenchRecord> record = BenchRecord::load(path);
  ASSERT_FALSE(record.ok());
  EXPECT_NE(record.error().message.find(path), std::string::npos) << record.error().message;
  std::ofstream(path) << "{}";
  record = BenchRecord::load(path);
  ASSERT_FALSE(record.ok());
  EXPECT_NE(record.error().message.find(path), std::string::npos) << record.error().message;
  EXPECT_NE(record.error().message.find("rs_32_8.encode_GBps"), std::string::npos) << record.error().message;
}

// The report itself, from a short measurement: it has what users were told, and is read back.
TEST(BenchCoding, Report_HoldsWhatPlansRead) {
  BenchCodingOptions options;
  options.speed.data = Bytes{4 << 20};
  options.speed.chunk = Bytes{4096};
  options.speed.runs = 1;
  options.speed.each = Duration::zero();
  options.speed.shapes = {{coding::CodeKind::ReedSolomon, 16, 4}};
  options.tail = false;
  const Result<Json> report = bench_coding(options);
  ASSERT_TRUE(report.ok()) << report.error().message;
  EXPECT_GT((*report)["memcpy_GBps"].get<double>(), 0);
  for (const char* code : {"rs_32_8", "xor_32_8"})
    for (const char* field : {"encode_GBps", "decode_GBps", "isal_encode_GBps"})
      EXPECT_GT((*report)[code][field].get<double>(), 0) << code << "." << field;
  EXPECT_EQ((*report)["codes"].size(), 3U);
  const Result<BenchRecord> record = BenchRecord::parse(report->dump());
  ASSERT_TRUE(record.ok()) << record.error().message;
  EXPECT_NEAR(gigabytes(*record, model::SchemeKind::EcRs, 32, 8), (*report)["rs_32_8"]["encode_GBps"].get<double>(),
              1e-6);
}

TEST(BenchCoding, SizesThatDoNotFit_AreRefusedByValueAndLimit) {
  BenchCodingOptions options;
  options.tail = false;
  options.speed.data = Bytes{1 << 20};
  Result<Json> report = bench_coding(options);
  ASSERT_FALSE(report.ok());
  EXPECT_NE(report.error().message.find("data 1 MiB"), std::string::npos) << report.error().message;
  options.speed.data = Bytes{16 << 20};
  options.speed.chunk = Bytes{100};
  report = bench_coding(options);
  ASSERT_FALSE(report.ok());
  EXPECT_NE(report.error().message.find("chunk 100"), std::string::npos) << report.error().message;
}

}  // namespace
}  // namespace sdr::cli

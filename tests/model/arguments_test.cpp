// Bad input is refused with the field, the value and the range, before anything is computed.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "model/allreduce.hpp"
#include "tests/model/paths.hpp"

namespace sdr::model::testing {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

template <typename T>
void expect_refused(const Result<T>& result, const std::string& field, const std::string& value,
                    const std::string& range) {
  ASSERT_FALSE(result.ok()) << field << " " << value;
  EXPECT_EQ(result.error().code, ErrorCode::InvalidArgument);
  for (const std::string& part : {field, value, range}) {
    EXPECT_NE(result.error().message.find(part), std::string::npos) << part << " in: " << result.error().message;
  }
}

TEST(PathArguments, OutOfRange_AreRefused) {
  struct Case {
    std::function<void(PathSpec&)> spoil;
    std::string field, value, range;
  };
  const std::vector<Case> cases = {
      {[](PathSpec& path) { path.loss = 1.5; }, "loss", "1.5", "from 0 to 0.999"},
      {[](PathSpec& path) { path.loss = 1; }, "loss", "1", "from 0 to 0.999"},
      {[](PathSpec& path) { path.loss = -1e-3; }, "loss", "-0.001", "from 0 to 0.999"},
      {[](PathSpec& path) { path.loss = kNan; }, "loss", "nan", "from 0 to 0.999"},
      {[](PathSpec& path) { path.burst = 0.5; }, "burst", "0.5", "from 1 to 1e6"},
      {[](PathSpec& path) { path.rate = {}; }, "rate", "0", "from 1 kbit/s"},
      {[](PathSpec& path) { path.rate = {kNan}; }, "rate", "nan", "from 1 kbit/s"},
      {[](PathSpec& path) { path.rtt = Duration(-5); }, "rtt", "-5", "from 0 to 60 min"},
      {[](PathSpec& path) { path.rtt = std::chrono::hours(2); }, "rtt", "7200000000000", "from 0 to 60 min"},
      {[](PathSpec& path) { path.chunk = 0_B; }, "chunk", "0", "from 1 byte"},
      {[](PathSpec& path) { path.packet = 0_B; }, "packet", "0", "from 1 byte"},
      {[](PathSpec& path) { path.packet = 8_KiB; }, "packet", "8192", "to the chunk, 4096 bytes"},
      {[](PathSpec& path) { path.packet = 1_B, path.loss = 0.5; }, "loss 0.5", "4096 packets", "more than 0.999"},
      {[](PathSpec& path) { path.rate = {1e3}; }, "size", "1073741824 bytes takes 8589935 s", "more than 30 days"},
  };
  for (const Case& bad : cases) {
    PathSpec path = paper_path(1e-3);
    bad.spoil(path);
    expect_refused(Transfer::create(path, 1_GiB), bad.field, bad.value, bad.range);
  }
}

TEST(SizeArguments, OutOfRange_AreRefused) {
  expect_refused(Transfer::create(paper_path(0), 0_B), "size", "0 bytes", "at least 1 byte");
  PathSpec path = paper_path(0);
  path.chunk = path.packet = 1_B;
  path.rate = {1e15};
  expect_refused(Transfer::create(path, Bytes{std::uint64_t{1} << 41}), "size", "2199023255552", "more than 2^40");
  expect_refused(Transfer::create(path, Bytes{std::numeric_limits<std::uint64_t>::max()}), "size",
                 "18446744073709551615", "more than 2^40");
}

TEST(SchemeArguments, OutOfRange_AreRefused) {
  const auto shape = [](SchemeKind kind, unsigned k, unsigned m) {
    SchemeSpec scheme = scheme_of(kind);
    scheme.data_chunks = k;
    scheme.parity_chunks = m;
    return check(scheme);
  };
  expect_refused(shape(SchemeKind::EcRs, 0, 8), "k", "0", "from 1 to 254");
  expect_refused(shape(SchemeKind::EcRs, 32, 0), "m", "0", "from 1 to 254");
  expect_refused(shape(SchemeKind::EcRs, 200, 56), "k + m", "200 + 56", "more than 255");
  expect_refused(shape(SchemeKind::EcRs, 4'000'000'000U, 4'000'000'000U), "k", "4000000000", "from 1 to 254");
  expect_refused(shape(SchemeKind::EcXor, 4, 8), "m", "8", "from 1 to k = 4");
  expect_refused(shape(SchemeKind::EcXor, 32, 7), "k", "32", "multiple of m = 7");
  EXPECT_TRUE(shape(SchemeKind::EcRs, 247, 8).ok());
  EXPECT_TRUE(shape(SchemeKind::EcXor, 4, 4).ok());
  EXPECT_TRUE(shape(SchemeKind::SrRto, 0, 0).ok()) << "nobody asks for them";
  SchemeSpec scheme;
  scheme.rto_rtts = kNan;
  expect_refused(check(scheme), "rto", "nan", "from 0 to 100");
  scheme = {};
  scheme.fallback_beta = -1;
  expect_refused(check(scheme), "beta", "-1", "from 0 to 100");
}

TEST(SchemeArguments, OutOfRange_AreRefusedByAllThatTakeThem) {
  const Transfer transfer = transfer_of(1_MiB, 1e-3);
  SchemeSpec bad = scheme_of(SchemeKind::EcRs);
  bad.data_chunks = 0;
  EXPECT_FALSE(CompletionTime::of(transfer, bad).ok());
  EXPECT_FALSE(paper_mean(transfer, bad).ok());
  EXPECT_FALSE(samples(transfer, bad, {}).ok());
  EXPECT_FALSE(Allreduce::create(paper_path(0), bad, {Topology::Ring, 4, 1_MiB, {}}).ok());
  bad.kind = SchemeKind::SrNack;
  EXPECT_TRUE(samples(transfer, bad, {}).ok()) << "selective repeat has no k";
}

TEST(SampleArguments, OutOfRange_AreRefused) {
  const Transfer transfer = transfer_of(1_MiB, 1e-3);
  expect_refused(samples(transfer, {}, {0, 1, 1}), "samples", "0", "from 1 to 2^30");
  expect_refused(samples(transfer, {}, {10, 1, 0}), "threads", "0", "from 1 to 1024");
  expect_refused(samples(transfer, {}, {})->percentile(1.0), "percentile", "1", "between 0 and 1");
  expect_refused(time_of(1_MiB, 1e-3, SchemeKind::SrRto).percentile(99.9), "percentile", "99.9", "between 0 and 1");
  expect_refused(time_of(1_MiB, 1e-3, SchemeKind::SrRto).percentile(kNan), "percentile", "nan", "between 0 and 1");
}

TEST(AllreduceArguments, OutOfRange_AreRefused) {
  const auto create = [](AllreduceSpec spec) { return Allreduce::create(paper_path(0), {}, spec); };
  expect_refused(create({Topology::Ring, 1, 1_MiB, {}}), "datacenters", "1", "from 2 to 4096");
  expect_refused(create({Topology::Ring, 4, 0_B, {}}), "buffer", "0", "at least 1 byte");
  expect_refused(create({Topology::Tree, 4, 1_MiB, Duration(-1)}), "compute", "-1", "from 0 to 60 min");
}

TEST(DistanceArguments, OutOfRange_AreRefused) {
  expect_refused(rtt_over({-1}), "distance", "-1", "from 0 to 1e8 km");
  EXPECT_EQ(rtt_over({3750}).value(), std::chrono::milliseconds(25));
}

}  // namespace
}  // namespace sdr::model::testing

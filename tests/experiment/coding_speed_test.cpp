// How coding is measured: by turns, with the parity that a loss asks for. What it comes to is the machine's.
#include "experiment/coding_speed.hpp"

#include <gtest/gtest.h>

#include <string>

#include "experiment/race.hpp"

namespace sdr::experiment {
namespace {

TEST(Race, Contestants_TakeTurnsAfterOnePassThatDoesNotCount) {
  std::string order;
  const std::vector<double> seconds =
      race({[&] { order += 'a'; }, [&] { order += 'b'; }, [&] { order += 'c'; }}, 2, Duration::zero());
  EXPECT_EQ(order, "abcabcabc");
  EXPECT_EQ(seconds.size(), 3U);
  for (const double of_one : seconds) EXPECT_GE(of_one, 0);
}

TEST(TailCost, HasTheCodeThatTheLossAsksFor) {
  TailOptions options;
  options.runs = 1;
  options.each = Duration::zero();
  unsigned before = 0;
  for (const double loss : {1e-4, 1e-3, 1e-2}) {
    const Result<TailCost> cost = measure_tail_cost({1e9}, loss, options);
    ASSERT_TRUE(cost.ok()) << cost.error().message;
    EXPECT_GT(cost->m, before) << "more loss, more parity";
    before = cost->m;
    EXPECT_LE(cost->k + cost->m, coding::kMaxShards);
    // 25 ms and three sixteenths at 1 Gbit/s are 906 chunks of 4 KiB.
    EXPECT_GE(cost->k * cost->submessages, 906U);
    EXPECT_LT((cost->k - 1) * cost->submessages, 906U);
    EXPECT_GT(cost->encode, 0);
    EXPECT_NEAR(cost->encode_cores, 1e9 / 8e9 / cost->encode, 1e-9);
  }
  EXPECT_FALSE(measure_tail_cost({1e9}, 0, options).ok());
}

TEST(CodingSpeed, OnTwoThreads_MeasuresTheSameCodes) {
  CodingSpeedOptions options;
  options.data = Bytes{4 << 20};
  options.chunk = Bytes{4096};
  options.threads = 2;
  options.runs = 1;
  options.each = Duration::zero();
  options.shapes = {{coding::CodeKind::ReedSolomon, 239, 16}, {coding::CodeKind::Xor, 8, 2}};
  const Result<CodingSpeed> speed = measure_coding_speed(options);
  ASSERT_TRUE(speed.ok()) << speed.error().message;
  ASSERT_EQ(speed->codes.size(), 2U);
  for (const CodeSpeed& code : speed->codes) {
    EXPECT_GT(code.encode, 0);
    EXPECT_GT(code.decode, 0);
    EXPECT_GT(code.isal_encode, 0);
  }
}

TEST(CodingSpeed, WhatCannotBeMeasured_IsRefusedByName) {
  CodingSpeedOptions options;
  options.shapes = {{coding::CodeKind::ReedSolomon, 4, 8}};
  Result<CodingSpeed> speed = measure_coding_speed(options);
  ASSERT_FALSE(speed.ok());
  EXPECT_NE(speed.error().message.find("Reed-Solomon"), std::string::npos) << speed.error().message;
  options.shapes = {};
  options.threads = 0;
  speed = measure_coding_speed(options);
  ASSERT_FALSE(speed.ok());
  EXPECT_NE(speed.error().message.find("threads 0"), std::string::npos) << speed.error().message;
}

}  // namespace
}  // namespace sdr::experiment

// What the theory of the adaptive scheme says of Writes larger than the protocol's own tests simulate, and that its
// Monte Carlo agrees.
#include <gtest/gtest.h>

#include <numeric>

#include "tests/model/paths.hpp"

namespace sdr::model {
namespace {

using testing::mean_of;
using testing::p999_of;
using testing::scheme_of;
using testing::transfer_of;

double lossless(Bytes size) {
  return mean_of(size, 0, SchemeKind::Adaptive);
}

TEST(AdaptiveTheory, OfHugeWrites_TakesHardlyMoreThanTheLosslessTime) {
  for (const std::uint64_t gib : {2U, 4U, 8U, 16U, 32U})
    for (const double loss : {1e-6, 1e-5, 1e-4, 1e-3, 1e-2}) {
      SCOPED_TRACE(std::to_string(gib) + " GiB, " + std::to_string(loss));
      EXPECT_LE(mean_of(1_GiB * gib, loss, SchemeKind::Adaptive), 1.03 * lossless(1_GiB * gib));
      EXPECT_LE(p999_of(1_GiB * gib, loss, SchemeKind::Adaptive), 1.05 * lossless(1_GiB * gib));
    }
}

TEST(AdaptiveTheory, OfHugeWritesAtFivePercent_StaysNearTheFloor) {
  for (const std::uint64_t gib : {2U, 4U, 8U, 16U, 32U}) {
    SCOPED_TRACE(std::to_string(gib) + " GiB");
    const double floor = to_seconds(transfer_of(1_GiB * gib, 5e-2).floor());
    EXPECT_LE(mean_of(1_GiB * gib, 5e-2, SchemeKind::Adaptive), 1.06 * floor);
    EXPECT_LE(p999_of(1_GiB * gib, 5e-2, SchemeKind::Adaptive), 1.10 * floor);
  }
}

TEST(AdaptiveTheory, AgreesWithItsMonteCarlo_WhereRepairsAreCoveredByCopiesAndByParity) {
  for (const double loss : {1e-5, 1e-3, 1e-2, 5e-2})
    for (const Bytes size : {256_MiB, 2_GiB, 8_GiB}) {
      SCOPED_TRACE(to_string(size) + ", " + std::to_string(loss));
      const auto drawn = samples(transfer_of(size, loss), scheme_of(SchemeKind::Adaptive), {.count = 300, .seed = 3});
      ASSERT_TRUE(drawn.ok());
      double mean = 0;
      for (const Duration time : drawn->times) mean += to_seconds(time) / static_cast<double>(drawn->times.size());
      EXPECT_NEAR(mean, mean_of(size, loss, SchemeKind::Adaptive), 0.002 * mean);
    }
}

}  // namespace
}  // namespace sdr::model

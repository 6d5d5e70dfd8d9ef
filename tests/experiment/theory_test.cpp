// The theory of docs/model.md against the real stack over the paper's path, in virtual time: 25 ms, 400 Gbit/s, chunks
// of one packet of 4 KiB, headers counted as part of a chunk.
#include <gtest/gtest.h>

#include <cstdio>

#include "model/completion_time.hpp"
#include "tests/experiment/trial.hpp"

namespace sdr::testing {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kFewer = 20;
#else
constexpr int kFewer = 1;
#endif

struct Cell {
  Scheme scheme;
  model::SchemeKind kind;
  Bytes size;
  double loss;
  std::uint64_t runs;

  friend std::ostream& operator<<(std::ostream& out, const Cell& cell) {
    return out << to_string(cell.scheme) << ", " << to_string(cell.size) << ", loss " << cell.loss;
  }
};

double theory_ms(const Cell& cell) {
  constexpr Bytes kWire{4096 + 44};
  const auto transfer =
      model::Transfer::create(
          {.chunk = kWire, .packet = kWire, .rate = {400e9}, .rtt = std::chrono::milliseconds(25), .loss = cell.loss},
          kWire * (cell.size.count / 4096))
          .value();
  model::SchemeSpec scheme{.kind = cell.kind};
  if (scheme.coded()) scheme.rto_rtts = 1;  // the fallback is on the receiver's word
  return model::to_seconds(model::CompletionTime::of(transfer, scheme)->mean()) * 1e3;
}

class Theory : public ::testing::TestWithParam<Cell> {};

TEST_P(Theory, OfTheMean_HoldsWithinFivePercent) {
  const Cell& cell = GetParam();
  auto what = trial("rtt=25ms,rate=400Gbit", cell.scheme, cell.size);
  what.link.loss = cell.loss;
  const double measured = mean_ms(results(what, std::max<std::uint64_t>(1, cell.runs / kFewer), 2));
  const double expected = theory_ms(cell);
  std::printf("measured %.3f ms, theory %.3f ms: %+.1f %%\n", measured, expected, (measured / expected - 1) * 100);
  if (kFewer > 1) return;  // too few runs for a mean
  EXPECT_NEAR(measured, expected, 0.05 * expected);
}

using enum model::SchemeKind;
INSTANTIATE_TEST_SUITE_P(
    Cells, Theory,
    ::testing::Values(Cell{Scheme::SrRto, SrRto, 128_KiB, 1e-3, 3000}, Cell{Scheme::SrRto, SrRto, 4_MiB, 1e-4, 1500},
                      Cell{Scheme::SrRto, SrRto, 128_MiB, 1e-4, 150}, Cell{Scheme::SrRto, SrRto, 128_MiB, 1e-3, 60},
                      Cell{Scheme::SrNack, SrNack, 128_KiB, 1e-3, 3000},
                      Cell{Scheme::SrNack, SrNack, 4_MiB, 1e-4, 1500}, Cell{Scheme::SrNack, SrNack, 128_MiB, 1e-5, 100},
                      Cell{Scheme::SrNack, SrNack, 1_GiB, 1e-5, 10}, Cell{Scheme::EcXor, EcXor, 4_MiB, 1e-4, 400},
                      Cell{Scheme::EcXor, EcXor, 128_MiB, 1e-5, 40}, Cell{Scheme::EcXor, EcXor, 128_MiB, 1e-3, 150},
                      Cell{Scheme::EcRs, EcRs, 4_MiB, 1e-3, 400}, Cell{Scheme::EcRs, EcRs, 128_MiB, 1e-3, 40},
                      Cell{Scheme::EcRs, EcRs, 128_MiB, 2e-2, 40}, Cell{Scheme::EcRs, EcRs, 1_GiB, 1e-2, 5}));

// Some 1000 gaps at a time: no datagram holds them, and a round trip for each datagram would show.
TEST(Theory, GapsThatOneDatagramDoesNotHold_AreAllNamedInOneRound) {
  const Cell cell{Scheme::SrNack, SrNack, 128_MiB, 3e-2, 5};
  auto what = trial("rtt=25ms,rate=400Gbit", cell.scheme, cell.size);
  what.link.loss = cell.loss;
  EXPECT_LT(mean_ms(results(what, kFewer > 1 ? 1 : cell.runs, 2)), 1.25 * theory_ms(cell));
}

}  // namespace
}  // namespace sdr::testing

// How long the completion-time theory and its Monte Carlo take.
//
// Analytic figures are those of a message of 4 KiB chunks on the paper's path (25 ms, 400 Gbit/s). A grid is 25 sizes
// from 128 KiB to the largest by 25 losses from 1e-8 to 1e-1, 1000 samples a cell, 2 threads; model_numpy.py runs the
// same one in NumPy.
//   model_bench --benchmark_filter=grid
#include <benchmark/benchmark.h>

#include <cmath>
#include <cstdint>
#include <string>

#include "model/completion_time.hpp"
#include "model/samples.hpp"

namespace {

using namespace sdr::model;
using sdr::Bytes;

constexpr int kSteps = 25;
constexpr Bytes k32GiB{32ULL << 30};
constexpr Bytes k2TiB = Bytes{2048ULL << 30};

PathSpec path(double loss) {
  PathSpec spec;
  spec.rate = {400e9};
  spec.rtt = std::chrono::milliseconds(25);
  spec.loss = loss;
  return spec;
}

SchemeSpec scheme(SchemeKind kind) {
  SchemeSpec spec;
  spec.kind = kind;
  return spec;
}

// Step n of kSteps from `first` to `last`, evenly on a logarithmic axis.
double log_step(double first, double last, int n) {
  return first * std::pow(last / first, static_cast<double>(n) / (kSteps - 1));
}

void mean(benchmark::State& state, SchemeKind kind, Bytes size, double loss) {
  const Transfer transfer = Transfer::create(path(loss), size).value();
  for (auto _ : state) benchmark::DoNotOptimize(CompletionTime::of(transfer, scheme(kind))->mean());
}

void percentile(benchmark::State& state, SchemeKind kind, Bytes size, double loss) {
  const Transfer transfer = Transfer::create(path(loss), size).value();
  for (auto _ : state) benchmark::DoNotOptimize(CompletionTime::of(transfer, scheme(kind))->percentile(0.999).value());
}

void grid(benchmark::State& state, SchemeKind kind, Bytes largest) {
  for (auto _ : state) {
    for (int s = 0; s < kSteps; ++s) {
      const double size = log_step(128.0 * 1024, static_cast<double>(largest.count), s);
      for (int l = 0; l < kSteps; ++l) {
        const auto transfer = Transfer::create(path(log_step(1e-8, 1e-1, l)), Bytes{static_cast<std::uint64_t>(size)});
        benchmark::DoNotOptimize(samples(*transfer, scheme(kind), {1000, 1, 2})->summary());
      }
    }
  }
  state.counters["samples/s"] =
      benchmark::Counter(1000.0 * kSteps * kSteps, benchmark::Counter::kIsIterationInvariantRate);
}

void register_analytic(const char* point, SchemeKind kind, double loss) {
  const std::string name = std::string("32GiB/") + std::string(to_string(kind)) + "/" + point;
  benchmark::RegisterBenchmark(("mean/" + name).c_str(), mean, kind, k32GiB, loss)->Unit(benchmark::kMillisecond);
  benchmark::RegisterBenchmark(("p999/" + name).c_str(), percentile, kind, k32GiB, loss)->Unit(benchmark::kMillisecond);
}

void register_grid(const char* largest_name, Bytes largest, SchemeKind kind) {
  const std::string name = std::string("grid/") + largest_name + "/" + std::string(to_string(kind));
  benchmark::RegisterBenchmark(name.c_str(), grid, kind, largest)
      ->Iterations(1)
      ->MeasureProcessCPUTime()
      ->UseRealTime()
      ->Unit(benchmark::kSecond);
}

void register_all() {
  register_analytic("1e-5", SchemeKind::SrRto, 1e-5);
  register_analytic("1e-2", SchemeKind::SrNack, 1e-2);
  register_analytic("1e-1", SchemeKind::SrNack, 1e-1);
  register_analytic("1e-3", SchemeKind::EcXor, 1e-3);
  register_analytic("1e-2", SchemeKind::EcRs, 1e-2);
  register_analytic("5e-2", SchemeKind::EcRs, 5e-2);
  for (const SchemeKind kind : {SchemeKind::SrRto, SchemeKind::SrNack, SchemeKind::EcXor, SchemeKind::EcRs}) {
    register_grid("32GiB", k32GiB, kind);
    register_grid("2TiB", k2TiB, kind);
  }
}

}  // namespace

int main(int argc, char** argv) {
  register_all();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}

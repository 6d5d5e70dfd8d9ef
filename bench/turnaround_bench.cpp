// What posting a receive and completing it costs in the SDK, by message size, per message
// (src/experiment/turnaround_speed.hpp says what is in the figure). The time is of both calls together.
//   turnaround_bench --benchmark_filter=filled/1MiB
#include <benchmark/benchmark.h>

#include <chrono>
#include <cstdint>
#include <string>

#include "experiment/turnaround_speed.hpp"

namespace {

using namespace sdr;
using experiment::TurnaroundLoad;

void turnaround(benchmark::State& state, Bytes size, bool filled) {
  auto load = TurnaroundLoad::make(size);
  if (!load) return state.SkipWithError(load.error().message.c_str());
  Duration spent{0};
  for (auto _ : state) {
    const Duration once = (*load)->run_once(filled);
    spent += once;
    state.SetIterationTime(std::chrono::duration<double>(once).count());
  }
  const double messages = static_cast<double>(state.iterations()) * static_cast<double>(TurnaroundLoad::kMessages);
  state.counters["ns_per_message"] = static_cast<double>(spent.count()) / messages;
}

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  for (const bool filled : {true, false}) {
    for (std::uint64_t bytes = 64; bytes <= TurnaroundLoad::kLargest.count; bytes *= 4) {
      const std::string name = (filled ? "filled/" : "untouched/") + to_string(Bytes{bytes});
      // A gigabyte's filling takes milliseconds that do not count: the iterations are given.
      benchmark::RegisterBenchmark(name.c_str(), turnaround, Bytes{bytes}, filled)
          ->UseManualTime()
          ->Iterations(bytes >= (64ULL << 20) ? 10 : 200)
          ->Unit(benchmark::kNanosecond);
    }
  }
  benchmark::RunSpecifiedBenchmarks();
}

// How many packets a second the real stack moves in virtual time, by scheme: one core, one Write after another over the
// paper's path (25 ms, 400 Gbit/s, packets of 4 KiB). The counter is packets handed to the link.
//   sim_bench --benchmark_filter=sr-nack
#include <benchmark/benchmark.h>

#include <cstdint>
#include <string>

#include "experiment/trials.hpp"

namespace {

using namespace sdr;

experiment::WriteTrial trial(Scheme scheme, Bytes size, double loss) {
  experiment::WriteTrial trial;
  trial.link = simulation::LinkSpec::parse("rtt=25ms,rate=400Gbit").value();
  trial.link.loss = loss;
  trial.connection.scheme = scheme;
  trial.connection.queue_pair.mtu = {4096};
  trial.size = size;
  return trial;
}

void packets(benchmark::State& state, Scheme scheme, Bytes size, double loss) {
  const experiment::WriteTrial what = trial(scheme, size, loss);
  std::uint64_t run = 0;
  std::uint64_t sent = 0;
  for (auto _ : state) {
    const auto result = experiment::run(what, run++);
    if (!result || result->error) return state.SkipWithError("the Write failed");
    sent += result->packets_sent;
  }
  state.counters["packets/s"] = benchmark::Counter(static_cast<double>(sent), benchmark::Counter::kIsRate);
}

void add(Bytes size, double loss) {
  for (const Scheme scheme : {Scheme::SrRto, Scheme::SrNack, Scheme::EcXor, Scheme::EcRs}) {
    const std::string name = std::string(to_string(scheme)) + "/" + to_string(size) + "/" + std::to_string(loss);
    benchmark::RegisterBenchmark(name.c_str(), packets, scheme, size, loss)->Unit(benchmark::kMillisecond);
  }
}

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  experiment::keep_memory_for_runs();
  for (const double loss : {1e-5, 1e-3, 1e-2}) add(128_MiB, loss);
  add(1_GiB, 1e-3);
  benchmark::RunSpecifiedBenchmarks();
}

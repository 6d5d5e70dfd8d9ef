// How many packets a second one core takes through the receive worker, by order and chunk size, beside a worker that
// spends an atomic operation on every packet (src/experiment/worker_speed.hpp says what is in the figure).
//   worker_bench --benchmark_filter=batched
#include <benchmark/benchmark.h>

#include <string>

#include "experiment/worker_speed.hpp"

namespace {

using namespace sdr::experiment;

struct Cell {
  const char* name;
  WorkerLoadOptions options;
};

void packets(benchmark::State& state, const WorkerLoadOptions& options, WorkerKind kind) {
  WorkerLoad load(options, kind);
  for (auto _ : state) {
    if (!load.run_once()) return state.SkipWithError("a message was not complete after its last packet");
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(WorkerLoad::kPackets));
}

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  constexpr Cell kCells[] = {
      {"in_order/16_packet_chunks", {}},
      {"in_order/1_packet_chunks", {.packets_per_chunk = 1}},
      {"shuffled_within_64/16_packet_chunks", {.window = 64}},
      {"shuffled_within_64/1_packet_chunks", {.packets_per_chunk = 1, .window = 64}},
      {"shuffled_within_message/16_packet_chunks", {.window = 2048}},
      {"4_messages_by_turns/16_packet_chunks", {.interleaved = 4}},
      {"in_order/256_packet_chunks", {.packets_per_chunk = 256}},
  };
  for (const Cell& cell : kCells) {
    for (const WorkerKind kind : {WorkerKind::Batched, WorkerKind::AtomicPerPacket}) {
      const std::string name = std::string(cell.name) + (kind == WorkerKind::Batched ? "/batched" : "/atomic_each");
      benchmark::RegisterBenchmark(name.c_str(), packets, cell.options, kind)->Unit(benchmark::kMicrosecond);
    }
  }
  benchmark::RunSpecifiedBenchmarks();
}

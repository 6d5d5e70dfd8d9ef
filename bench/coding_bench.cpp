// How fast the erasure codes are on one core, in bytes of data per second: each kernel that the processor has, by size
// of the chunk, on 64 MiB of blocks, visited in turn, so that data comes from memory as it does in a transfer.
//
// Figures that stand by themselves move with whatever else the machine does. `side_by_side` measures ours, ISA-L and
// memcpy by turns and has the ratios as counters; `tail` has the cores that the adaptive scheme's parity takes, by the
// rate of the link and its loss: at 40 Gbit/s at most 1. `sdr bench coding` measures and tells the same.
//   coding_bench --benchmark_filter='side_by_side|tail'
#include <benchmark/benchmark.h>

#include <cstddef>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "coding/code.hpp"
#include "experiment/coding_speed.hpp"

namespace {

using sdr::coding::CodeKernels;
using sdr::coding::CodeKind;
using sdr::coding::CodeShape;
using sdr::coding::ErasureCode;
using sdr::coding::ShardLength;
using sdr::coding::ShardSet;

constexpr std::size_t kWorkingSet = std::size_t{64} << 20;

// Blocks of k data and m parity shards, one after the other.
class Blocks {
 public:
  Blocks(CodeShape shape, std::size_t shard)
      : k_(shape.k),
        m_(shape.m),
        shard_(shard),
        count_(kWorkingSet / (k_ * shard)),
        memory_(count_ * (k_ + m_) * shard) {
    for (std::size_t i = 0; i < memory_.size(); ++i) memory_[i] = static_cast<std::byte>(i * 31 + (i >> 12));
    for (std::size_t s = 0; s < count_ * (k_ + m_); ++s) shards_.push_back(memory_.data() + s * shard);
    readable_.assign(shards_.begin(), shards_.end());
  }

  void advance() { at_ = (at_ + 1) % count_; }
  [[nodiscard]] std::span<std::byte* const> data() const { return {shards_.data() + at_ * (k_ + m_), k_}; }
  [[nodiscard]] std::span<std::byte* const> parity() const { return {shards_.data() + at_ * (k_ + m_) + k_, m_}; }
  [[nodiscard]] std::span<const std::byte* const> const_data() const {
    return {readable_.data() + at_ * (k_ + m_), k_};
  }
  [[nodiscard]] std::span<const std::byte* const> const_parity() const {
    return {readable_.data() + at_ * (k_ + m_) + k_, m_};
  }
  [[nodiscard]] std::size_t data_bytes() const { return k_ * shard_; }

 private:
  std::size_t k_;
  std::size_t m_;
  std::size_t shard_;
  std::size_t count_;
  std::size_t at_ = 0;
  std::vector<std::byte> memory_;
  std::vector<std::byte*> shards_;
  std::vector<const std::byte*> readable_;
};

void count_data(benchmark::State& state, const Blocks& blocks) {
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(blocks.data_bytes()));
}

void encode(benchmark::State& state, CodeShape shape, CodeKernels kernels) {
  const auto shard = static_cast<std::size_t>(state.range(0));
  const auto code = ErasureCode::create(shape, kernels);
  Blocks blocks(shape, shard);
  for (auto _ : state) {
    if (!code->encode(blocks.const_data(), blocks.parity(), ShardLength(shard))) state.SkipWithError("encode failed");
    blocks.advance();
  }
  count_data(state, blocks);
}

// `lost` data shards, spread over the block, restored from the first parity shards.
void decode(benchmark::State& state, CodeShape shape, unsigned lost, CodeKernels kernels) {
  const auto shard = static_cast<std::size_t>(state.range(0));
  const auto code = ErasureCode::create(shape, kernels);
  Blocks blocks(shape, shard);
  ShardSet present = sdr::coding::first_shards(shape.k);
  for (unsigned i = 0; i < lost; ++i) present.reset(i * (shape.k / shape.m) + i % (shape.k / shape.m));
  const ShardSet parity = sdr::coding::first_shards(shape.m);
  for (auto _ : state) {
    const auto done = code->decode(blocks.data(), present, blocks.const_parity(), parity, ShardLength(shard));
    if (!done) state.SkipWithError(done.error().message.c_str());
    blocks.advance();
  }
  count_data(state, blocks);
}

// The yardstick: data that is only copied, a block at a time.
void copy(benchmark::State& state) {
  const auto shard = static_cast<std::size_t>(state.range(0));
  const CodeShape shape{CodeKind::Xor, 32, 32};  // as much parity as data: where the copy goes
  Blocks blocks(shape, shard);
  for (auto _ : state) {
    for (std::size_t j = 0; j < shape.k; ++j) std::memcpy(blocks.parity()[j], blocks.const_data()[j], shard);
    benchmark::ClobberMemory();
    blocks.advance();
  }
  count_data(state, blocks);
}

constexpr CodeShape kReedSolomon{CodeKind::ReedSolomon, 32, 8};
constexpr CodeShape kXor{CodeKind::Xor, 32, 8};

// 128 MiB in chunks of 64 KiB.
void side_by_side(benchmark::State& state) {
  sdr::experiment::CodingSpeedOptions options;
  options.shapes = {kReedSolomon, kXor};
  for (auto _ : state) {
    const auto speed = sdr::experiment::measure_coding_speed(options);
    if (!speed) {
      state.SkipWithError(speed.error().message.c_str());
      return;
    }
    const auto& rs = speed->codes[0];
    const auto& xored = speed->codes[1];
    state.counters["memcpy_GBps"] = speed->copy;
    state.counters["rs_encode_GBps"] = rs.encode;
    state.counters["rs_encode_over_isal"] = rs.encode / rs.isal_encode;
    state.counters["rs_encode_over_memcpy"] = rs.encode / speed->copy;
    state.counters["rs_decode_over_encode"] = rs.decode / rs.encode;
    state.counters["xor_encode_GBps"] = xored.encode;
    state.counters["xor_encode_over_isal"] = xored.encode / xored.isal_encode;
  }
}

void tail(benchmark::State& state, double rate, double loss) {
  for (auto _ : state) {
    const auto cost = sdr::experiment::measure_tail_cost({rate}, loss);
    if (!cost) {
      state.SkipWithError(cost.error().message.c_str());
      return;
    }
    state.counters["k"] = cost->k;
    state.counters["m"] = cost->m;
    state.counters["encode_GBps"] = cost->encode;
    state.counters["encode_cores"] = cost->encode_cores;
    state.counters["decode_cores"] = cost->decode_cores;
  }
}

void sizes(benchmark::internal::Benchmark* benchmark) {
  benchmark->Arg(1456)->Arg(4096)->Arg(64 << 10);
}

void register_all() {
  benchmark::RegisterBenchmark("side_by_side", side_by_side)->Iterations(1)->Unit(benchmark::kMillisecond);
  for (const double rate : {40e9, 100e9, 400e9})
    for (const char* loss : {"1e-4", "1e-3", "1e-2"})
      benchmark::RegisterBenchmark(
          ("tail/" + std::to_string(static_cast<int>(rate / 1e9)) + "Gbit/" + loss).c_str(),
          [rate, share = std::stod(loss)](benchmark::State& state) { tail(state, rate, share); })
          ->Iterations(1)
          ->Unit(benchmark::kMillisecond);
  sizes(benchmark::RegisterBenchmark("memcpy", copy));
  for (const auto* galois : sdr::coding::galois_products()) {
    const std::string name = "ReedSolomon(32,8)/" + std::string(galois->name);
    const CodeKernels kernels{.galois = galois};
    sizes(benchmark::RegisterBenchmark((name + "/encode").c_str(), encode, kReedSolomon, kernels));
    sizes(benchmark::RegisterBenchmark((name + "/decode_1").c_str(), decode, kReedSolomon, 1U, kernels));
    sizes(benchmark::RegisterBenchmark((name + "/decode_8").c_str(), decode, kReedSolomon, 8U, kernels));
  }
  for (const auto* sum : sdr::coding::xor_sums()) {
    const std::string name = "XOR(32,8)/" + std::string(sum->name);
    const CodeKernels kernels{.sum = sum};
    sizes(benchmark::RegisterBenchmark((name + "/encode").c_str(), encode, kXor, kernels));
    sizes(benchmark::RegisterBenchmark((name + "/decode_1").c_str(), decode, kXor, 1U, kernels));
  }
}

}  // namespace

int main(int argc, char** argv) {
  register_all();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}

// How fast the erasure codes are on one core, in bytes of data per second, beside memcpy of the same data.
//
// The working set is 64 MiB of blocks, visited in turn, so that data comes from memory as it does in a transfer.
//   coding_bench --benchmark_filter=ReedSolomon
#include <benchmark/benchmark.h>

#include <cstddef>
#include <cstring>
#include <memory>
#include <vector>

#include "coding/code.hpp"

namespace {

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

void encode(benchmark::State& state, CodeShape shape) {
  const auto shard = static_cast<std::size_t>(state.range(0));
  const auto code = ErasureCode::create(shape);
  Blocks blocks(shape, shard);
  for (auto _ : state) {
    if (!code->encode(blocks.const_data(), blocks.parity(), ShardLength(shard))) state.SkipWithError("encode failed");
    blocks.advance();
  }
  count_data(state, blocks);
}

// `lost` data shards, spread over the block, restored from the first parity shards.
void decode(benchmark::State& state, CodeShape shape, unsigned lost) {
  const auto shard = static_cast<std::size_t>(state.range(0));
  const auto code = ErasureCode::create(shape);
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
  const CodeShape shape{CodeKind::Xor, 32, 32};
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

void sizes(benchmark::internal::Benchmark* benchmark) {
  benchmark->Arg(1456)->Arg(4096)->Arg(64 << 10);
}

BENCHMARK(copy)->Name("memcpy")->Apply(sizes);
BENCHMARK_CAPTURE(encode, reed_solomon_32_8, kReedSolomon)->Name("ReedSolomon(32,8)/encode")->Apply(sizes);
BENCHMARK_CAPTURE(decode, reed_solomon_32_8_one, kReedSolomon, 1U)->Name("ReedSolomon(32,8)/decode_1")->Apply(sizes);
BENCHMARK_CAPTURE(decode, reed_solomon_32_8_all, kReedSolomon, 8U)->Name("ReedSolomon(32,8)/decode_8")->Apply(sizes);
BENCHMARK_CAPTURE(encode, xor_32_8, kXor)->Name("XOR(32,8)/encode")->Apply(sizes);
BENCHMARK_CAPTURE(decode, xor_32_8_one, kXor, 1U)->Name("XOR(32,8)/decode_1")->Apply(sizes);

}  // namespace

BENCHMARK_MAIN();

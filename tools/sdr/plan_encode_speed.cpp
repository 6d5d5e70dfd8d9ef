#include "sdr/plan_encode_speed.hpp"

#include <algorithm>
#include <cstdint>
#include <span>

#include "coding/code.hpp"
#include "runtime/clock.hpp"

namespace sdr::cli {
namespace {

constexpr std::size_t kWorkingSet = std::size_t{24} << 20;    // beyond second-level caches
constexpr std::size_t kLongestShard = std::size_t{64} << 10;  // longer ones are coded no faster
constexpr Duration kPatience = std::chrono::milliseconds(12);

}  // namespace

EncodeSpeedometer::EncodeSpeedometer(Bytes chunk)
    : shard_(static_cast<std::size_t>(std::min<std::uint64_t>(chunk.count, kLongestShard))) {}

Bandwidth EncodeSpeedometer::operator()(const model::SchemeSpec& scheme) {
  const Key key{scheme.kind, scheme.data_chunks, scheme.parity_chunks};
  const auto known = measured_.find(key);
  if (known != measured_.end()) return known->second;
  return measured_.emplace(key, measure(key)).first->second;
}

Bandwidth EncodeSpeedometer::measure(const Key& key) {
  const coding::CodeKind kind =
      key.kind == model::SchemeKind::EcXor ? coding::CodeKind::Xor : coding::CodeKind::ReedSolomon;
  const Result<coding::ErasureCode> code = coding::ErasureCode::create({.kind = kind, .k = key.k, .m = key.m});
  if (!code) return {};
  if (memory_.empty()) {
    memory_.resize(kWorkingSet);
    // Written, or all of it would be one page of zeros.
    for (std::size_t i = 0; i < memory_.size(); i += 64) memory_[i] = static_cast<std::byte>(i >> 6);
  }
  const std::size_t block = (key.k + key.m) * shard_;
  const std::size_t blocks = memory_.size() / block;
  std::vector<const std::byte*> data(key.k);
  std::vector<std::byte*> parity(key.m);
  // Best of the rounds: what else runs on this machine only ever makes them slower.
  double best = 0;
  std::size_t at = 0;
  const TimePoint begin = runtime::now();
  for (TimePoint before = begin; before - begin < kPatience;) {
    for (std::size_t encoded = 0; encoded < (std::size_t{1} << 20); encoded += key.k * shard_) {
      std::byte* shard = memory_.data() + at * block;
      for (const std::byte*& into : data) into = std::exchange(shard, shard + shard_);
      for (std::byte*& into : parity) into = std::exchange(shard, shard + shard_);
      at = (at + 1) % blocks;
      if (!code->encode(data, parity, coding::ShardLength(shard_))) return {};
    }
    const TimePoint after = runtime::now();
    const std::size_t rounds = ((std::size_t{1} << 20) + key.k * shard_ - 1) / (key.k * shard_);
    const double seconds = static_cast<double>(std::max<std::int64_t>((after - before).count(), 1)) * 1e-9;
    best = std::max(best, static_cast<double>(rounds * key.k * shard_) * 8 / seconds);
    before = after;
  }
  return {best};
}

}  // namespace sdr::cli

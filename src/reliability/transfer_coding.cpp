#include "reliability/transfer_coding.hpp"

#include <algorithm>
#include <array>
#include <cassert>

namespace sdr::reliability {
namespace {

constexpr std::uint64_t kTaskBytes = 1 << 20;

}  // namespace

ParityEncoder::ParityEncoder(const coding::ErasureCode& code, const ShardMap& map, std::span<const std::byte> data,
                             Executor& executor)
    : code_(code), map_(map), data_(data) {
  if (!map_.carries_payload) return;
  const CodingLayout& layout = map_.layout;
  const std::uint64_t submessage_bytes = std::uint64_t{code_.shape().k} * map_.chunk_bytes;
  parity_ = std::make_unique_for_overwrite<std::byte[]>(std::size_t{layout.parity_chunks()} * map_.chunk_bytes);
  submessages_a_task_ = static_cast<std::uint32_t>(std::max<std::uint64_t>(1, kTaskBytes / submessage_bytes));
  const std::uint32_t tasks = (layout.submessages + submessages_a_task_ - 1) / submessages_a_task_;
  task_done_ = std::make_unique<std::atomic<bool>[]>(tasks);
  for (std::uint32_t task = 0; task < tasks; ++task) {
    work_.run(executor, [this, task] {
      const std::uint32_t first = task * submessages_a_task_;
      encode(first, std::min(first + submessages_a_task_, map_.layout.submessages));
      task_done_[task].store(true, std::memory_order_release);
    });
  }
}

bool ParityEncoder::ready(std::uint32_t q) const {
  if (!map_.carries_payload) return true;
  const std::uint32_t submessage = q % map_.layout.submessages;
  return task_done_[submessage / submessages_a_task_].load(std::memory_order_acquire);
}

void ParityEncoder::encode(std::uint32_t first_submessage, std::uint32_t end) const {
  const CodingLayout& layout = map_.layout;
  std::array<const std::byte*, coding::kMaxShards> data;
  std::array<std::byte*, coding::kMaxShards> parity;
  for (std::uint32_t s = first_submessage; s < end; ++s) {
    const std::uint32_t shards = layout.data_shards(s);
    for (std::uint32_t j = 0; j < shards; ++j)
      data[j] = data_.data() + std::size_t{layout.chunk_at(s, j)} * map_.chunk_bytes;
    for (std::uint32_t i = 0; i < layout.parity_each; ++i)
      parity[i] = parity_.get() + std::size_t{layout.parity_at(s, i)} * map_.chunk_bytes;
    const Result<void> encoded =
        code_.encode(std::span(data).first(shards), std::span(parity).first(layout.parity_each), map_.lengths(s));
    assert(encoded.ok());  // shapes were checked when the connection was made
    (void)encoded;
  }
}

void SubmessageProgress::begin(const coding::ErasureCode& code, const CodingLayout& layout) {
  code_ = code;
  layout_ = layout;
  data_.assign(layout.submessages, {});
  parity_.assign(layout.submessages, {});
  ready_.assign(layout.submessages, false);
  open_ = layout.submessages;
}

void SubmessageProgress::data_arrived(std::uint32_t chunk) {
  const std::uint32_t s = layout_.submessage_of(chunk);
  data_[s].set(layout_.shard_of(chunk));
  recheck(s);
}

void SubmessageProgress::parity_arrived(std::uint32_t q) {
  const std::uint32_t s = q % layout_.submessages;
  const std::uint32_t shard = q / layout_.submessages;
  if (shard >= layout_.parity_each) return;
  parity_[s].set(shard);
  recheck(s);
}

void SubmessageProgress::recheck(std::uint32_t s) {
  if (ready_[s]) return;
  const std::uint32_t shards = layout_.data_shards(s);
  // No code restores more shards than it holds parity for: most calls end here.
  if (data_[s].count() + parity_[s].count() < shards) return;
  if (!code_->can_decode(data_[s], parity_[s], shards)) return;
  ready_[s] = true;
  --open_;
}

void SubmessageProgress::each_needed(std::uint32_t s, const std::function<void(std::uint32_t)>& on_chunk) const {
  const std::uint32_t shards = layout_.data_shards(s);
  const coding::Needed needed = code_->needed(data_[s], parity_[s], shards);
  for (std::uint32_t j = 0; j < shards; ++j)
    if (needed.shards.test(j)) on_chunk(layout_.chunk_at(s, j));
}

std::uint32_t decode_missing(const coding::ErasureCode& code, const ShardMap& map, const SubmessageProgress& progress,
                             std::span<std::byte> data, std::span<const std::byte> parity) {
  const CodingLayout& layout = map.layout;
  std::array<std::byte*, coding::kMaxShards> data_shards;
  std::array<const std::byte*, coding::kMaxShards> parity_shards;
  std::uint32_t restored = 0;
  for (std::uint32_t s = 0; s < layout.submessages; ++s) {
    const std::uint32_t shards = layout.data_shards(s);
    const auto missing = shards - static_cast<std::uint32_t>(progress.data(s).count());
    restored += missing;
    if (missing == 0 || !map.carries_payload) continue;
    for (std::uint32_t j = 0; j < shards; ++j)
      data_shards[j] = data.data() + std::size_t{layout.chunk_at(s, j)} * map.chunk_bytes;
    for (std::uint32_t i = 0; i < layout.parity_each; ++i)
      parity_shards[i] = parity.data() + std::size_t{layout.parity_at(s, i)} * map.chunk_bytes;
    const Result<void> decoded =
        code.decode(std::span(data_shards).first(shards), progress.data(s),
                    std::span(parity_shards).first(layout.parity_each), progress.parity(s), map.lengths(s));
    assert(decoded.ok());  // only called once every submessage is decodable
    (void)decoded;
  }
  return restored;
}

}  // namespace sdr::reliability

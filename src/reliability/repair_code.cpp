#include "reliability/repair_code.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>

namespace sdr::reliability {
namespace {

coding::ShardLength lengths_of(const std::vector<std::uint32_t>& chunks, const ShardMap& map) {
  return map.lengths_of(chunks.back() == map.layout.chunks() - 1);
}

}  // namespace

RepairEncoder::RepairEncoder(const RepairBlock& block, const coding::ErasureCode& code,
                             std::span<const std::uint32_t> chunks, const ShardMap& map,
                             std::span<const std::byte> data, Executor& executor)
    : block_(block), code_(code), map_(map), data_(data), groups_(block.groups) {
  for (std::size_t i = 0; i < chunks.size(); ++i) groups_[i % block.groups].push_back(chunks[i]);
  for (std::vector<std::uint32_t>& group : groups_) std::sort(group.begin(), group.end());
  if (!map_.carries_payload) return;
  parity_ = std::make_unique_for_overwrite<std::byte[]>(block.parity_chunks() * map_.chunk_bytes);
  done_ = std::make_unique<std::atomic<bool>[]>(block.groups);
  for (std::uint32_t g = 0; g < block.groups; ++g)
    work_.run(executor, [this, g] {
      encode(g);
      done_[g].store(true, std::memory_order_release);
    });
}

bool RepairEncoder::ready(std::uint32_t q) const {
  return !map_.carries_payload || done_[q % block_.groups].load(std::memory_order_acquire);
}

void RepairEncoder::encode(std::uint32_t g) const {
  std::array<const std::byte*, coding::kMaxShards> data;
  std::array<std::byte*, coding::kMaxShards> parity;
  const std::vector<std::uint32_t>& chunks = groups_[g];
  for (std::size_t j = 0; j < chunks.size(); ++j) data[j] = data_.data() + std::size_t{chunks[j]} * map_.chunk_bytes;
  for (std::uint32_t i = 0; i < block_.parity_each; ++i)
    parity[i] = parity_.get() + (std::size_t{i} * block_.groups + g) * map_.chunk_bytes;
  const Result<void> encoded = code_.encode(std::span(data).first(chunks.size()),
                                            std::span(parity).first(block_.parity_each), lengths_of(chunks, map_));
  assert(encoded.ok());  // no group has more chunks than its code
  (void)encoded;
}

std::uint32_t RepairBlocks::next_first(std::uint32_t behind) const {
  const std::uint64_t end = blocks_.empty() ? behind : blocks_.back().encoder->block().end();
  return static_cast<std::uint32_t>((end + RepairBlock::kAlignment - 1) / RepairBlock::kAlignment *
                                    RepairBlock::kAlignment);
}

void RepairBlocks::add(std::unique_ptr<RepairEncoder> block, std::uint32_t statements) {
  blocks_.push_back({.encoder = std::move(block), .statements_left = statements});
  blocks_.back().each_chunk([this](std::uint32_t chunk) { chunks_.insert(chunk); });
}

std::optional<RepairBlocks::Extent> RepairBlocks::ready(const Sending& block, std::uint32_t most) {
  const auto sent = static_cast<std::uint32_t>(block.sent);
  const std::uint64_t left = block.encoder->block().parity_chunks() - sent;
  std::uint32_t count = 0;
  while (count < most && count < left && block.encoder->ready(sent + count)) ++count;
  if (count == 0) return std::nullopt;  // it is still being encoded
  return Extent{block.encoder->block().parity_first + sent, count};
}

std::span<const std::byte> RepairBlocks::bytes(const Extent& extent, std::uint32_t chunk_bytes) const {
  const RepairEncoder& encoder = *blocks_[sending_].encoder;
  return {encoder.chunk(extent.first - encoder.block().parity_first), std::size_t{extent.count} * chunk_bytes};
}

bool RepairBlocks::poll(ByteWriter& writer, std::uint64_t transfer, Duration interval, TimePoint now) {
  for (Sending& block : blocks_) {
    if (block.statements_left == 0 || block.state_at > now) continue;
    const RepairEncoder& encoder = *block.encoder;
    write(writer, RepairGroupsHeader{transfer, encoder.block()});
    while (block.named < encoder.block().groups && append(writer, block.named, encoder.group(block.named)))
      ++block.named;
    if (block.named < encoder.block().groups) return true;  // the rest is still due
    block.named = 0;
    --block.statements_left;
    block.state_at = now + interval;
    return true;
  }
  return false;
}

TimePoint RepairBlocks::next_statement() const {
  TimePoint next = kNever;
  for (const Sending& block : blocks_)
    if (block.statements_left > 0) next = std::min(next, block.state_at);
  return next;
}

void RepairBlocks::cancel() {
  for (Sending& block : blocks_) {
    block.encoder->work().cancel();
    block.statements_left = 0;
  }
}

bool RepairBlocks::idle() const {
  return std::all_of(blocks_.begin(), blocks_.end(), [](const Sending& block) { return block.encoder->work().idle(); });
}

RepairProgress::Block* RepairProgress::find(const RepairBlock& block) const {
  const auto at =
      std::find_if(blocks_.begin(), blocks_.end(), [&](const auto& known) { return known->shape == block; });
  return at != blocks_.end() ? at->get() : nullptr;
}

bool RepairProgress::knows(const RepairBlock& block, std::uint32_t group) const {
  const Block* known = find(block);
  return known != nullptr && !known->groups[group].chunks.empty();
}

Result<RepairProgress::Block*> RepairProgress::open(const RepairBlock& block, const coding::ErasureCode& code) {
  // Datagrams may overtake each other, and so may blocks.
  const auto behind = std::find_if(blocks_.begin(), blocks_.end(),
                                   [&](const auto& other) { return other->shape.parity_first >= block.parity_first; });
  const bool overlaps = (behind != blocks_.end() && (*behind)->shape.parity_first < block.end()) ||
                        (behind != blocks_.begin() && (*std::prev(behind))->shape.end() > block.parity_first);
  if (overlaps)
    return Error{
        ErrorCode::Protocol,
        fmt::format("the peer's repair block of {} groups with {} parity chunks each overlaps another one at {}",
                    block.groups, block.parity_each, block.parity_first)};
  auto opened = std::make_unique<Block>(Block{block, code, {}, std::vector<Group>(block.groups)});
  opened->parity.begin(static_cast<std::uint32_t>(block.parity_chunks()));
  return blocks_.insert(behind, std::move(opened))->get();
}

Result<void> RepairProgress::add(const RepairBlock& block, std::uint32_t group, std::vector<std::uint32_t> chunks,
                                 const coding::ErasureCode& code, const ArrivalTracker& held,
                                 const OnChunk& on_restored) {
  Block* known = find(block);
  const bool twice = std::any_of(chunks.begin(), chunks.end(), [&](std::uint32_t chunk) {
    const auto at = places_.find(chunk);
    return at != places_.end() && (at->second.block != known || at->second.group != group);
  });
  if (twice || (known != nullptr && !known->groups[group].chunks.empty() && known->groups[group].chunks != chunks))
    return Error{ErrorCode::Protocol,
                 fmt::format("the peer's group {} of the repair block at {} is not what others leave, or was before",
                             group, block.parity_first)};
  if (known == nullptr) {
    const Result<Block*> opened = open(block, code);
    if (!opened) return opened.error();
    known = *opened;
  }
  Group& named = known->groups[group];
  if (!named.chunks.empty()) return {};
  named.chunks = std::move(chunks);
  for (std::uint32_t shard = 0; shard < named.chunks.size(); ++shard) {
    places_[named.chunks[shard]] = {known, group, shard};
    if (held.has(named.chunks[shard])) named.data.set(shard);
  }
  recheck(named, on_restored);
  return {};
}

void RepairProgress::data_arrived(std::uint32_t chunk, const OnChunk& on_restored) {
  const auto at = places_.find(chunk);
  if (at == places_.end()) return;
  Group& group = at->second.block->groups[at->second.group];
  group.data.set(at->second.shard);
  recheck(group, on_restored);
}

void RepairProgress::poll(ChunkBitmap parity, const OnChunk& on_restored) {
  for (const auto& block : blocks_) {
    const std::size_t word = block->shape.parity_first / RepairBlock::kAlignment;
    if (word >= parity.size()) continue;
    block->parity.poll(parity.subspan(word), [&](std::uint32_t q) {
      Group& group = block->groups[q % block->shape.groups];
      group.parity.set(q / block->shape.groups);
      recheck(group, on_restored);
    });
  }
}

void RepairProgress::recheck(Group& group, const OnChunk& on_restored) {
  if (group.decodable || group.chunks.empty() || group.parity.count() < group.missing()) return;
  group.decodable = true;
  for (std::size_t shard = 0; shard < group.chunks.size(); ++shard)
    if (!group.data.test(shard)) on_restored(group.chunks[shard]);
}

bool RepairProgress::restores(std::uint32_t chunk) const {
  const auto at = places_.find(chunk);
  if (at == places_.end()) return false;
  const Group& group = at->second.block->groups[at->second.group];
  return group.decodable && !group.data.test(at->second.shard);
}

std::uint32_t RepairProgress::decode(const ShardMap& map, std::span<std::byte> data,
                                     std::span<const std::byte> parity) const {
  std::array<std::byte*, coding::kMaxShards> data_shards;
  std::array<const std::byte*, coding::kMaxShards> parity_shards;
  std::uint32_t restored = 0;
  for (const auto& each : blocks_) {
    const Block& block = *each;
    for (std::uint32_t g = 0; g < block.shape.groups; ++g) {
      const Group& group = block.groups[g];
      if (!group.decodable || group.missing() == 0) continue;
      restored += group.missing();
      if (!map.carries_payload) continue;
      for (std::size_t j = 0; j < group.chunks.size(); ++j)
        data_shards[j] = data.data() + std::size_t{group.chunks[j]} * map.chunk_bytes;
      for (std::uint32_t i = 0; i < block.shape.parity_each; ++i) {
        const std::size_t q = block.shape.parity_first + std::size_t{i} * block.shape.groups + g;
        parity_shards[i] = parity.data() + q * map.chunk_bytes;
      }
      const Result<void> decoded = block.code.decode(std::span(data_shards).first(group.chunks.size()), group.data,
                                                     std::span(parity_shards).first(block.shape.parity_each),
                                                     group.parity, lengths_of(group.chunks, map));
      assert(decoded.ok());
      (void)decoded;
    }
  }
  return restored;
}

}  // namespace sdr::reliability

// RepairCode: parity over chunks that were sent again, where the loss of a repair would cost a round trip that nothing
// hides.
//
// Model: the repairs of a stretch of time are a block. Its chunks are dealt out to groups in turn, so that a burst
// hits many groups a little; each group of up to k chunks gets m parity chunks of a Reed-Solomon code. Parity j of
// group g is chunk parity_first + j * groups + g of the transfer's parity message, behind the parity of its tail. Which
// chunks a group has only the sender knows: it says so in a control message, again and again until the transfer is
// complete (RepairGroups). A group is restored as soon as the receiver has heard what is in it and holds as many of
// its chunks and parity as it has chunks. Copies of every repair would cost a multiple of the repairs; this costs some
// twenty per cent of them.
//
// Threads: one owner each; encoding and decoding on an executor, as in transfer_coding.hpp.
// Invariants: a chunk is in at most one group; blocks do not overlap, and come in the order of their parity.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "coding/code.hpp"
#include "reliability/arrival_tracker.hpp"
#include "reliability/async_work.hpp"
#include "reliability/control_message.hpp"
#include "reliability/transfer_coding.hpp"
#include "sdr/result.hpp"
#include "sdr/units.hpp"

namespace sdr::reliability {

class RepairEncoder {
 public:
  // Deals `chunks` out to the block's groups, and starts encoding. `code` is of the
  // block's k and m. `map` and `data` are the transfer's; `data` must stay until work().idle().
  RepairEncoder(const RepairBlock& block, const coding::ErasureCode& code, std::span<const std::uint32_t> chunks,
                const ShardMap& map, std::span<const std::byte> data, Executor& executor);

  [[nodiscard]] const RepairBlock& block() const { return block_; }
  // Ascending.
  [[nodiscard]] const std::vector<std::uint32_t>& group(std::uint32_t g) const { return groups_[g]; }
  // Whether parity chunk q of the block is there to be sent, and where.
  [[nodiscard]] bool ready(std::uint32_t q) const;
  [[nodiscard]] const std::byte* chunk(std::uint32_t q) const {
    return map_.carries_payload ? parity_.get() + std::size_t{q} * map_.chunk_bytes : data_.data();
  }
  [[nodiscard]] AsyncWork& work() { return work_; }
  [[nodiscard]] const AsyncWork& work() const { return work_; }

 private:
  void encode(std::uint32_t g) const;

  RepairBlock block_;
  coding::ErasureCode code_;
  ShardMap map_;
  std::span<const std::byte> data_;
  std::vector<std::vector<std::uint32_t>> groups_;
  std::unique_ptr<std::byte[]> parity_;
  std::unique_ptr<std::atomic<bool>[]> done_;  // by group
  AsyncWork work_;                             // last: its destructor waits for tasks that use the rest
};

// The sender's blocks of one transfer: what of their parity has been sent, and how often their groups were named.
class RepairBlocks {
 public:
  // Parity chunks of the parity message, first of them at `first`.
  struct Extent {
    std::uint32_t first = 0;
    std::uint32_t count = 0;
  };

  // Where a block behind so much other parity begins.
  [[nodiscard]] std::uint32_t next_first(std::uint32_t behind) const;
  // Begins to encode a block; its groups are to be named so many times.
  void add(std::unique_ptr<RepairEncoder> block, std::uint32_t statements);
  [[nodiscard]] bool contains(std::uint32_t chunk) const { return chunks_.contains(chunk); }

  // What may go now, of the oldest block with parity left; `wanted` says of a chunk whether the peer lacks it. A block
  // of which nothing is wanted any more is passed over.
  template <typename Wanted>
  std::optional<Extent> next(std::uint32_t most, Wanted&& wanted) {
    for (; sending_ < blocks_.size(); ++sending_) {
      Sending& block = blocks_[sending_];
      if (block.sent == block.encoder->block().parity_chunks()) continue;
      if (block.sent % block.encoder->block().groups == 0 && !block.any(wanted)) continue;
      return ready(block, most);
    }
    return std::nullopt;
  }
  // It was handed out. Calls on_chunk(chunk) for the chunks of a block whose parity has gone with it.
  template <typename OnChunk>
  void sent(const Extent& extent, OnChunk&& on_chunk) {
    Sending& block = blocks_[sending_];
    block.sent += extent.count;
    if (block.sent < block.encoder->block().parity_chunks()) return;
    block.each_chunk(on_chunk);
  }
  // The same of an extent that was handed out before.
  template <typename OnChunk>
  void each_chunk_ended_by(const Extent& extent, OnChunk&& on_chunk) const {
    for (const Sending& block : blocks_) {
      if (block.encoder->block().end() == extent.first + extent.count) block.each_chunk(on_chunk);
    }
  }
  [[nodiscard]] std::span<const std::byte> bytes(const Extent& extent, std::uint32_t chunk_bytes) const;

  // Writes the datagram that names groups, if one is due; the next round of them comes an interval later.
  bool poll(ByteWriter& writer, std::uint64_t transfer, Duration interval, TimePoint now);
  [[nodiscard]] TimePoint next_statement() const;

  void cancel();
  [[nodiscard]] bool idle() const;

 private:
  struct Sending {
    std::unique_ptr<RepairEncoder> encoder;
    std::uint64_t sent = 0;  // parity chunks
    std::uint32_t statements_left = 0;
    std::uint32_t named = 0;  // groups, in this round of statements
    TimePoint state_at = TimePoint::min();

    template <typename OnChunk>
    void each_chunk(OnChunk&& on_chunk) const {
      for (std::uint32_t g = 0; g < encoder->block().groups; ++g)
        for (const std::uint32_t chunk : encoder->group(g)) on_chunk(chunk);
    }
    template <typename Wanted>
    [[nodiscard]] bool any(Wanted&& wanted) const {
      bool found = false;
      each_chunk([&](std::uint32_t chunk) { found = found || wanted(chunk); });
      return found;
    }
  };

  static std::optional<Extent> ready(const Sending& block, std::uint32_t most);

  std::vector<Sending> blocks_;
  std::size_t sending_ = 0;  // those before have been sent
  std::unordered_set<std::uint32_t> chunks_;
};

// The receiver's: which missing chunks the blocks restore.
class RepairProgress {
 public:
  using OnChunk = std::function<void(std::uint32_t chunk)>;

  [[nodiscard]] bool empty() const { return blocks_.empty(); }
  // What a control message says of one group, again or for the first time; `code` is of the block's k and m, `held`
  // says of a chunk whether it is here. Protocol when it contradicts what was said before.
  // As below, calls on_restored(chunk).
  Result<void> add(const RepairBlock& block, std::uint32_t group, std::vector<std::uint32_t> chunks,
                   const coding::ErasureCode& code, const ArrivalTracker& held, const OnChunk& on_restored);
  // Whether this group has been named before; its code is then not needed.
  [[nodiscard]] bool knows(const RepairBlock& block, std::uint32_t group) const;
  // A chunk, for the first time.
  void data_arrived(std::uint32_t chunk, const OnChunk& on_restored);
  // Looks at the bitmap of the parity message. Calls on_restored(chunk) for every missing chunk that its group restores
  // from now on.
  void poll(ChunkBitmap parity, const OnChunk& on_restored);

  // A missing chunk that its group restores.
  [[nodiscard]] bool restores(std::uint32_t chunk) const;
  // Restores them; as decode_missing() of transfer_coding.hpp.
  std::uint32_t decode(const ShardMap& map, std::span<std::byte> data, std::span<const std::byte> parity) const;

 private:
  struct Group {
    std::vector<std::uint32_t> chunks;  // empty until it is named
    coding::ShardSet data;
    coding::ShardSet parity;
    bool decodable = false;
    [[nodiscard]] std::uint32_t missing() const {
      return static_cast<std::uint32_t>(chunks.size()) - static_cast<std::uint32_t>(data.count());
    }
  };
  struct Block {
    RepairBlock shape;
    coding::ErasureCode code;
    ArrivalTracker parity;
    std::vector<Group> groups;
  };
  struct Place {
    Block* block;
    std::uint32_t group;
    std::uint32_t shard;
  };

  [[nodiscard]] Block* find(const RepairBlock& block) const;
  // A new one. Protocol when it overlaps another.
  Result<Block*> open(const RepairBlock& block, const coding::ErasureCode& code);
  static void recheck(Group& group, const OnChunk& on_restored);

  std::vector<std::unique_ptr<Block>> blocks_;  // by parity_first
  std::unordered_map<std::uint32_t, Place> places_;
};

}  // namespace sdr::reliability

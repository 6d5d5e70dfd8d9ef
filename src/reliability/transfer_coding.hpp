// TransferCoding: the erasure coding of one transfer, from chunks in buffers to shards and back (paper section 4.1.2).
//
// The sending end encodes all parity in tasks of about a megabyte, ahead of injection, on the executor; the receiving
// end decodes what is missing in place, after the messages have been completed and nothing else writes the buffer.
//
// Threads: one owner; the heavy work on the executor. The transfer's data must stay until work().idle().
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "coding/code.hpp"
#include "reliability/async_work.hpp"
#include "reliability/coding_layout.hpp"

namespace sdr::reliability {

// Where the shards of a transfer lie, and whether there is anything in them.
struct ShardMap {
  CodingLayout layout;
  std::uint64_t length = 0;  // of the transfer's data
  std::uint32_t chunk_bytes = 0;
  bool carries_payload = true;  // false: nobody reads the bytes, so none are computed

  // A transfer of one chunk is coded at its own length: its parity costs no padding on the wire.
  [[nodiscard]] std::size_t shard_bytes() const {
    return layout.chunks() == 1 ? static_cast<std::size_t>(length) : chunk_bytes;
  }
  [[nodiscard]] coding::ShardLength lengths(std::uint32_t submessage) const {
    return lengths_of(layout.holds_last_chunk(submessage));
  }
  // Of shards with the transfer's last chunk, which may be short, as the last of them; or without it.
  [[nodiscard]] coding::ShardLength lengths_of(bool hold_last_chunk) const {
    if (!hold_last_chunk) return coding::ShardLength(shard_bytes());
    const std::uint64_t tail = length - std::uint64_t{layout.chunks() - 1} * chunk_bytes;
    return {shard_bytes(), static_cast<std::size_t>(tail)};
  }
};

class ParityEncoder {
 public:
  // Starts encoding at once.
  ParityEncoder(const coding::ErasureCode& code, const ShardMap& map, std::span<const std::byte> data,
                Executor& executor);

  // Whether parity chunk q is there to be sent.
  [[nodiscard]] bool ready(std::uint32_t q) const;
  // Without payload a place that nobody reads.
  [[nodiscard]] const std::byte* chunk(std::uint32_t q) const {
    return map_.carries_payload ? parity_.get() + std::size_t{q} * map_.chunk_bytes : data_.data();
  }
  [[nodiscard]] const ShardMap& map() const { return map_; }
  [[nodiscard]] AsyncWork& work() { return work_; }

 private:
  void encode(std::uint32_t first_submessage, std::uint32_t end) const;

  coding::ErasureCode code_;
  ShardMap map_;
  std::span<const std::byte> data_;
  std::unique_ptr<std::byte[]> parity_;
  std::uint32_t submessages_a_task_ = 0;
  std::unique_ptr<std::atomic<bool>[]> task_done_;
  AsyncWork work_;  // last: its destructor waits for tasks that use the rest
};

// Which submessages can be decoded, kept up to date chunk by chunk.
class SubmessageProgress {
 public:
  void begin(const coding::ErasureCode& code, const CodingLayout& layout);

  // Only of chunks that the layout covers.
  void data_arrived(std::uint32_t chunk);
  void parity_arrived(std::uint32_t q);
  [[nodiscard]] bool all_decodable() const { return open_ == 0; }
  [[nodiscard]] bool decodable(std::uint32_t submessage) const { return ready_[submessage]; }
  // Data chunks of this submessage that must still arrive until the parity held restores the rest; a smallest choice.
  void each_needed(std::uint32_t submessage, const std::function<void(std::uint32_t chunk)>& on_chunk) const;

  [[nodiscard]] const coding::ShardSet& data(std::uint32_t submessage) const { return data_[submessage]; }
  [[nodiscard]] const coding::ShardSet& parity(std::uint32_t submessage) const { return parity_[submessage]; }

 private:
  void recheck(std::uint32_t submessage);

  std::optional<coding::ErasureCode> code_;
  CodingLayout layout_;
  std::vector<coding::ShardSet> data_;
  std::vector<coding::ShardSet> parity_;
  std::vector<bool> ready_;
  std::uint32_t open_ = 0;
};

// Restores every missing data chunk; returns how many. `data` is the transfer's buffer, `parity` the parity message's.
std::uint32_t decode_missing(const coding::ErasureCode& code, const ShardMap& map, const SubmessageProgress& progress,
                             std::span<std::byte> data, std::span<const std::byte> parity);

}  // namespace sdr::reliability

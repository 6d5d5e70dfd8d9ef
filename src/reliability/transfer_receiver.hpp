// TransferReceiver: watches one transfer arrive, says what it still wants, and when it is complete.
//
// Model: posted (buffers announced, nothing known), then offered (its length is known), then complete, or decodable and
// being decoded, then complete. What it wants goes into a Report:
// - SR NACK: gaps below the highest arrived chunk, once they are older than the reordering tolerance; and everything
//   missing once the sender says that it has sent all.
// - SR RTO: the same list, which its sender takes as a selective ACK only.
// - coded: nothing until all has been sent (or the fallback timeout FTO runs out), then the fewest data chunks with
//   which every submessage decodes.
// - adaptive: as SR NACK in front of the coded tail, but for what a repair group restores; as coded in it; and of a
//   submessage that misses more than all of its parity can restore, what that is short of, at once.
//
// Threads: one; the bitmaps are written by workers. No I/O, no clock.
// Source: paper section 4.1; the FTO is that of section 4.1.2.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "reliability/arrival_tracker.hpp"
#include "reliability/control_message.hpp"
#include "reliability/repair_code.hpp"
#include "reliability/scheme.hpp"
#include "reliability/transfer_coding.hpp"
#include "reliability/transfer_shape.hpp"

namespace sdr::reliability {

// Share of an RTT that the fallback timeout waits beyond the expected arrival of the last parity chunk (beta).
inline constexpr double kFallbackBeta = 0.5;

struct ReceiverTiming {
  Duration tolerance{0};  // how long a gap may be reordering
  Duration rtt{0};
  Bandwidth sender_rate{};
  bool drained = true;  // QueuePair::drained(): else a gap may be what still waits to be taken
};

class TransferReceiver {
 public:
  TransferReceiver(std::uint64_t transfer, std::span<std::byte> buffer, const TransferShape& shape)
      : transfer_(transfer),
        buffer_(buffer),
        rules_(shape.rules),
        chunk_bytes_(shape.chunk_bytes),
        carries_payload_(shape.carries_payload) {}

  // The sender's word of what this transfer carries. `length` fits the buffer, and the parity of `code` its scratch
  // memory; `code` is of the first offer, null when none of it is coded. `behind` is what of its Write comes before its
  // parity does.
  void offered(std::uint64_t length, std::uint64_t behind, const CodingLayout& layout, const coding::ErasureCode* code,
               bool all_sent, TimePoint now, const ReceiverTiming& timing);
  // What its sender says of a group of repairs, in a block that lies behind the tail's parity; `code` is of the block's
  // shape. Needs an offer. Protocol when it contradicts what is known.
  Result<void> named(const RepairBlock& block, const RepairGroup& group, const coding::ErasureCode& code);
  [[nodiscard]] bool knows(const RepairBlock& block, std::uint32_t group) const { return repairs_.knows(block, group); }
  [[nodiscard]] std::uint32_t tail_parity() const { return map_.layout.parity_chunks(); }
  // Looks at the bitmaps (parity may be empty). Needs an offer.
  void look(ChunkBitmap data, ChunkBitmap parity, TimePoint now, const ReceiverTiming& timing);
  // Decodable or complete: nothing more is wanted from the peer.
  [[nodiscard]] bool has_all() const;
  [[nodiscard]] bool needs_decoding() const { return has_all() && !tracker_.complete(); }
  // Starts decoding; the messages are completed, nobody else writes the buffers. decoded() says when it is done.
  void decode(std::span<const std::byte> parity, Executor& executor);
  [[nodiscard]] bool decoded() const { return work_ == nullptr || work_->idle(); }

  void report_after(Duration wait, TimePoint now);
  // Due when a report should go out; cleared by take_report().
  [[nodiscard]] TimePoint report_due() const { return report_at_; }
  void take_report(Report& report);
  // How far the report went that was taken: the next one goes on from there, at once, when there is more to say.
  void reported(std::uint32_t horizon, TimePoint now);
  [[nodiscard]] TimePoint next_timeout() const;

  [[nodiscard]] std::uint64_t transfer() const { return transfer_; }
  [[nodiscard]] bool is_offered() const { return offered_; }
  [[nodiscard]] std::uint64_t length() const { return length_; }
  [[nodiscard]] std::uint64_t bytes_landed() const;
  // Up to the first chunk that is not here.
  [[nodiscard]] std::uint64_t bytes_landed_in_order() const {
    return std::min(std::uint64_t{tracker_.cumulative()} * chunk_bytes_, length_);
  }
  [[nodiscard]] std::uint32_t recovered() const { return recovered_; }
  [[nodiscard]] bool fell_back() const { return fell_back_; }
  // Data chunks whose first transmission had not arrived when they were looked for, and runs of such.
  [[nodiscard]] std::uint32_t lost() const { return lost_; }
  [[nodiscard]] std::uint32_t loss_runs() const { return loss_runs_; }

 private:
  void postpone_fallback(TimePoint now, const ReceiverTiming& timing);
  void watch_gaps(TimePoint now, const ReceiverTiming& timing);
  // Books what is missing of the chunks from named_ to `end`; whether there is anything.
  bool count_losses(std::uint32_t end);
  [[nodiscard]] bool coded() const { return code_.has_value(); }
  // The chunks in front of the tail are here, or their groups restore them.
  [[nodiscard]] bool has_head() const { return head_held_ == map_.layout.first; }
  // A chunk that is here, or that its group restores: for the first time.
  void hold(std::uint32_t chunk);
  // Calls on_chunk(chunk), in order within a submessage, for what of the tail must be sent again. Before everything has
  // been sent once, the parity to come counts as here.
  template <typename OnChunk>
  void each_needed(OnChunk&& on_chunk) const;
  // Where there is no more to report: a coded transfer wants nothing before everything has been sent once.
  [[nodiscard]] std::uint32_t report_end() const;
  void list_missing(Report& report);
  void list_needed(Report& report);

  std::uint64_t transfer_;
  std::span<std::byte> buffer_;
  SchemeRules rules_;
  std::optional<coding::ErasureCode> code_;  // of the first offer
  std::uint32_t chunk_bytes_;
  bool carries_payload_;

  bool offered_ = false;
  bool flushed_ = false;  // everything has been sent once, and what is missing is missing
  std::uint64_t length_ = 0;
  std::uint64_t behind_ = 0;
  ArrivalTracker tracker_;
  ArrivalTracker parity_tracker_;
  ShardMap map_;
  SubmessageProgress progress_;
  RepairProgress repairs_;
  std::uint32_t head_held_ = 0;  // chunks in front of the tail

  // Gaps below settled_ are older than the tolerance; sampled_ becomes settled_ when its time has come.
  std::uint32_t settled_ = 0;
  std::uint32_t sampled_ = 0;
  std::uint32_t named_ = 0;
  TimePoint sampled_at_{};
  Duration gap_wait_{0};  // the tolerance at the last look
  TimePoint report_at_ = kNever;
  std::uint32_t report_from_ = 0;  // where a report goes on that its datagram did not hold
  TimePoint flush_at_ = kNever;    // when the sender's word that it has sent all takes effect
  TimePoint last_chunk_due_ = kNever;
  TimePoint fallback_at_ = kNever;  // FTO

  bool losses_counted_ = false;  // to the end
  std::uint32_t lost_ = 0;
  std::uint32_t loss_runs_ = 0;

  std::unique_ptr<AsyncWork> work_;
  std::uint32_t recovered_ = 0;
  bool fell_back_ = false;
};

}  // namespace sdr::reliability

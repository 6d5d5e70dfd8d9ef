// TransferSender: decides which chunks of one transfer to send, and when again (paper sections 4.1.1 and 4.1.2).
//
// Model: a transfer is one data message, and one parity message for coded schemes. Fresh chunks go once, in order, data
// before parity. Repairs go before fresh chunks. A chunk becomes a repair when its timeout runs out (SR RTO), or when a
// report that must have seen its last transmission still wants it (the others). Where the loss of a repair would cost a
// round trip that nothing hides, it is exposed, and covered behind the fresh data without waiting for that news
// (adaptive scheme): by copies, one pass over all of them after the other, so that those of a chunk are far apart; or
// where that would be many, by parity over the exposed chunks (repair_code.hpp).
//
// "Must have seen": a repair sent at stamp R is lost when the report echoes offers of a stamp >= R: they were sent
// behind it. A first transmission that a receiver without parity lists is lost, since that one lists gaps only after
// the reordering tolerance; one with parity may list what it has waited for too long, because we were slower than our
// rate says: for it the rule of repairs holds.
//
// Threads: one. No I/O, no clock. Calling order: next_repair() / next_fresh(), then sent(); handle() for each report;
// expire() on time.
// Invariants (checked by invariants()): fresh point never beyond the chunks; a queued repair is not held by the peer.
// Source: RFC 9002 section 6.1 and RFC 8985 for loss by later evidence; docs/reliability.md.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "coding/parity_plan.hpp"
#include "reliability/control_message.hpp"
#include "reliability/repair_code.hpp"
#include "reliability/scheme.hpp"
#include "reliability/transfer_coding.hpp"

namespace sdr::reliability {

struct TransferPlan {
  std::uint64_t transfer = 0;
  std::uint64_t write = 0;  // as in its offer
  std::uint64_t write_length = 0;
  std::uint64_t offset = 0;  // in the Write
  std::optional<std::uint32_t> immediate;
  std::span<const std::byte> data;
  std::uint32_t chunk_bytes = 0;
  bool carries_payload = true;
  CodingLayout layout;  // nothing in it is coded without a code
};

class TransferSender {
 public:
  // `code` is null when no chunk is coded.
  TransferSender(const TransferPlan& plan, SchemeRules rules, const coding::ErasureCode* code, Executor& executor);

  enum class Kind : std::uint8_t { Fresh, Parity, Repair, Cover, RepairParity };
  struct Extent {
    Kind kind = Kind::Fresh;
    std::uint32_t first = 0;
    std::uint32_t count = 0;
    std::uint64_t packets = 0;  // the only ones of its one chunk that are wanted, a bit each; 0: all of all chunks
    // It goes into the parity message.
    [[nodiscard]] bool parity() const { return kind == Kind::Parity || kind == Kind::RepairParity; }
    [[nodiscard]] bool again() const { return kind == Kind::Repair || kind == Kind::Cover; }
  };
  std::optional<Extent> next_repair(std::uint32_t most);
  // One whose time has come.
  std::optional<Extent> next_cover(std::uint32_t most, TimePoint now);
  std::optional<Extent> next_repair_parity(std::uint32_t most);
  // Nothing while parity is still being encoded.
  std::optional<Extent> next_fresh(std::uint32_t most) const;
  // How a repair is covered: by so many further copies, each at least so long after the one before.
  struct Covering {
    std::uint32_t copies = 0;
    Duration spacing{0};
  };
  // The extent was handed to the transport and leaves it at `leaves`.
  void sent(const Extent& extent, TimePoint leaves, Duration rto, const Covering& covering);
  [[nodiscard]] std::span<const std::byte> bytes(const Extent& extent) const;

  // Protocol: it claims chunks that have not been sent.
  Result<void> handle(const Report& report, Stamp echo);
  // Whether the peer can hold everything: parity goes after the data, and restores no more than was sent.
  [[nodiscard]] bool may_be_complete() const { return next_data_ == chunks_; }
  void complete();
  // Moves chunks whose timeout has run out to the repairs.
  void expire(TimePoint now);
  // Nobody looked for so long: the timeouts did not run meanwhile.
  void postpone(Duration absence);
  // All that was handed out has left the transport by now.
  void left(TimePoint now);
  // The extent should have left and has not: no offer so far was sent behind it, and its timeout does not run.
  void held_up(const Extent& extent);
  // One that was held up has left.
  void left_late(const Extent& extent, Duration rto, TimePoint now);
  [[nodiscard]] TimePoint next_timeout() const;
  // When the next cover may go, if that is later than now.
  [[nodiscard]] TimePoint next_cover_due(TimePoint now) const;
  // Repairs that are to be covered and are not yet: whether there are any, and those that a code can be made over. Ones
  // that are known to have arrived are among them: without them, those left would be the lost ones.
  [[nodiscard]] bool exposed() const { return !exposed_.empty(); }
  [[nodiscard]] bool repairs_left() const { return !repairs_.empty(); }
  [[nodiscard]] std::vector<std::uint32_t> exposed_repairs() const;
  // Covers all of them by copies; or these by parity behind that of the tail, in groups that are named so many times,
  // and the others by copies.
  void cover_by_copies();
  void cover_by_code(std::span<const std::uint32_t> chunks, std::uint32_t groups, const coding::ErasureCode& code,
                     std::uint32_t statements, Executor& executor);
  [[nodiscard]] std::uint32_t next_block_first() const { return blocks_.next_first(parity_chunks()); }
  [[nodiscard]] RepairBlocks& blocks() { return blocks_; }
  [[nodiscard]] const RepairBlocks& blocks() const { return blocks_; }

  [[nodiscard]] const TransferPlan& plan() const { return plan_; }
  [[nodiscard]] std::uint32_t chunks() const { return chunks_; }
  [[nodiscard]] std::uint32_t parity_chunks() const { return encoder_ ? encoder_->map().layout.parity_chunks() : 0; }
  [[nodiscard]] bool fresh_left() const { return next_data_ < chunks_ || next_parity_ < parity_chunks(); }
  // First transmissions, parity among them, that have yet to be handed out.
  [[nodiscard]] std::uint64_t fresh_bytes_left() const {
    return std::uint64_t{chunks_ - next_data_ + parity_chunks() - next_parity_} * plan_.chunk_bytes;
  }
  // Parity shards that every submessage has been given.
  [[nodiscard]] std::uint32_t parity_layer() const { return next_parity_ / std::max(1U, plan_.layout.submessages); }
  [[nodiscard]] bool data_handed_out() const { return next_data_ == chunks_; }
  [[nodiscard]] bool done() const { return done_; }
  // Done, and no encoding task reads the data any more.
  [[nodiscard]] bool released() const { return done_ && (!encoder_ || encoder_->work().idle()) && blocks_.idle(); }
  [[nodiscard]] std::uint64_t bytes_held() const;  // by the peer, as far as it has said
  // Of the chunks handed out, those of which a loss is known; parity that made up for more is not in it.
  [[nodiscard]] double lost_share() const {
    return next_data_ == 0 ? 0 : static_cast<double>(resent_.size()) / next_data_;
  }
  [[nodiscard]] std::uint64_t retransmitted() const { return retransmitted_; }
  [[nodiscard]] bool invariants() const;

 private:
  struct SendRecord {  // SR RTO: what went out when, oldest first
    std::uint32_t first;
    std::uint32_t count;
    TimePoint expires;
  };
  struct FreshRecord {  // coded: up to where first transmissions had gone when, oldest first
    std::uint32_t end;
    Stamp left;
  };
  struct Cover {
    ChunkRange chunks;
    std::uint32_t copies;  // this one and those after it
    Duration spacing;
    TimePoint not_before;
  };
  static constexpr Stamp kQueued = UINT64_MAX;
  static constexpr Stamp kHeldUp = UINT64_MAX - 1;

  [[nodiscard]] bool held(std::uint32_t chunk) const { return (held_[chunk / 64] >> (chunk % 64) & 1) != 0; }
  void hold(std::uint32_t from, std::uint32_t to);
  void want(std::uint32_t chunk, Stamp echo);
  void queue_repair(std::uint32_t chunk);
  void note_echo(Stamp echo);
  // Of all that has gone with the extent: chunks sent again from one stamp to another, and records.
  void restamp(const Extent& extent, Stamp stamp, TimePoint expires);
  // The first chunks of `range` that the peer does not hold, at most so many; those before them leave the range.
  std::uint32_t skip_held(ChunkRange& range, std::uint32_t most);
  // Those chunks, or the first of them alone when only packets of it are wanted.
  [[nodiscard]] Extent again(Kind kind, std::uint32_t first, std::uint32_t count) const;
  void sent_again(const Extent& extent, TimePoint leaves, const Covering& covering);

  TransferPlan plan_;
  SchemeRules rules_;
  std::uint32_t chunks_;
  std::uint32_t next_data_ = 0;
  std::uint32_t next_parity_ = 0;
  bool done_ = false;
  std::uint64_t retransmitted_ = 0;
  std::uint32_t held_chunks_ = 0;
  std::vector<std::uint64_t> held_;
  std::deque<ChunkRange> repairs_;
  std::deque<Cover> covers_;
  std::deque<Cover> exposed_;
  RepairBlocks blocks_;
  std::unordered_map<std::uint32_t, Stamp>
      resent_;  // last repair of a chunk; kQueued while one, or its cover, is to go, kHeldUp while it has not left
  std::unordered_map<std::uint32_t, std::uint64_t> holes_;  // chunks of which the peer wants packets alone
  std::deque<SendRecord> records_;
  std::deque<FreshRecord> fresh_records_;
  std::uint32_t fresh_seen_ = 0;  // first transmissions below were sent before the offers that the peer has echoed
  std::unique_ptr<ParityEncoder> encoder_;
};

}  // namespace sdr::reliability

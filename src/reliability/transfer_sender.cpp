#include "reliability/transfer_sender.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

namespace sdr::reliability {

TransferSender::TransferSender(const TransferPlan& plan, SchemeRules rules, const coding::ErasureCode* code,
                               Executor& executor)
    : plan_(plan),
      rules_(rules),
      chunks_(static_cast<std::uint32_t>((plan.data.size() + plan.chunk_bytes - 1) / plan.chunk_bytes)),
      held_((chunks_ + 63) / 64, 0) {
  if (code != nullptr && chunks_ > 0) {
    const ShardMap map{plan.layout, plan.data.size(), plan.chunk_bytes, plan.carries_payload};
    encoder_ = std::make_unique<ParityEncoder>(*code, map, plan.data, executor);
  }
}

std::uint32_t TransferSender::skip_held(ChunkRange& range, std::uint32_t most) {
  while (range.count > 0 && held(range.first)) {  // acknowledged while it waited
    resent_.erase(range.first);
    ++range.first;
    --range.count;
  }
  std::uint32_t count = 0;
  while (count < range.count && count < most && !held(range.first + count)) ++count;
  return count;
}

TransferSender::Extent TransferSender::again(Kind kind, std::uint32_t first, std::uint32_t count) const {
  if (holes_.empty()) return {kind, first, count};
  if (const auto hole = holes_.find(first); hole != holes_.end()) return {kind, first, 1, hole->second};
  std::uint32_t whole = 1;
  while (whole < count && !holes_.contains(first + whole)) ++whole;
  return {kind, first, whole};
}

std::optional<TransferSender::Extent> TransferSender::next_repair(std::uint32_t most) {
  for (; !repairs_.empty(); repairs_.pop_front()) {
    if (const std::uint32_t count = skip_held(repairs_.front(), most); count > 0)
      return again(Kind::Repair, repairs_.front().first, count);
  }
  return std::nullopt;
}

std::optional<TransferSender::Extent> TransferSender::next_cover(std::uint32_t most, TimePoint now) {
  for (; !covers_.empty(); covers_.pop_front()) {
    Cover& next = covers_.front();
    const std::uint32_t count = skip_held(next.chunks, most);
    if (count == 0) continue;
    if (next.not_before > now) return std::nullopt;
    return again(Kind::Cover, next.chunks.first, count);
  }
  return std::nullopt;
}

std::optional<TransferSender::Extent> TransferSender::next_repair_parity(std::uint32_t most) {
  const auto parity = blocks_.next(most, [this](std::uint32_t chunk) { return !held(chunk); });
  if (!parity) return std::nullopt;
  return Extent{Kind::RepairParity, parity->first, parity->count};
}

std::optional<TransferSender::Extent> TransferSender::next_fresh(std::uint32_t most) const {
  if (next_data_ < chunks_) return Extent{Kind::Fresh, next_data_, std::min(most, chunks_ - next_data_)};
  const std::uint32_t parity = parity_chunks();
  std::uint32_t count = 0;
  while (count < most && next_parity_ + count < parity && encoder_->ready(next_parity_ + count)) ++count;
  if (count == 0) return std::nullopt;
  // Parity shorter than its chunk does not lie back to back: one chunk an extent.
  if (encoder_->map().shard_bytes() != plan_.chunk_bytes) count = 1;
  return Extent{Kind::Parity, next_parity_, count};
}

void TransferSender::sent(const Extent& extent, TimePoint leaves, Duration rto, const Covering& covering) {
  switch (extent.kind) {
    case Kind::Parity:
      next_parity_ += extent.count;
      return;
    case Kind::RepairParity:
      blocks_.sent({extent.first, extent.count}, [&](std::uint32_t chunk) { resent_[chunk] = to_stamp(leaves); });
      return;
    case Kind::Fresh:
      next_data_ += extent.count;
      if (encoder_) fresh_records_.push_back({next_data_, to_stamp(leaves)});
      break;
    case Kind::Repair:
    case Kind::Cover:
      sent_again(extent, leaves, covering);
      break;
  }
  if (!rules_.resends_on_report()) records_.push_back({extent.first, extent.count, leaves + rto});
}

void TransferSender::sent_again(const Extent& extent, TimePoint leaves, const Covering& covering) {
  const bool cover = extent.kind == Kind::Cover;
  ChunkRange& range = cover ? covers_.front().chunks : repairs_.front();
  const Covering left = cover ? Covering{covers_.front().copies - 1, covers_.front().spacing} : covering;
  std::deque<Cover>& behind = cover ? covers_ : exposed_;
  range.first += extent.count;
  range.count -= extent.count;
  if (range.count == 0) {
    if (cover)
      covers_.pop_front();
    else
      repairs_.pop_front();
  }
  retransmitted_ += extent.count;
  if (left.copies > 0)
    behind.push_back({{extent.first, extent.count}, left.copies, left.spacing, leaves + left.spacing});
  const Stamp stamp = cover && left.copies > 0 ? kQueued : to_stamp(leaves);
  for (std::uint32_t c = extent.first; c < extent.first + extent.count; ++c) resent_[c] = stamp;
}

std::vector<std::uint32_t> TransferSender::exposed_repairs() const {
  std::vector<std::uint32_t> chunks;
  for (const Cover& cover : exposed_)
    for (std::uint32_t chunk = cover.chunks.first; chunk < cover.chunks.first + cover.chunks.count; ++chunk)
      if (!blocks_.contains(chunk)) chunks.push_back(chunk);
  // One that was found lost meanwhile has gone twice.
  std::sort(chunks.begin(), chunks.end());
  chunks.erase(std::unique(chunks.begin(), chunks.end()), chunks.end());
  return chunks;
}

void TransferSender::cover_by_copies() {
  for (const Cover& cover : exposed_)
    for (std::uint32_t chunk = cover.chunks.first; chunk < cover.chunks.first + cover.chunks.count; ++chunk) {
      // Asked for again, it is a repair once more; in a group, it is covered.
      Stamp& stamp = resent_[chunk];
      if (held(chunk) || stamp == kQueued) continue;
      stamp = kQueued;
      if (!covers_.empty() && covers_.back().chunks.first + covers_.back().chunks.count == chunk &&
          covers_.back().copies == cover.copies && covers_.back().not_before == cover.not_before)
        ++covers_.back().chunks.count;
      else
        covers_.push_back({{chunk, 1}, cover.copies, cover.spacing, cover.not_before});
    }
  exposed_.clear();
}

void TransferSender::cover_by_code(std::span<const std::uint32_t> chunks, std::uint32_t groups,
                                   const coding::ErasureCode& code, std::uint32_t statements, Executor& executor) {
  for (const std::uint32_t chunk : chunks)
    if (!held(chunk)) resent_[chunk] = kQueued;
  const RepairBlock block{.parity_first = next_block_first(),
                          .groups = groups,
                          .data_each = static_cast<std::uint8_t>(code.shape().k),
                          .parity_each = static_cast<std::uint8_t>(code.shape().m)};
  const ShardMap map{plan_.layout, plan_.data.size(), plan_.chunk_bytes, plan_.carries_payload};
  blocks_.add(std::make_unique<RepairEncoder>(block, code, chunks, map, plan_.data, executor), statements);
  cover_by_copies();  // what is left
}

std::span<const std::byte> TransferSender::bytes(const Extent& extent) const {
  if (extent.kind == Kind::RepairParity) return blocks_.bytes({extent.first, extent.count}, plan_.chunk_bytes);
  if (extent.parity())
    return {encoder_->chunk(extent.first),
            (extent.count - 1) * std::size_t{plan_.chunk_bytes} + encoder_->map().shard_bytes()};
  const std::size_t from = std::size_t{extent.first} * plan_.chunk_bytes;
  const std::size_t to = std::min(from + std::size_t{extent.count} * plan_.chunk_bytes, plan_.data.size());
  return plan_.data.subspan(from, to - from);
}

void TransferSender::hold(std::uint32_t from, std::uint32_t to) {
  to = std::min(to, chunks_);
  while (from < to) {
    const std::uint32_t end = std::min(to, (from / 64 + 1) * 64);
    const std::uint32_t width = end - from;
    const std::uint64_t mask = (width == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << width) - 1) << (from % 64);
    held_chunks_ += static_cast<std::uint32_t>(std::popcount(mask & ~held_[from / 64]));
    held_[from / 64] |= mask;
    from = end;
  }
}

void TransferSender::want(std::uint32_t chunk, Stamp echo) {
  if (chunk >= next_data_) return;
  // A coded receiver may want today what it could do without yesterday.
  if (held(chunk)) {
    held_[chunk / 64] &= ~(std::uint64_t{1} << (chunk % 64));
    --held_chunks_;
  }
  const auto last = resent_.find(chunk);
  if (last == resent_.end() && encoder_ && plan_.layout.covers(chunk) && chunk >= fresh_seen_) return;
  if (last == resent_.end() || (last->second != kQueued && last->second <= echo)) queue_repair(chunk);
}

void TransferSender::queue_repair(std::uint32_t chunk) {
  resent_[chunk] = kQueued;
  if (!repairs_.empty() && repairs_.back().first + repairs_.back().count == chunk)
    ++repairs_.back().count;
  else
    repairs_.push_back({chunk, 1});
}

Result<void> TransferSender::handle(const Report& report, Stamp echo) {
  if (done_) return {};
  if (report.base > next_data_ || (report.complete && !may_be_complete()))
    return Error{ErrorCode::Protocol,
                 fmt::format("the peer claims to hold {} chunks of transfer {}, of which {} of {} have been sent",
                             report.complete ? chunks_ : report.base, plan_.transfer, next_data_, chunks_)};
  if (report.complete) {
    complete();
    return {};
  }
  hold(0, report.base);
  std::uint32_t at = report.from;
  for (const ChunkRange& range : report.missing) {
    hold(at, range.first);
    at = range.first + range.count;
  }
  hold(at, report.horizon);
  if (!holes_.empty())
    for (const ChunkRange& range : report.missing)
      for (std::uint32_t c = range.first; c < range.first + range.count && c < chunks_; ++c) holes_.erase(c);
  for (const ChunkHole& hole : report.holes)
    if (hole.chunk < next_data_) holes_[hole.chunk] = hole.packets;
  if (!rules_.resends_on_report()) return {};
  note_echo(echo);
  for (const ChunkRange& range : report.missing)
    for (std::uint32_t c = range.first; c < range.first + range.count && c < chunks_; ++c) want(c, echo);
  return {};
}

void TransferSender::complete() {
  done_ = true;
  held_chunks_ = chunks_;
  next_data_ = chunks_;
  next_parity_ = parity_chunks();
  repairs_.clear();
  covers_.clear();
  exposed_.clear();
  blocks_.cancel();
  records_.clear();
  fresh_records_.clear();
  resent_.clear();
  holes_.clear();
  if (encoder_) encoder_->work().cancel();
}

void TransferSender::expire(TimePoint now) {
  while (!records_.empty() && records_.front().expires <= now) {
    const SendRecord record = records_.front();
    records_.pop_front();
    for (std::uint32_t c = record.first; c < record.first + record.count; ++c) {
      if (held(c)) continue;
      const auto last = resent_.find(c);
      if (last == resent_.end() || last->second != kQueued) queue_repair(c);
    }
  }
}

void TransferSender::note_echo(Stamp echo) {
  for (; !fresh_records_.empty() && fresh_records_.front().left <= echo; fresh_records_.pop_front())
    fresh_seen_ = fresh_records_.front().end;
}

void TransferSender::postpone(Duration absence) {
  for (SendRecord& record : records_)
    if (record.expires != kNever) record.expires += absence;  // never: it has yet to leave
}

void TransferSender::left(TimePoint now) {
  for (FreshRecord& record : fresh_records_) record.left = std::min(record.left, to_stamp(now));
}

void TransferSender::held_up(const Extent& extent) {
  restamp(extent, kHeldUp, kNever);
}

void TransferSender::left_late(const Extent& extent, Duration rto, TimePoint now) {
  restamp(extent, to_stamp(now), now + rto);
}

void TransferSender::restamp(const Extent& extent, Stamp stamp, TimePoint expires) {
  const auto restamp_chunk = [&](std::uint32_t chunk) {
    const auto resent = resent_.find(chunk);
    if (resent == resent_.end() || resent->second == kQueued) return;
    if (stamp == kHeldUp || resent->second == kHeldUp) resent->second = stamp;
  };
  switch (extent.kind) {
    case Kind::Parity:
      return;
    case Kind::RepairParity:
      blocks_.each_chunk_ended_by({extent.first, extent.count}, restamp_chunk);
      return;
    case Kind::Fresh:
      for (FreshRecord& record : fresh_records_)
        if (record.end == extent.first + extent.count) record.left = stamp;
      break;
    case Kind::Repair:
    case Kind::Cover:
      for (std::uint32_t chunk = extent.first; chunk < extent.first + extent.count; ++chunk) restamp_chunk(chunk);
      break;
  }
  for (SendRecord& record : records_)
    if (record.first == extent.first && record.count == extent.count) record.expires = expires;
}

TimePoint TransferSender::next_timeout() const {
  return records_.empty() ? kNever : records_.front().expires;
}

// One whose time has come waits for the pace, like everything that may be sent: no timer is needed for it.
TimePoint TransferSender::next_cover_due(TimePoint now) const {
  if (covers_.empty() || fresh_left() || covers_.front().not_before <= now) return kNever;
  return covers_.front().not_before;
}

std::uint64_t TransferSender::bytes_held() const {
  return std::min<std::uint64_t>(std::uint64_t{held_chunks_} * plan_.chunk_bytes, plan_.data.size());
}

bool TransferSender::invariants() const {
  return next_data_ <= chunks_ && next_parity_ <= parity_chunks() && held_chunks_ <= chunks_;
}

}  // namespace sdr::reliability

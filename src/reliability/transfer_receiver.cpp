#include "reliability/transfer_receiver.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace sdr::reliability {
namespace {

// A report goes on in the next datagram when one does not hold it; no datagram holds more ranges than this.
constexpr std::size_t kMaxRanges = 1024;

}  // namespace

void TransferReceiver::offered(std::uint64_t length, std::uint64_t behind, const CodingLayout& layout,
                               const coding::ErasureCode* code, bool all_sent, TimePoint now,
                               const ReceiverTiming& timing) {
  if (!offered_) {
    offered_ = true;
    length_ = length;
    behind_ = behind;
    sampled_at_ = now;
    const auto chunks = static_cast<std::uint32_t>((length + chunk_bytes_ - 1) / chunk_bytes_);
    tracker_.begin(chunks);
    map_ = {code == nullptr ? CodingLayout::uncoded(chunks) : layout, length, chunk_bytes_, carries_payload_};
    if (code != nullptr) {
      code_ = *code;
      parity_tracker_.begin(map_.layout.parity_chunks());
      progress_.begin(*code_, map_.layout);
    }
  }
  if (all_sent && flush_at_ == kNever) flush_at_ = now + timing.tolerance;
  if (!has_all()) report_after(timing.tolerance, now);
}

Result<void> TransferReceiver::named(const RepairBlock& block, const RepairGroup& group,
                                     const coding::ErasureCode& code) {
  if (group.chunks.back() >= tracker_.chunks())
    return Error{ErrorCode::Protocol, fmt::format("the peer's repair group has chunk {} of transfer {}, which has {}",
                                                  group.chunks.back(), transfer_, tracker_.chunks())};
  return repairs_.add(block, group.group, group.chunks, code, tracker_, [this](std::uint32_t chunk) { hold(chunk); });
}

void TransferReceiver::hold(std::uint32_t chunk) {
  if (chunk >= map_.layout.first)
    progress_.data_arrived(chunk);
  else
    ++head_held_;
}

void TransferReceiver::look(ChunkBitmap data, ChunkBitmap parity, TimePoint now, const ReceiverTiming& timing) {
  const auto restored = [this](std::uint32_t chunk) { hold(chunk); };
  const bool repairs_named = !repairs_.empty();
  const bool data_came = tracker_.poll(data, [&](std::uint32_t chunk) {
    if (repairs_named) {
      if (repairs_.restores(chunk)) return;  // held already
      repairs_.data_arrived(chunk, restored);
    }
    hold(chunk);
  });
  if (repairs_named) repairs_.poll(parity, restored);
  if (coded()) {
    const bool parity_came = parity_tracker_.poll(parity, [this](std::uint32_t q) { progress_.parity_arrived(q); });
    if (data_came || parity_came) postpone_fallback(now, timing);
  }
  if (has_all()) {
    if (!losses_counted_) (void)count_losses(tracker_.chunks());
    losses_counted_ = true;
    return;
  }
  if (!timing.drained) return;
  if (!flushed_ && now >= std::min(flush_at_, fallback_at_)) {
    flushed_ = true;
    report_after(Duration::zero(), now);
  }
  watch_gaps(now, timing);
}

// Not before the time that the whole message takes from its first chunk on, and not while it is still coming: a sender
// that was held up is no loss.
void TransferReceiver::postpone_fallback(TimePoint now, const ReceiverTiming& timing) {
  if (!timing.sender_rate.limited()) return;
  if (last_chunk_due_ == kNever) {
    // What is behind it is coded as it is, as far as that matters here.
    const double coded_bytes = static_cast<double>(length_ + behind_) *
                               (1 + static_cast<double>(parity_tracker_.chunks()) / std::max(1U, map_.layout.coded));
    last_chunk_due_ = now + timing.sender_rate.time_for({static_cast<std::uint64_t>(coded_bytes)});
  }
  fallback_at_ = std::max(last_chunk_due_, now) + std::chrono::duration_cast<Duration>(timing.rtt * kFallbackBeta);
}

bool TransferReceiver::has_all() const {
  if (!offered_) return false;
  return tracker_.complete() || (has_head() && (!coded() || progress_.all_decodable()));
}

void TransferReceiver::watch_gaps(TimePoint now, const ReceiverTiming& timing) {
  gap_wait_ = timing.tolerance;
  if (now - sampled_at_ < timing.tolerance) return;
  settled_ = std::max(settled_, sampled_);
  sampled_ = tracker_.highest();
  sampled_at_ = now;
  if (settled_ <= named_) return;
  const bool gap = count_losses(settled_);
  if (!rules_.names_gaps_early() || !gap) return;
  bool wanted = tracker_.cumulative() < std::min(settled_, map_.layout.first);
  if (coded() && !wanted) each_needed([&wanted](std::uint32_t) { wanted = true; });
  if (wanted) report_after(Duration::zero(), now);
}

bool TransferReceiver::count_losses(std::uint32_t end) {
  const std::uint32_t runs = loss_runs_;
  tracker_.each_missing(std::max(named_, tracker_.cumulative()), end, [this](std::uint32_t, std::uint32_t count) {
    lost_ += count;
    ++loss_runs_;
  });
  named_ = std::max(named_, end);
  return loss_runs_ > runs;
}

void TransferReceiver::report_after(Duration wait, TimePoint now) {
  report_at_ = std::min(report_at_, now + wait);
}

TimePoint TransferReceiver::next_timeout() const {
  if (!offered_ || has_all()) return report_at_;
  // Unsettled gaps ask for the next sample; without any, the next arrival does.
  const bool unsettled =
      rules_.names_gaps_early() && tracker_.highest() > tracker_.cumulative() && tracker_.highest() > named_;
  return std::min({report_at_, flushed_ ? kNever : std::min(flush_at_, fallback_at_),
                   unsettled ? sampled_at_ + gap_wait_ : kNever});
}

void TransferReceiver::take_report(Report& report) {
  report_at_ = kNever;
  report.transfer = transfer_;
  report.complete = has_all();
  report.base = !coded() || !flushed_ ? tracker_.cumulative() : 0;
  report.from = std::max(report.base, report_from_);
  report.horizon = report.from;
  report.missing.clear();
  if (report.complete) {
    report.base = report.from = report.horizon = tracker_.chunks();
    report.lost = lost_;
    report.runs = loss_runs_;
  } else if (!coded() && repairs_.empty()) {
    list_missing(report);
  } else {
    list_needed(report);
  }
}

void TransferReceiver::reported(std::uint32_t horizon, TimePoint now) {
  report_from_ = horizon < report_end() && !has_all() ? horizon : 0;
  if (report_from_ != 0) report_after(Duration::zero(), now);
}

std::uint32_t TransferReceiver::report_end() const {
  if (flushed_) return tracker_.chunks();
  return !coded() || rules_.names_gaps_early() ? settled_ : 0;
}

void TransferReceiver::list_missing(Report& report) {
  report.horizon = std::max(report.from, report_end());
  tracker_.each_missing(report.from, report.horizon, [&](std::uint32_t first, std::uint32_t count) {
    if (report.missing.size() < kMaxRanges) report.missing.push_back({first, count});
  });
  if (report.missing.size() == kMaxRanges) report.horizon = report.missing.back().first + report.missing.back().count;
}

template <typename OnChunk>
void TransferReceiver::each_needed(OnChunk&& on_chunk) const {
  const CodingLayout& layout = map_.layout;
  if (flushed_) {
    for (std::uint32_t s = 0; s < layout.submessages; ++s)
      if (!progress_.decodable(s)) progress_.each_needed(s, on_chunk);
    return;
  }
  if (!rules_.names_gaps_early() || settled_ <= layout.first) return;
  // Of what is known to be lost, the last ones are what all the parity would not restore.
  std::vector<std::uint32_t> missing(layout.submessages, 0);
  tracker_.each_missing(std::max(layout.first, tracker_.cumulative()), settled_,
                        [&](std::uint32_t first, std::uint32_t count) {
                          for (std::uint32_t chunk = first; chunk < first + count; ++chunk)
                            if (++missing[layout.submessage_of(chunk)] > layout.parity_each) on_chunk(chunk);
                        });
}

void TransferReceiver::list_needed(Report& report) {
  std::vector<std::uint32_t> chunks;
  const std::uint32_t end = std::max(report.from, report_end());
  const auto list = [&chunks](std::uint32_t chunk) { chunks.push_back(chunk); };
  tracker_.each_missing(report.from, std::min(end, map_.layout.first), [&](std::uint32_t first, std::uint32_t n) {
    for (std::uint32_t chunk = first; chunk < first + n; ++chunk)
      if (repairs_.empty() || !repairs_.restores(chunk)) list(chunk);
  });
  const std::size_t head = chunks.size();
  each_needed(list);
  if (chunks.size() > head) fell_back_ = true;
  std::sort(chunks.begin(), chunks.end());
  report.horizon = end;
  for (auto at = std::lower_bound(chunks.begin(), chunks.end(), report.from); at != chunks.end(); ++at) {
    const std::uint32_t chunk = *at;
    if (!report.missing.empty() && report.missing.back().first + report.missing.back().count == chunk) {
      ++report.missing.back().count;
    } else if (report.missing.size() < kMaxRanges) {
      report.missing.push_back({chunk, 1});
    } else {
      report.horizon = chunk;
      break;
    }
  }
}

void TransferReceiver::decode(std::span<const std::byte> parity, Executor& executor) {
  work_ = std::make_unique<AsyncWork>();
  work_->run(executor, [this, parity] {
    recovered_ = repairs_.decode(map_, buffer_, parity);
    if (coded()) recovered_ += decode_missing(*code_, map_, progress_, buffer_, parity);
  });
}

std::uint64_t TransferReceiver::bytes_landed() const {
  return std::min<std::uint64_t>(std::uint64_t{tracker_.arrived()} * chunk_bytes_, length_);
}

}  // namespace sdr::reliability

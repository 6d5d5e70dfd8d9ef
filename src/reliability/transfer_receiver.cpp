#include "reliability/transfer_receiver.hpp"

#include <algorithm>

namespace sdr::reliability {
namespace {

// A report goes on in the next datagram when one does not hold it; no datagram holds more ranges than this.
constexpr std::size_t kMaxRanges = 1024;

}  // namespace

void TransferReceiver::offered(std::uint64_t length, bool all_sent, TimePoint now, const ReceiverTiming& timing) {
  if (!offered_) {
    offered_ = true;
    length_ = length;
    sampled_at_ = now;
    const auto chunks = static_cast<std::uint32_t>((length + chunk_bytes_ - 1) / chunk_bytes_);
    tracker_.begin(chunks);
    if (code_ != nullptr) {
      map_ = {CodingLayout(chunks, code_->shape()), length, chunk_bytes_, carries_payload_};
      parity_tracker_.begin(map_.layout.parity_chunks());
      progress_.begin(*code_, map_.layout);
    }
  }
  if (all_sent && flush_at_ == kNever) flush_at_ = now + timing.tolerance;
  if (!has_all()) report_after(timing.tolerance, now);
}

void TransferReceiver::look(ChunkBitmap data, ChunkBitmap parity, TimePoint now, const ReceiverTiming& timing) {
  if (code_ == nullptr) {
    tracker_.poll(data, [](std::uint32_t) {});
  } else {
    const bool data_came = tracker_.poll(data, [this](std::uint32_t chunk) { progress_.data_arrived(chunk); });
    const bool parity_came = parity_tracker_.poll(parity, [this](std::uint32_t q) { progress_.parity_arrived(q); });
    if (data_came || parity_came) postpone_fallback(now, timing);
  }
  if (has_all()) return;
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
    const std::uint64_t coded_bytes = (std::uint64_t{tracker_.chunks()} + parity_tracker_.chunks()) * chunk_bytes_;
    last_chunk_due_ = now + timing.sender_rate.time_for({coded_bytes});
  }
  fallback_at_ = std::max(last_chunk_due_, now) + std::chrono::duration_cast<Duration>(timing.rtt * kFallbackBeta);
}

bool TransferReceiver::has_all() const {
  if (!offered_) return false;
  return tracker_.complete() || (code_ != nullptr && progress_.all_decodable());
}

void TransferReceiver::watch_gaps(TimePoint now, const ReceiverTiming& timing) {
  gap_wait_ = timing.tolerance;
  if (now - sampled_at_ < timing.tolerance) return;
  settled_ = std::max(settled_, sampled_);
  sampled_ = tracker_.highest();
  sampled_at_ = now;
  if (!rules_.names_gaps_early() || settled_ <= named_) return;
  bool gap = false;
  tracker_.each_missing(std::max(named_, tracker_.cumulative()), settled_,
                        [&gap](std::uint32_t, std::uint32_t) { gap = true; });
  named_ = settled_;
  if (gap) report_after(Duration::zero(), now);
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
  report.base = code_ == nullptr || !flushed_ ? tracker_.cumulative() : 0;
  report.from = std::max(report.base, report_from_);
  report.horizon = report.from;
  report.missing.clear();
  if (report.complete) {
    report.base = report.from = report.horizon = tracker_.chunks();
  } else if (code_ == nullptr) {
    list_missing(report, report_end());
  } else if (flushed_) {
    list_needed(report);
  }
}

void TransferReceiver::reported(std::uint32_t horizon, TimePoint now) {
  report_from_ = horizon < report_end() && !has_all() ? horizon : 0;
  if (report_from_ != 0) report_after(Duration::zero(), now);
}

std::uint32_t TransferReceiver::report_end() const {
  if (flushed_) return tracker_.chunks();
  return code_ == nullptr ? settled_ : 0;
}

void TransferReceiver::list_missing(Report& report, std::uint32_t horizon) {
  report.horizon = std::max(report.from, horizon);
  tracker_.each_missing(report.from, report.horizon, [&](std::uint32_t first, std::uint32_t count) {
    if (report.missing.size() < kMaxRanges) report.missing.push_back({first, count});
  });
  if (report.missing.size() == kMaxRanges) report.horizon = report.missing.back().first + report.missing.back().count;
}

void TransferReceiver::list_needed(Report& report) {
  fell_back_ = true;
  std::vector<std::uint32_t> chunks;
  for (std::uint32_t s = 0; s < map_.layout.submessages; ++s)
    if (!progress_.decodable(s)) progress_.each_needed(s, [&chunks](std::uint32_t chunk) { chunks.push_back(chunk); });
  std::sort(chunks.begin(), chunks.end());
  report.horizon = tracker_.chunks();
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
  work_->run(executor, [this, parity] { recovered_ = decode_missing(*code_, map_, progress_, buffer_, parity); });
}

std::uint64_t TransferReceiver::bytes_landed() const {
  return std::min<std::uint64_t>(std::uint64_t{tracker_.arrived()} * chunk_bytes_, length_);
}

}  // namespace sdr::reliability

#include "sdk/clear_to_send.hpp"

#include <algorithm>

namespace sdr::sdk {
namespace {

bool same(const Announcement& a, const Announcement& b) {
  return a.max_length == b.max_length && a.tag == b.tag && a.aim.size == b.aim.size &&
         std::equal(a.aim.bytes.begin(), a.aim.bytes.begin() + a.aim.size, b.aim.bytes.begin());
}

}  // namespace

void CtsAnnouncer::announce(const Announcement& announcement) {
  ring_[posted_ % ring_.size()] = announcement;
  ++posted_;
  if (!held_ || !sender_has_plenty()) say_now();
}

// The repeats start anew.
void CtsAnnouncer::say_now() {
  held_ = false;
  next_ = TimePoint::min();
  interval_ = Duration::zero();
}

void CtsAnnouncer::handle(const GrantsKnown& message) {
  known_ = std::max(known_, std::min(message.known, posted_));
  described_ = std::max(described_, known_);
  if (message.wanted && message.known < posted_) {
    // It has less than it was thought to, when a packet was taken for one of a message not yet sent (receive_queue.hpp,
    // "late packets"). An old request that comes again costs a datagram.
    known_ = described_ = stated_ = message.known;
    asked_ = true;
    say_now();
  }
}

void CtsAnnouncer::seen_in_use(std::uint64_t number) {
  used_ = std::max(used_, std::min(number + 1, posted_));
  known_ = std::max(known_, used_);
  described_ = std::max(described_, known_);
  if (held_ && !sender_has_plenty()) say_now();
}

CtsAnnouncer::Run CtsAnnouncer::run_from(std::uint64_t from) const {
  const std::uint64_t limit = std::min(posted_, from + UINT16_MAX);
  const std::uint64_t oldest = posted_ - std::min<std::uint64_t>(posted_, ring_.size());
  if (from < oldest) return {&gone_, std::min(oldest, limit)};
  const Announcement& announcement = ring_[from % ring_.size()];
  std::uint64_t end = from + 1;
  while (end < limit && same(announcement, ring_[end % ring_.size()])) ++end;
  return {&announcement, end};
}

bool CtsAnnouncer::poll(ByteWriter& writer, TimePoint now, Duration rtt) {
  if (known_ >= posted_ || now < next_) return false;
  if (hold_ > Duration::zero() && next_ == TimePoint::min() && !asked_ && sender_has_plenty()) {
    held_ = true;
    next_ = now + hold_;
    return false;
  }
  held_ = false;
  begin_cts(writer, posted_, described_);
  while (described_ < posted_) {
    const Run run = run_from(described_);
    const auto repeat = static_cast<std::uint16_t>(run.end - described_);
    if (!put_announcement(writer, *run.announcement, repeat)) return true;  // more follows
    described_ = run.end;
  }
  // The statement is complete; say it again later, from what is known by then.
  const Duration first = std::clamp(rtt + rtt / 4, kFastestRepeat, kSlowestRepeat);
  interval_ = interval_ == Duration::zero() ? first : std::min(interval_ * 2, kSlowestRepeat);
  next_ = now + interval_;
  described_ = known_;
  stated_ = posted_;
  asked_ = false;
  return true;
}

void GrantBook::handle(const ClearToSend& cts) {
  if (cts.first > known_) return;  // a gap: the request or the next repeat brings what is between
  bool news = false;
  std::uint64_t number = cts.first;
  ByteReader reader(cts.announcements);
  while (const auto run = next_announcement(reader)) {
    for (std::uint16_t i = 0; i < run->repeat && number < cts.posted; ++i, ++number) {
      if (number < known_) continue;
      if (number - oldest_ >= ring_.size()) break;  // more than there are slots: not a receiver of ours
      ring_[number % ring_.size()] = run->announcement;
      known_ = number + 1;
      news = true;
    }
  }
  if (news) wanted_ = false;
  if (!news) answer_due_ = true;
}

const Announcement* GrantBook::find(std::uint64_t number) const {
  if (number >= known_ || number + ring_.size() < known_) return nullptr;
  return &ring_[number % ring_.size()];
}

bool GrantBook::poll(ByteWriter& writer, TimePoint now, Duration rtt) {
  const bool ask = wanted_ && now >= next_request_;
  if (!ask && !answer_due_) return false;
  write_control(writer, GrantsKnown{known_, wanted_});
  answer_due_ = false;
  if (ask) next_request_ = now + std::clamp(rtt + rtt / 4, kFastestRepeat, kSlowestRepeat);
  return true;
}

TimePoint GrantBook::next_timeout() const {
  if (answer_due_) return TimePoint::min();
  return wanted_ ? next_request_ : kNever;
}

}  // namespace sdr::sdk

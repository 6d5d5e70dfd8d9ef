#include "reliability/rate_group.hpp"

#include <algorithm>

namespace sdr::reliability {
namespace {

// Questions: a share of the RTT apart, within these, and one for so much data at most.
constexpr int kQuestionShare = 16;
constexpr Duration kSoonestQuestion = std::chrono::microseconds(400);
constexpr Duration kLatestQuestion = std::chrono::milliseconds(25);
constexpr std::uint64_t kQuestionPackets = 8;
// Of what the pace allows, control datagrams take a share. Bytes behind it count from some packets on, up to which a
// batch is ahead or behind; beyond, a share of a round trip's is too much.
constexpr double kAllowedShare = 0.97;
constexpr double kNotBehind = -16;
constexpr double kHeldUp = 0.15;
// One that had something to send so recently counts among the active.
constexpr Duration kStaysActive = std::chrono::milliseconds(5);

Bandwidth rate_of(std::uint64_t bytes, Duration in) {
  if (in <= Duration::zero()) return {};
  return {static_cast<double>(bytes) * 8e9 / static_cast<double>(in.count())};
}

}  // namespace

// --- the group ---

std::size_t RateGroup::active(const Share& self, TimePoint now) const {
  const Duration stays = std::max(kStaysActive, rtt_);
  std::size_t count = 1;
  for (const auto& share : shares_)
    if (share.get() != &self && share->wanted_at != TimePoint::min() && now - share->wanted_at < stays) ++count;
  return count;
}

void RateGroup::reported(const FlightRecord::Sample& flight, bool dark, TimePoint now) {
  delivered_ += flight.delivered;
  const Duration in = std::max(flight.landed_in, flight.sent_in);
  RateSample sample;
  sample.now = now;
  sample.delivered = flight.delivered;
  sample.lost = flight.lost;
  sample.sent = flight.sent;
  sample.packets_lost = flight.packets_lost;
  sample.packets_landed = flight.packets_landed;
  sample.marks = flight.marks;
  if (flight.landed_in > Duration::zero()) {
    sample.rate = rate_of(delivered_ - flight.mark.delivered, in);
    sample.send_rate = rate_of(delivered_ - flight.mark.delivered, flight.sent_in);
  }
  sample.landing = rate_of(flight.delivered, flight.apart_there);
  sample.sending = rate_of(flight.sent, flight.apart_here);
  if (flight.rtt > Duration::zero()) sample.rtt = middle_rtt_.add(flight.rtt);
  sample.delay = middle_delay_.add(flight.delay);
  sample.newest_delay = flight.delay;
  sample.in_flight = in_flight_;
  sample.was_in_flight = flight.mark.in_flight;
  sample.app_limited = flight.app_limited;
  sample.dark = dark;
  if (flight.mark.delivered >= round_end_) {
    sample.round_start = true;
    round_end_ = delivered_;
  }
  if (flight.rtt > Duration::zero()) rtt_ = flight.rtt;
  const bool was_congested = controller_->congested();
  controller_->reported(sample);
  counts_.congestion_marks += flight.marks;
  (was_congested || controller_->congested() ? counts_.packets_lost_congestion : counts_.packets_lost_random) +=
      flight.packets_lost;
}

RateStatus RateGroup::status() const {
  const std::lock_guard lock(mutex_);
  RateStatus out = counts_;
  out.controller = mode_;
  out.in_flight = in_flight_;
  out.pace = controller_->pace();
  out.bandwidth = controller_->bandwidth();
  out.window = controller_->window() == UINT64_MAX ? 0 : controller_->window();
  controller_->describe(out);
  return out;
}

// --- a member ---

RateMember::RateMember(std::shared_ptr<RateGroup> group, std::uint32_t packet_bytes)
    : group_(std::move(group)), share_(std::make_shared<RateGroup::Share>()), packet_bytes_(packet_bytes) {
  const std::lock_guard lock(group_->mutex_);
  group_->shares_.push_back(share_);
}

RateMember::~RateMember() {
  const std::lock_guard lock(group_->mutex_);
  group_->in_flight_ -= share_->in_flight;
  std::erase(group_->shares_, share_);
}

void RateMember::note(const Sent& sent, TimePoint now) {
  const std::uint64_t in_flight = flight_.in_flight(sent.bytes);
  if (group_->in_flight_ == 0 && in_flight > 0 && group_->quiet_since_ != TimePoint::min())
    group_->controller_->resumed(now - group_->quiet_since_, now);
  group_->in_flight_ += in_flight - share_->in_flight;
  group_->quiet_since_ = group_->in_flight_ > 0                     ? TimePoint::min()
                         : group_->quiet_since_ == TimePoint::min() ? now
                                                                    : group_->quiet_since_;
  share_->in_flight = in_flight;
  if (sent.wants) share_->wanted_at = now;
  wanted_ = wanted_ && sent.wants;
  blocked_ = blocked_ || sent.packets >= limit_;
}

RateMember::Allowance RateMember::allowance(const Sent& sent, TimePoint now) {
  const std::lock_guard lock(group_->mutex_);
  if (!group_->begun_) {
    group_->begun_ = true;
    group_->rtt_ = sent.rtt;
    group_->controller_->begin(sent.rtt, packet_bytes_, now);
  }
  note(sent, now);
  group_->controller_->tick(now);
  const auto parts = static_cast<double>(group_->active(*share_, now));
  rtt_ = std::max(group_->rtt_, Duration(1));
  if (pace_.limited()) allowed_ += static_cast<double>(pace_.bytes_in(now - paced_at_).count);
  paced_at_ = now;
  pace_ = {group_->controller_->pace().bits_per_second / parts};
  const std::uint64_t window = group_->controller_->window();
  limit_ = UINT64_MAX;
  if (window != UINT64_MAX) {
    const double part = static_cast<double>(window) / parts / packet_bytes_;
    limit_ = flight_.packets_answered() + std::max<std::uint64_t>(2, static_cast<std::uint64_t>(part));
  }
  return {pace_, limit_, {group_->controller_->bandwidth().bits_per_second / parts}};
}

void RateMember::offered(Stamp stamp, const Sent& sent, TimePoint now) {
  const std::lock_guard lock(group_->mutex_);
  note(sent, now);
  if (pace_.limited()) allowed_ += static_cast<double>(pace_.bytes_in(now - paced_at_).count);
  paced_at_ = now;
  // Held up (by other work of the machine, say): more than a share of a round trip of what the pace had allowed was
  // never sent. What is only late is caught up.
  const bool first = asked_at_ == TimePoint::min();
  behind_ = first || blocked_ || !wanted_
                ? 0
                : std::max(kNotBehind * packet_bytes_,
                           behind_ + kAllowedShare * allowed_ - static_cast<double>(sent.bytes - asked_bytes_));
  allowed_ = 0;
  const bool held = behind_ > -kNotBehind * packet_bytes_ + kHeldUp * static_cast<double>(pace_.bytes_in(rtt_).count);
  if (held) behind_ = 0;
  flight_.offered(stamp, sent.packets, sent.bytes, {group_->delivered_, group_->in_flight_},
                  !first && (!wanted_ || held));
  wanted_ = sent.wants || sent.packets >= limit_;
  blocked_ = sent.packets >= limit_;
  asked_at_ = now;
  asked_bytes_ = sent.bytes;
}

void RateMember::reported(const FlightRecord::Word& word, const Sent& sent, bool dark, TimePoint now) {
  const std::lock_guard lock(group_->mutex_);
  const auto sample = flight_.landed(word, now);
  if (!sample) return;
  note(sent, now);
  group_->reported(*sample, dark, now);
}

TimePoint RateMember::question_at(const Sent& sent, TimePoint /*now*/) const {
  if (flight_.in_flight(sent.bytes) == 0 || sent.packets == flight_.packets_offered()) return kNever;
  if (asked_at_ == TimePoint::min()) return TimePoint::min();
  const Duration interval = std::clamp(rtt_ / kQuestionShare, kSoonestQuestion, kLatestQuestion);
  const TimePoint due = asked_at_ + interval;
  // Nothing more may go, or there is nothing more: only an answer moves it.
  const bool stuck = sent.packets >= limit_ || !sent.wants;
  const std::uint64_t cheap = kQuestionPackets * packet_bytes_;
  if (stuck || sent.bytes - asked_bytes_ >= cheap) return due;
  return pace_.limited() ? std::max(due, asked_at_ + pace_.time_for({cheap})) : due;
}

TimePoint RateMember::next_timeout() const {
  const std::lock_guard lock(group_->mutex_);
  return group_->controller_->next_timeout();
}

bool RateMember::congested() const {
  const std::lock_guard lock(group_->mutex_);
  return group_->controller_->congested();
}

}  // namespace sdr::reliability

#include "simulation/tcp_sender.hpp"

#include <algorithm>

namespace sdr::simulation {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kReordering = 3;  // transmissions, RFC 6675's DupThresh
constexpr Duration kLeastTimeout = 200ms;
constexpr Duration kMostTimeout = 120s;
constexpr Duration kFirstTimeout = 1s;
constexpr Duration kPaceCredit = 1ms;  // a pace that was not used may be caught up by so much, as with TSO

}  // namespace

void TcpSender::handle(const TcpAck& ack, TimePoint now) {
  TcpAckEvent event{.now = now, .in_flight_before = in_flight_};
  const std::uint64_t before = first_;
  for (std::uint64_t n = first_; n < std::min(ack.next, next_); ++n) deliver(n, event);
  while (first_ < ack.next && !outstanding_.empty()) {
    outstanding_.pop_front();
    ++first_;
  }
  selective_.drop_below(first_);
  for (std::uint8_t i = 0; i < ack.block_count; ++i) {
    const TcpRange& block = ack.blocks[i];
    selective_.add({std::max(block.begin, first_), std::min(block.end, next_)},
                   [&](std::uint64_t n) { deliver(n, event); });
  }
  if (event.newly_delivered == 0 && ack.marks == marks_) return;
  find_losses(event);
  // RFC 6298, 5.3: restarted by whatever acknowledges new data.
  if (event.newly_delivered > 0) {
    backoff_ = 0;
    timer_ = in_flight_ == 0 && lost_.empty() ? kNever : now + timeout();
  }
  if (recovering_ && first_ >= recovery_end_ && before != first_) {
    recovering_ = false;
    congestion_->end_recovery(now);
  }
  const bool marked = ack.marks > marks_;
  marks_ = std::max(marks_, ack.marks);
  event.delivered = delivered_;
  event.in_flight = in_flight_;
  event.least_rtt = least_;
  if (!recovering_ && (event.newly_lost > 0 || marked)) {
    recovering_ = true;
    recovery_end_ = next_;
    ++counts_.recoveries;
    congestion_->begin_recovery(event);
  }
  event.in_recovery = recovering_;
  congestion_->acknowledged(event);
}

// Source for the samples: the kernel's net/ipv4/tcp_rate.c.
void TcpSender::deliver(std::uint64_t number, TcpAckEvent& event) {
  Segment& segment = at(number);
  if (segment.state == State::Delivered) return;
  if (segment.state == State::InFlight) --in_flight_;
  segment.state = State::Delivered;
  ++delivered_;
  ++event.newly_delivered;
  delivered_time_ = event.now;
  const Duration age = event.now - segment.sent;
  // Sooner than the path allows: it was an earlier transmission that arrived, and this one says nothing.
  if (segment.retransmitted && age < least_) return;
  if (!segment.retransmitted) {
    event.rtt = age;
    take_rtt(age);
  }
  if (segment.order < latest_delivered_order_) return;
  latest_delivered_order_ = segment.order;
  first_sent_ = segment.sent;
  const Duration interval = std::max(segment.sent - segment.first_sent, event.now - segment.delivered_time);
  event.sample_prior_delivered = segment.delivered;
  event.sample_delivered = delivered_ - segment.delivered;
  event.sample_interval = interval < least_ ? Duration::zero() : interval;
  event.application_limited = segment.application_limited;
}

void TcpSender::find_losses(TcpAckEvent& event) {
  while (!transmissions_.empty() && transmissions_.front().order + kReordering <= latest_delivered_order_) {
    const Transmission old = transmissions_.front();
    transmissions_.pop_front();
    if (old.number < first_) continue;
    Segment& segment = at(old.number);
    if (segment.state != State::InFlight || segment.order != old.order) continue;
    segment.state = State::Lost;
    --in_flight_;
    ++event.newly_lost;
    lost_.push_back(old.number);
  }
}

// RFC 6298, section 2.
void TcpSender::take_rtt(Duration rtt) {
  if (smoothed_ == Duration::zero()) {
    smoothed_ = rtt;
    variance_ = rtt / 2;
    least_ = rtt;
    return;
  }
  const Duration off = rtt > smoothed_ ? rtt - smoothed_ : smoothed_ - rtt;
  variance_ += (off - variance_) / 4;
  smoothed_ += (rtt - smoothed_) / 8;
  least_ = std::min(least_, rtt);
}

Duration TcpSender::timeout() const {
  if (smoothed_ == Duration::zero()) return kFirstTimeout;
  return std::min(kMostTimeout, (smoothed_ + std::max(kLeastTimeout, 4 * variance_)) * (1 << std::min(backoff_, 10)));
}

void TcpSender::expire(TimePoint now) {
  if (now < timer_) return;
  ++counts_.timeouts;
  const std::uint64_t in_flight = in_flight_;
  lost_.clear();
  transmissions_.clear();
  for (std::uint64_t n = first_; n < next_; ++n) {
    Segment& segment = at(n);
    if (segment.state == State::Delivered) continue;
    segment.state = State::Lost;
    lost_.push_back(n);
  }
  in_flight_ = 0;
  recovering_ = true;
  recovery_end_ = next_;
  ++backoff_;
  timer_ = now + timeout();
  congestion_->timeout(in_flight, now);
}

bool TcpSender::something_to_send() const {
  return !lost_.empty() || next_ < segments_;
}

std::optional<std::uint64_t> TcpSender::next_lost() {
  while (!lost_.empty()) {
    const std::uint64_t number = lost_.front();
    lost_.pop_front();
    if (number >= first_ && at(number).state == State::Lost) return number;
  }
  return std::nullopt;
}

std::optional<TcpData> TcpSender::poll(TimePoint now) {
  expire(now);
  if (in_flight_ >= congestion_->window() || paced_until_ > now) return std::nullopt;
  std::optional<std::uint64_t> number = next_lost();
  if (!number && next_ < segments_) {
    number = next_++;
    outstanding_.emplace_back();
  }
  if (!number) {
    if (in_flight_ < congestion_->window()) limited_until_ = std::max<std::uint64_t>(1, delivered_ + in_flight_);
    return std::nullopt;
  }
  transmit(*number, now);
  return TcpData{*number};
}

void TcpSender::transmit(std::uint64_t number, TimePoint now) {
  Segment& segment = at(number);
  // tcp_rate_skb_sent(): a flight begins after an idle time.
  if (in_flight_ == 0) first_sent_ = delivered_time_ = now;
  segment.retransmitted = segment.order != 0;
  segment.sent = now;
  segment.first_sent = first_sent_;
  segment.delivered_time = delivered_time_;
  segment.delivered = delivered_;
  segment.application_limited = delivered_ < limited_until_;
  segment.order = ++order_;
  segment.state = State::InFlight;
  transmissions_.push_back({order_, number});
  ++in_flight_;
  ++counts_.sent;
  counts_.retransmitted += segment.retransmitted ? 1U : 0U;
  if (timer_ == kNever) timer_ = now + timeout();
  if (const double pace = congestion_->pace(); pace > 0) {
    paced_until_ = std::max(paced_until_, now - kPaceCredit) + Duration(static_cast<std::int64_t>(1e9 / pace));
  }
}

TimePoint TcpSender::next_timeout() const {
  const bool open = something_to_send() && in_flight_ < congestion_->window();
  return open ? std::min(timer_, paced_until_) : timer_;
}

}  // namespace sdr::simulation

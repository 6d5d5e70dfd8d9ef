#include "simulation/bottleneck.hpp"

#include <algorithm>

namespace sdr::simulation {
namespace {

double ns_per_byte(Bandwidth rate) {
  return rate.limited() ? 8e9 / rate.bits_per_second : 0;
}

}  // namespace

Bottleneck::Bottleneck(const QueueSpec& spec, Bandwidth rate, std::uint32_t mtu, TimePoint start)
    : spec_(spec),
      codel_(spec.target, spec.interval, mtu),
      limited_(rate.limited()),
      ns_per_byte_(ns_per_byte(rate)),
      ring_(64),
      free_at_(start),
      tokens_(static_cast<double>(spec.limit.count)),
      filled_at_(start) {}

bool Bottleneck::offer(const QueuedPacket& packet, TimePoint now) {
  if (!limited_) {
    push(packet);
    return true;
  }
  if (spec_.discipline == Discipline::Policer) {
    if (!conforms(packet.bytes, now)) {
      ++counts_.policed;
      return false;
    }
    push(packet);
    return true;
  }
  const bool idle = head_ == tail_ && free_at_ <= now;
  if (!idle && waiting_bytes_ + packet.bytes > spec_.limit.count) {
    ++counts_.tail_drops;
    return false;
  }
  push(packet);
  // One that is sent at once does not wait.
  if (!idle) counts_.most_bytes = std::max(counts_.most_bytes, waiting_bytes_);
  return true;
}

TimePoint Bottleneck::next() const {
  if (head_ == tail_) return kNever;
  return std::max(free_at_, ring_[head_ & (ring_.size() - 1)].arrived);
}

bool Bottleneck::take(TimePoint now, Departure& into) {
  const TimePoint begin = next();
  if (begin > now) return false;
  into.packet = ring_[head_++ & (ring_.size() - 1)];
  into.fate = Departure::Fate::Sent;
  waiting_bytes_ -= into.packet.bytes;
  const Duration sojourn = begin - into.packet.arrived;
  if (spec_.discipline == Discipline::Codel && limited_ &&
      codel_.dequeued(sojourn, waiting_bytes_, begin) == Codel::Verdict::Signal) {
    if (!spec_.ecn || !into.packet.ecn_capable) {
      ++counts_.codel_drops;
      into.fate = Departure::Fate::Dropped;
      into.at = begin;
      return true;
    }
    ++counts_.marked;
    into.fate = Departure::Fate::Marked;
  }
  into.at = send(into.packet.bytes, begin);
  ++counts_.sent;
  counts_.waited += sojourn;
  counts_.longest_wait = std::max(counts_.longest_wait, sojourn);
  return true;
}

void Bottleneck::set_rate(Bandwidth rate, TimePoint now) {
  fill_bucket(now);
  limited_ = rate.limited();
  ns_per_byte_ = ns_per_byte(rate);
}

bool Bottleneck::conforms(std::uint32_t bytes, TimePoint now) {
  fill_bucket(now);
  if (tokens_ < bytes) return false;
  tokens_ -= bytes;
  return true;
}

void Bottleneck::fill_bucket(TimePoint now) {
  if (limited_) {
    const double gained = static_cast<double>((now - filled_at_).count()) / ns_per_byte_;
    tokens_ = std::min(tokens_ + gained, static_cast<double>(spec_.limit.count));
  }
  filled_at_ = now;
}

TimePoint Bottleneck::send(std::uint32_t bytes, TimePoint begin) {
  if (!limited_ || spec_.discipline == Discipline::Policer) return begin;
  if (begin > free_at_) free_fraction_ = 0;  // it was idle
  const double time = free_fraction_ + bytes * ns_per_byte_;
  const auto whole = static_cast<std::int64_t>(time);
  free_at_ = begin + Duration(whole);
  free_fraction_ = time - static_cast<double>(whole);
  return free_fraction_ > 0 ? free_at_ + Duration(1) : free_at_;
}

void Bottleneck::push(const QueuedPacket& packet) {
  if (tail_ - head_ == ring_.size()) {
    std::vector<QueuedPacket> larger(ring_.size() * 2);
    for (std::uint64_t i = head_; i < tail_; ++i) larger[i & (larger.size() - 1)] = ring_[i & (ring_.size() - 1)];
    ring_ = std::move(larger);
  }
  ring_[tail_++ & (ring_.size() - 1)] = packet;
  waiting_bytes_ += packet.bytes;
}

}  // namespace sdr::simulation

#include "reliability/sending_rate.hpp"

#include <algorithm>

namespace sdr::reliability {
namespace {

// Payload waiting in the QueuePair: enough for a system call and its successor, little enough that a repair does not
// wait long behind it.
constexpr std::uint64_t kBacklogMost = 256 << 10;
// Where no rate is the limit but what this machine can do: about so much, in whole injections, so that none goes out
// half full.
constexpr std::uint64_t kBacklogUnpaced = 1 << 20;
constexpr Duration kBacklogTime = std::chrono::microseconds(200);
constexpr std::uint32_t kPieceMost = 64 << 10;
constexpr Duration kPieceTime = std::chrono::milliseconds(1);
// IPv4, UDP, and what the transport and the SDK put before a control message.
constexpr std::uint64_t kControlOverhead = 46;

Bandwidth lower(Bandwidth a, Bandwidth b) {
  if (!a.limited()) return b;
  return b.limited() && b < a ? b : a;
}

}  // namespace

SendingRate::SendingRate(const ConnectionOptions& options, QueuePair& queue_pair)
    : queue_pair_(queue_pair),
      mode_(options.rate_mode),
      most_(options.max_rate),
      seed_(options.queue_pair.token),
      path_(options.path_rate) {}

bool SendingRate::heeds_marks(const ConnectionOptions& options) {
  if (options.path_rate) return options.path_rate->group()->mode() != RateMode::Fixed;
  if (options.rate_mode == RateMode::Automatic) return !options.queue_pair.rate.limited();
  return options.rate_mode != RateMode::Fixed;
}

void SendingRate::connected() {
  const Bandwidth given = queue_pair_.rate();
  if (!path_) {
    if (mode_ == RateMode::Automatic)
      mode_ = given.limited() || queue_pair_.local_path() ? RateMode::Fixed : RateMode::Model;
    if (mode_ == RateMode::Fixed) {
      if (most_.limited()) queue_pair_.set_rate(lower(given, most_));
      return;
    }
    path_ = std::make_shared<PathRate>(PathRate::Options{.mode = mode_, .most = lower(given, most_), .seed = seed_});
  }
  const QueuePairGeometry& geometry = queue_pair_.geometry();
  member_ = std::make_unique<RateMember>(path_->group(), geometry.mtu + geometry.packet_overhead);
}

RateMember::Sent SendingRate::sent() const {
  const QueuePairCounters counters = queue_pair_.counters();
  return {.packets = counters.packets_sent,
          .bytes = counters.payload_bytes_sent + counters.packets_sent * queue_pair_.geometry().packet_overhead,
          .wants = waits_,
          .rtt = rtt_};
}

void SendingRate::adjust(const RttEstimator& rtt, TimePoint now) {
  if (!member_) return;
  rtt_ = rtt.min();
  const RateMember::Allowance allowance = member_->allowance(sent(), now);
  queue_pair_.set_rate(allowance.pace);
  queue_pair_.set_send_limit(allowance.packets);
  path_rate_ = allowance.bandwidth.limited() ? allowance.bandwidth : allowance.pace;
}

std::uint64_t SendingRate::backlog() const {
  const Bandwidth rate = queue_pair_.rate();
  if (!rate.limited()) {
    const std::uint64_t injection = queue_pair_.geometry().injection_bytes;
    return std::max<std::uint64_t>(1, kBacklogUnpaced / injection) * injection;
  }
  const std::uint64_t packet = queue_pair_.geometry().mtu;
  return std::clamp<std::uint64_t>(rate.bytes_in(kBacklogTime).count, 2 * packet, kBacklogMost);
}

std::uint32_t SendingRate::piece() const {
  if (!queue_pair_.rate().limited()) return 0;
  if (!member_) return kPieceMost;
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(queue_pair_.rate().bytes_in(kPieceTime).count, kPieceMost));
}

void SendingRate::sent_control(std::size_t bytes) {
  if (member_) queue_pair_.charge({bytes + kControlOverhead});
}

void SendingRate::offered(TimePoint now) {
  if (member_) member_->offered(to_stamp(now), sent(), now);
}

void SendingRate::reported(const ReportsHeader& header, Duration silence, Duration silent_after, TimePoint now) {
  if (!member_) return;
  const FlightRecord::Word word{
      .echo = header.echo_newest,
      .landed = header.packets_landed,
      .marks = header.marks,
      .arrival = header.arrival,
      .held = Duration(static_cast<std::int64_t>(std::min<std::uint64_t>(header.echo_held, INT64_MAX)))};
  member_->reported(word, sent(), silence > silent_after, now);
}

TimePoint SendingRate::question_at(TimePoint now) const {
  return member_ ? member_->question_at(sent(), now) : kNever;
}

TimePoint SendingRate::next_timeout() const {
  return member_ ? member_->next_timeout() : kNever;
}

RateStatus SendingRate::status() const {
  RateStatus status;
  if (!member_) {
    status.state = queue_pair_.rate().limited() ? "fixed" : "unlimited";
    status.pace = queue_pair_.rate();
    return status;
  }
  status = member_->status();
  status.pace = queue_pair_.rate();
  status.in_flight = member_->in_flight(sent());
  return status;
}

}  // namespace sdr::reliability

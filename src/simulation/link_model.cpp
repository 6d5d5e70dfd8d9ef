#include "simulation/link_model.hpp"

#include <algorithm>
#include <cmath>

namespace sdr::simulation {
namespace {

using namespace std::chrono_literals;

// What a random number is for; numbers of different purposes are independent.
enum class Purpose : std::uint64_t { Loss, Reorder, ReorderDelay, Duplicate, DuplicateDelay, Jitter, FirstState };

CounterRandom random_for(const LinkSpec& spec, Direction direction, std::uint32_t stream, Purpose purpose) {
  const std::uint64_t which = (std::uint64_t{stream} << 32) | (static_cast<std::uint64_t>(direction) << 16) |
                              static_cast<std::uint64_t>(purpose);
  return {spec.seed, which};
}

// r of the header's formulas: how likely it is that a run of losses ends with a given packet.
double run_ends(double burst, double loss) {
  return std::min(1 / burst, 1 - loss);
}

double run_begins(double burst, double loss) {
  if (loss >= 1) return 1;
  return loss * run_ends(burst, loss) / (1 - loss);
}

// The top 53 bits as a fraction of one.
double fraction(std::uint64_t draw) {
  return static_cast<double>(draw >> 11) * 0x1p-53;
}

}  // namespace

LinkModel::LinkModel(const LinkSpec& spec, Direction direction, std::uint32_t stream)
    : spec_(direction == Direction::Forward ? spec : spec.backward()),
      // An odd nanosecond goes to the way back, so that both ways together are the RTT.
      delay_(direction == Direction::Forward ? spec.rtt / 2 : spec.rtt - spec.rtt / 2),
      window_(spec.reorder_window()),
      ns_per_byte_(spec.rate.limited() ? 8e9 / spec.rate.bits_per_second : 0),
      jitter_step_(std::max<Duration>(spec.jitter, 1ms)),
      loss_begins_(run_begins(spec.burst, spec_.loss)),
      loss_goes_on_(1 - run_ends(spec.burst, spec_.loss)),
      reordered_(spec.reorder),
      duplicated_(spec.duplicate),
      loss_random_(random_for(spec, direction, stream, Purpose::Loss)),
      reorder_random_(random_for(spec, direction, stream, Purpose::Reorder)),
      reorder_delay_random_(random_for(spec, direction, stream, Purpose::ReorderDelay)),
      duplicate_random_(random_for(spec, direction, stream, Purpose::Duplicate)),
      duplicate_delay_random_(random_for(spec, direction, stream, Purpose::DuplicateDelay)),
      jitter_random_(random_for(spec, direction, stream, Purpose::Jitter)),
      loss_(spec_.loss),
      bursts_(spec.burst * (1 - spec_.loss) > 1),
      losing_(Chance(spec_.loss).happens(random_for(spec, direction, stream, Purpose::FirstState)(0))) {}

Fate LinkModel::carry(std::uint32_t wire_bytes, TimePoint now) {
  const std::uint64_t n = counts_.packets++;
  if (n == 0) begun_ = now;
  // First, whatever becomes of the packet: the chain takes its step for every n.
  bool is_lost = lost(n, wire_bytes, now);
  if (!spec_.trace.empty()) is_lost = lost_in_trace() || is_lost;
  Fate fate;
  if (!serialise(wire_bytes, now, fate.departure)) {
    counts_.dropped_by_queue++;
    fate.drop = Drop::Queue;
    return fate;
  }
  if (is_lost || (!spec_.outages.empty() && in_outage(fate.departure))) {
    counts_.lost++;
    fate.drop = Drop::Loss;
    return fate;
  }
  fate.copies = 1;
  TimePoint arrival = fate.departure + delay_;
  if (spec_.jitter > Duration::zero()) arrival += wander(fate.departure);
  if (reordered_.possible() && reordered_.happens(reorder_random_(n))) {
    counts_.reordered++;
    fate.late = true;
    arrival += behind(reorder_delay_random_(n));
  } else {
    arrival = last_in_order_ = std::max(arrival, last_in_order_);  // against the rounding of J
  }
  fate.arrival[0] = arrival;
  if (duplicated_.possible() && duplicated_.happens(duplicate_random_(n))) {
    counts_.duplicated++;
    fate.copies = 2;
    fate.arrival[1] = arrival + behind(duplicate_delay_random_(n));
  }
  return fate;
}

Duration LinkModel::longest_delay() const {
  const Duration queue = spec_.rate.limited() ? spec_.queue : Duration::zero();
  const Duration behind_most = (reordered_.possible() ? window_ : 0ns) + (duplicated_.possible() ? window_ : 0ns);
  return queue + delay_ + spec_.jitter + behind_most;
}

void LinkModel::set_loss(double loss) {
  loss_ = loss;
  loss_begins_ = Chance(run_begins(spec_.burst, loss));
  loss_goes_on_ = Chance(1 - run_ends(spec_.burst, loss));
}

bool LinkModel::lost(std::uint64_t n, std::uint32_t wire_bytes, TimePoint now) {
  if (spec_.loss_size != 0 && wire_bytes != loss_bytes_) {
    loss_bytes_ = wire_bytes;
    set_loss(spec_.loss_of(wire_bytes));
  }
  if (!loss_begins_.possible()) return false;
  const double idle = bursts_ && n > 0 ? idle_packets(now) : 0;
  if (idle < 1) {
    losing_ = (losing_ ? loss_goes_on_ : loss_begins_).happens(loss_random_(n));
    return losing_;
  }
  // So many steps at once: what is left of the state decays to the mean.
  const double memory = 1 - run_begins(spec_.burst, loss_) - run_ends(spec_.burst, loss_);
  const double left = std::pow(std::max(0.0, memory), 1 + std::floor(idle));
  losing_ = Chance(loss_ + ((losing_ ? 1 : 0) - loss_) * left).happens(loss_random_(n));
  return losing_;
}

double LinkModel::idle_packets(TimePoint now) const {
  if (!spec_.rate.limited() || now <= busy_until_) return 0;
  return static_cast<double>((now - busy_until_).count()) / (ns_per_byte_ * spec_.mtu);
}

bool LinkModel::lost_in_trace() {
  while (trace_packet_ == spec_.trace[trace_run_].arrived + spec_.trace[trace_run_].lost) {
    trace_packet_ = 0;
    trace_run_ = (trace_run_ + 1) % spec_.trace.size();
  }
  return trace_packet_++ >= spec_.trace[trace_run_].arrived;
}

bool LinkModel::in_outage(TimePoint departure) const {
  const Duration since = departure - begun_;
  return std::any_of(spec_.outages.begin(), spec_.outages.end(), [since](const Outage& outage) {
    return since >= outage.begin && since - outage.begin < outage.length;
  });
}

bool LinkModel::serialise(std::uint32_t wire_bytes, TimePoint now, TimePoint& departure) {
  if (!spec_.rate.limited()) {
    departure = now;
    return true;
  }
  if (now > busy_until_) {  // idle since then
    busy_until_ = now;
    busy_fraction_ = 0;
  } else if (busy_until_ - now > spec_.queue) {
    return false;
  }
  const double time = busy_fraction_ + wire_bytes * ns_per_byte_;
  const auto whole = static_cast<std::int64_t>(time);
  busy_until_ += Duration(whole);
  busy_fraction_ = time - static_cast<double>(whole);
  departure = busy_fraction_ > 0 ? busy_until_ + 1ns : busy_until_;
  return true;
}

Duration LinkModel::wander(TimePoint at) {
  const Duration since = at.time_since_epoch();
  const std::int64_t step = since / jitter_step_;
  const double part = static_cast<double>((since % jitter_step_).count()) / static_cast<double>(jitter_step_.count());
  const double from = fraction(jitter_random_(static_cast<std::uint64_t>(step)));
  const double to = fraction(jitter_random_(static_cast<std::uint64_t>(step) + 1));
  const double above = (from + (to - from) * part) * static_cast<double>(spec_.jitter.count());
  return Duration(static_cast<std::int64_t>(above));
}

Duration LinkModel::behind(std::uint64_t draw) const {
  const double share = 0.1 + 0.9 * fraction(draw);
  return Duration(static_cast<std::int64_t>(share * static_cast<double>(window_.count())));
}

}  // namespace sdr::simulation

#include "simulation/path_model.hpp"

#include <algorithm>
#include <chrono>

namespace sdr::simulation {
namespace {

using namespace std::chrono_literals;

double byte_seconds(std::uint32_t bytes, Duration waited) {
  return static_cast<double>(bytes) * std::chrono::duration<double>(waited).count();
}

}  // namespace

PathModel::PathModel(const PathSpec& spec, Direction direction, TimePoint start)
    : spec_(spec), direction_(direction), start_(start), bottleneck_(spec.queue, spec.link.rate, spec.link.mtu, start) {
  start_link(spec.link);
}

bool PathModel::offer(std::uint32_t handle, std::uint32_t bytes, bool ecn_capable, TimePoint now) {
  advance(now);
  ++counts_.packets;
  counts_.bytes += bytes;
  const bool accepted =
      bottleneck_.offer({.handle = handle, .bytes = bytes, .ecn_capable = ecn_capable, .arrived = now}, now);
  if (accepted) advance(now);
  return accepted;
}

const PathModel::Arrival* PathModel::due(TimePoint now) {
  advance(now);
  return given_ = arrivals_.due(now);
}

void PathModel::pop() {
  ++counts_.delivered;
  counts_.delivered_bytes += given_->bytes;
  arrivals_.pop();
}

TimePoint PathModel::next() const {
  return std::min(bottleneck_.next(), arrivals_.next());
}

PathCounts PathModel::counts() const {
  PathCounts counts = counts_;
  const LinkCounts& now = link_->counts();
  counts.lost = earlier_.lost + now.lost;
  counts.reordered = earlier_.reordered + now.reordered;
  counts.duplicated = earlier_.duplicated + now.duplicated;
  counts.queue = bottleneck_.counts();
  return counts;
}

// Departures and changes in the order of their times.
void PathModel::advance(TimePoint now) {
  for (;;) {
    const TimePoint begin = bottleneck_.next();
    if (changes_done_ < spec_.changes.size()) {
      const PathChange& change = spec_.changes[changes_done_];
      if (start_ + change.at <= std::min(begin, now)) {
        change_link(change);
        ++changes_done_;
        continue;
      }
    }
    Departure departure;
    if (!bottleneck_.take(now, departure)) return;
    depart(departure);
  }
}

void PathModel::change_link(const PathChange& change) {
  bottleneck_.set_rate(change.link.rate, start_ + change.at);
  const LinkCounts& counts = link_->counts();
  earlier_.lost += counts.lost;
  earlier_.reordered += counts.reordered;
  earlier_.duplicated += counts.duplicated;
  start_link(change.link);
}

// The rate is the Bottleneck's, outages are ours. The LinkModel keeps the rate to know how long the link was idle, and
// is given each packet at the time at which its sending began; so it never has a queue of its own.
void PathModel::start_link(const LinkSpec& spec) {
  LinkSpec behind = spec;
  behind.outages.clear();
  behind.queue = 1h;
  if (spec_.queue.discipline == Discipline::Policer) behind.rate = {};
  link_ns_per_byte_ = behind.rate.limited() ? 8e9 / behind.rate.bits_per_second : 0;
  link_ = std::make_unique<LinkModel>(behind, direction_, static_cast<std::uint32_t>(changes_done_));
}

void PathModel::depart(const Departure& departure) {
  const QueuedPacket& packet = departure.packet;
  if (departure.fate == Departure::Fate::Dropped) {
    dropped_.push_back(packet.handle);
    return;
  }
  const auto sending = Duration(static_cast<std::int64_t>(packet.bytes * link_ns_per_byte_));
  counts_.queued_byte_seconds += byte_seconds(packet.bytes, std::max(departure.at - sending - packet.arrived, 0ns));
  const Fate fate = link_->carry(packet.bytes, departure.at - sending);
  const bool dark = fate.drop == Drop::None && in_outage(departure.at);
  if (fate.drop != Drop::None || dark) {
    counts_.lost_in_outage += dark ? 1U : 0U;
    dropped_.push_back(packet.handle);
    return;
  }
  for (std::uint8_t copy = 0; copy < fate.copies; ++copy) {
    const Arrival arrival{.handle = packet.handle,
                          .bytes = packet.bytes,
                          .marked = departure.fate == Departure::Fate::Marked,
                          .last = copy + 1 == fate.copies,
                          .at = fate.arrival[copy]};
    if (fate.late || copy > 0) {
      arrivals_.push_late(arrival.at, arrival);
    } else {
      arrivals_.push(arrival.at, arrival);
    }
  }
}

bool PathModel::in_outage(TimePoint at) const {
  const Duration since = at - start_;
  return std::any_of(spec_.link.outages.begin(), spec_.link.outages.end(), [since](const Outage& outage) {
    return since >= outage.begin && since - outage.begin < outage.length;
  });
}

}  // namespace sdr::simulation

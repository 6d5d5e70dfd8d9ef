#include "simulation/shared_way.hpp"

namespace sdr::simulation {

std::uint32_t SharedWay::add_flow(Traveller& traveller, Duration further) {
  flows_.push_back({.traveller = &traveller, .further = further});
  return static_cast<std::uint32_t>(flows_.size() - 1);
}

bool SharedWay::offer(std::uint32_t flow, std::uint32_t cargo, std::uint32_t bytes, bool ecn_capable, TimePoint now) {
  if (free_.empty()) {
    free_.push_back(static_cast<std::uint32_t>(passages_.size()));
    passages_.emplace_back();
  }
  const std::uint32_t handle = free_.back();
  FlowCounts& counts = flows_[flow].counts;
  ++counts.packets;
  counts.bytes += bytes;
  passages_[handle] = {.flow = flow, .cargo = cargo, .offered = now};
  if (!path_.offer(handle, bytes, ecn_capable, now)) {
    ++counts.refused;
    return false;
  }
  free_.pop_back();
  return true;
}

void SharedWay::advance(TimePoint now) {
  while (const PathModel::Arrival* due = path_.due(now)) {
    const PathModel::Arrival arrival = *due;
    path_.pop();
    const Passage passage = passages_[arrival.handle];
    Flow& flow = flows_[passage.flow];
    const TimePoint at = arrival.at + flow.further;
    ++flow.counts.arrived;
    flow.counts.arrived_bytes += arrival.bytes;
    flow.counts.marked += arrival.marked ? 1U : 0U;
    if (arrival.last) free_.push_back(arrival.handle);
    if (tap_) tap_({.flow = passage.flow, .bytes = arrival.bytes, .offered = passage.offered, .arrived = at});
    flow.traveller->arrive(passage.cargo, at, arrival.marked, arrival.last);
  }
  settle_dropped();
}

void SharedWay::settle_dropped() {
  for (const std::uint32_t handle : path_.dropped()) {
    const Passage& passage = passages_[handle];
    Flow& flow = flows_[passage.flow];
    ++flow.counts.perished;
    free_.push_back(handle);
    flow.traveller->perish(passage.cargo);
  }
  path_.clear_dropped();
}

}  // namespace sdr::simulation

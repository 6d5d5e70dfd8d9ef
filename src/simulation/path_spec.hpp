// PathSpec: a path through a network as PathModel walks it: a link, the queue in front of its rate, and what changes
// while time goes by.
//
// A change is written TIME:KEYS with keys of the link (LinkSpec): "10s:rate=100Mbit", "20s:rtt=150ms,loss=1e-2". What
// it does not name stays as it was. A path that goes dark and comes back is an `outage` of the link. Bytes that the
// queue holds do not change with the rate, as in a router.
//
// A plain value. Invariant, kept by add_change(): changes come in the order of their times, and only in what a path
// can change: rtt, rate, loss, lossback, burst, reorder, dup, jitter, losssize.
#pragma once

#include <string_view>
#include <vector>

#include "sdr/result.hpp"
#include "sdr/units.hpp"
#include "simulation/link_spec.hpp"
#include "simulation/queue_spec.hpp"

namespace sdr::simulation {

struct PathChange {
  Duration at{0};  // from the start
  LinkSpec link;   // from then on, all of it
};

struct PathSpec {
  LinkSpec link;
  QueueSpec queue;
  std::vector<PathChange> changes;  // at most kMostChanges
  static constexpr std::size_t kMostChanges = 64;

  // InvalidArgument names the text and what is wrong with it.
  Result<void> add_change(std::string_view text);
};

}  // namespace sdr::simulation

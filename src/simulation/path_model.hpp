// PathModel: one direction of a path, from the queue in front of its slowest part to the far end.
//
// A packet waits in a Bottleneck, is sent at its rate, and is then lost, delayed, reordered or duplicated by a
// LinkModel of the same spec. The changes of the PathSpec happen at their times, counted from `start`: a new rate holds
// for packets that begin to be sent, everything else for packets that have been sent from then on; what is under way
// arrives as it would have. So a shorter RTT lets later packets overtake earlier ones once, as a change of route does.
// Outages are counted from `start` as well.
//
// It holds descriptions of packets and their handles, not their bytes, reads no clock, and repeats from the spec's seed
// and the times of its calls. To be asked late changes no packet's fate or times.
//
// Threads: one at a time, with times that do not go back.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "sdr/units.hpp"
#include "simulation/arrival_queue.hpp"
#include "simulation/bottleneck.hpp"
#include "simulation/link_model.hpp"
#include "simulation/path_spec.hpp"

namespace sdr::simulation {

struct PathCounts {
  std::uint64_t packets = 0;  // offered
  std::uint64_t bytes = 0;
  std::uint64_t delivered = 0;  // duplicates among them
  std::uint64_t delivered_bytes = 0;
  std::uint64_t lost = 0;  // at random, or by the trace
  std::uint64_t lost_in_outage = 0;
  std::uint64_t reordered = 0;
  std::uint64_t duplicated = 0;
  double queued_byte_seconds = 0;  // waiting bytes of packets sent, over time: divided by a time, the mean queue
  QueueCounts queue;
};

class PathModel {
 public:
  struct Arrival {
    std::uint32_t handle = 0;
    std::uint32_t bytes = 0;
    bool marked = false;  // ECN: congestion experienced
    bool last = true;     // no other copy is to come: the handle is the caller's again
    TimePoint at{};
  };

  PathModel(const PathSpec& spec, Direction direction, TimePoint start);

  // False: dropped at once, and the handle stays the caller's. Otherwise it comes back in due() or in dropped().
  bool offer(std::uint32_t handle, std::uint32_t bytes, bool ecn_capable, TimePoint now);
  // What arrives by `now`, in order; null when there is nothing. Take it away with pop() before any other call.
  const Arrival* due(TimePoint now);
  void pop();
  // When due() has something to give or to do next.
  [[nodiscard]] TimePoint next() const;
  // Handles of packets that were dropped since the last call of clear_dropped().
  [[nodiscard]] std::span<const std::uint32_t> dropped() const { return dropped_; }
  void clear_dropped() { dropped_.clear(); }
  // Bytes that wait for the rate, as of the last offer() or due().
  [[nodiscard]] std::uint64_t waiting_bytes() const { return bottleneck_.waiting_bytes(); }

  [[nodiscard]] PathCounts counts() const;

 private:
  void advance(TimePoint now);
  void change_link(const PathChange& change);
  void start_link(const LinkSpec& spec);
  void depart(const Departure& departure);
  [[nodiscard]] bool in_outage(TimePoint at) const;

  PathSpec spec_;
  Direction direction_;
  TimePoint start_;
  std::size_t changes_done_ = 0;
  Bottleneck bottleneck_;
  std::unique_ptr<LinkModel> link_;  // of the phase between two changes
  double link_ns_per_byte_ = 0;
  ArrivalQueue<Arrival> arrivals_;
  const Arrival* given_ = nullptr;  // by the last due()
  std::vector<std::uint32_t> dropped_;
  LinkCounts earlier_;  // of the phases that are over
  PathCounts counts_;
};

}  // namespace sdr::simulation

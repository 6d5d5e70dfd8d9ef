// SharedWay: one direction of a path that several flows cross, each with a distance of its own behind it.
//
// All packets go through one PathModel, so through one queue and one rate; what a flow is further away than the path
// is long is added behind it. Who travels is told of each packet what became of it: it has arrived, with the time, or
// it has perished. Bytes are the travellers' affair, a packet is a number of theirs here.
//
// A tap sees every arrival, with the time at which the packet was offered: the truth about delays, whatever the flows
// measure.
//
// Memory grows to the most packets that were ever under way and then stays. Threads: one, with times that do not go
// back. Lifetime: travellers outlive it, or it is not advanced any more.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "sdr/units.hpp"
#include "simulation/path_model.hpp"

namespace sdr::simulation {

class SharedWay {
 public:
  class Traveller {
   public:
    virtual ~Traveller() = default;
    // `cargo` comes to the flow's far end at `at`, which may be later than the time of the call; times of one flow do
    // not go back. `last`: no other copy comes, the number is the traveller's again.
    virtual void arrive(std::uint32_t cargo, TimePoint at, bool marked, bool last) = 0;
    virtual void perish(std::uint32_t cargo) = 0;
  };

  struct Crossed {
    std::uint32_t flow = 0;
    std::uint32_t bytes = 0;
    TimePoint offered{};
    TimePoint arrived{};
  };
  using Tap = std::function<void(const Crossed&)>;

  struct FlowCounts {
    std::uint64_t packets = 0;  // offered
    std::uint64_t bytes = 0;
    std::uint64_t refused = 0;   // by a full queue or a policer
    std::uint64_t perished = 0;  // behind that: lost, by an outage, or by CoDel
    std::uint64_t marked = 0;    // of those that arrived
    std::uint64_t arrived = 0;
    std::uint64_t arrived_bytes = 0;
  };

  SharedWay(const PathSpec& spec, Direction direction, TimePoint start) : path_(spec, direction, start) {}
  SharedWay(const SharedWay&) = delete;
  SharedWay& operator=(const SharedWay&) = delete;

  // The flow's number, counted from 0. It is `further` away than the path is long.
  std::uint32_t add_flow(Traveller& traveller, Duration further);
  void set_tap(Tap tap) { tap_ = std::move(tap); }

  // False: dropped at once, and the number stays the traveller's. Otherwise it comes back by arrive() or perish().
  bool offer(std::uint32_t flow, std::uint32_t cargo, std::uint32_t bytes, bool ecn_capable, TimePoint now);
  // Tells the travellers what happened by `now`.
  void advance(TimePoint now);
  [[nodiscard]] TimePoint next() const { return path_.next(); }

  // Bytes that wait for the rate, as of the last advance().
  [[nodiscard]] std::uint64_t waiting_bytes() const { return path_.waiting_bytes(); }
  [[nodiscard]] PathCounts counts() const { return path_.counts(); }
  [[nodiscard]] const FlowCounts& counts(std::uint32_t flow) const { return flows_[flow].counts; }

 private:
  struct Flow {
    Traveller* traveller = nullptr;
    Duration further{0};
    FlowCounts counts;
  };
  struct Passage {
    std::uint32_t flow = 0;
    std::uint32_t cargo = 0;
    TimePoint offered{};
  };

  void settle_dropped();

  PathModel path_;
  std::vector<Flow> flows_;
  std::vector<Passage> passages_;  // by the path's handle
  std::vector<std::uint32_t> free_;
  Tap tap_;
};

}  // namespace sdr::simulation

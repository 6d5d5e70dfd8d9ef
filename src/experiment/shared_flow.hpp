// SharedFlow: one flow of a SharedTrial, both of its ends, as the loop that drives them all sees it.
//
// Threads: one, that of the loop; times do not go back.
#pragma once

#include <cstdint>
#include <memory>

#include "experiment/shared_trial.hpp"
#include "simulation/shared_way.hpp"

namespace sdr::experiment {

class SharedFlow {
 public:
  // Where a flow is: the ways there and back, and how much further away its ends are than those are long.
  struct Place {
    simulation::SharedWay& forward;
    simulation::SharedWay& backward;
    Duration further{0};
    Bandwidth rate;  // the most that the path ever has
    Duration longest_rtt{0};
    std::uint64_t seed = 0;
  };
  struct Sender {
    double pace = 0;    // bit/s
    double window = 0;  // bytes
    std::string_view state;
  };

  virtual ~SharedFlow() = default;

  // Its first call is at its start.
  virtual Result<void> begin(TimePoint now) = 0;
  virtual void drive(TimePoint now) = 0;
  // When it wants to be driven, as far as is known without what is still on the ways.
  [[nodiscard]] virtual TimePoint due() const = 0;

  // Of the ways.
  [[nodiscard]] virtual std::uint32_t number() const = 0;
  // Payload that the receiving application has.
  [[nodiscard]] virtual std::uint64_t payload() const = 0;
  // When a flow with a size was done; kNever: not yet.
  [[nodiscard]] virtual TimePoint completed() const = 0;
  [[nodiscard]] virtual Sender sender() const = 0;
  virtual void finish(FlowResult& result) const = 0;
};

std::unique_ptr<SharedFlow> make_sdr_flow(const FlowSpec& spec, const simulation::LinkSpec& link,
                                          const SharedFlow::Place& place);
std::unique_ptr<SharedFlow> make_tcp_flow(const FlowSpec& spec, const simulation::LinkSpec& link,
                                          const SharedFlow::Place& place);

}  // namespace sdr::experiment

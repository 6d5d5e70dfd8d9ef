// LinkEstimator: what the traffic of one peer's connections has shown of the path: loss, bursts, round trip, rate.
//
// Loss is what never landed, by the peer's counts; what is only late is not in it. The belief begins with a prior that
// is cautious (a loss of 1e-3 on the strength of 300 packets) and gives way to what is seen. A long memory
// of some 16 million packets forgets a bad hour slowly; short ones of 1, 8 and 64 thousand replace it when they show
// significantly more loss: the belief rises within a Write, and falls over many. `loss_upper` is what
// parity is made for: the mean and four standard deviations, wider where losses come in bursts, which count for less.
//
// Kept across Writes by its connection. Connections to one peer may share one (ConnectionOptions::link), which makes
// what one has learned the other's start; the experience of a process may be carried to the next by `restore`.
//
// Threads: any; every call takes a lock for some nanoseconds, none is on the path of a packet.
// Source: RFC 6298 for the RTT; the estimate of a rate from Poisson counts; docs/reliability.md.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>

#include "sdr/units.hpp"

namespace sdr {

struct LinkEstimate {
  double loss = 0;        // share of packets, mean
  double loss_upper = 0;  // with the doubt that is left
  double burst = 1;       // mean run of lost chunks
  double packets = 0;     // evidence: packets remembered, the prior's among them
  Duration rtt_min{0};    // zero: not measured
  Duration rtt_smoothed{0};
  Duration rtt_variance{0};
  Bandwidth delivery_rate{};  // payload bits that landed, the highest of late; zero: not measured
};

class LinkEstimator {
 public:
  LinkEstimator() = default;
  LinkEstimator(const LinkEstimator&) = delete;
  LinkEstimator& operator=(const LinkEstimator&) = delete;

  // Starts with the certainty of 100 million packets: a loss from 0 to 1, a mean burst of at least 1.
  void restore(double loss, double burst);

  // So many packets more have had their fate, so many of them were lost (fewer than none: some came after all). What is
  // not `exact`, being counted in the middle of a stream, goes into the long memory only.
  void saw_packets(std::uint64_t sent, std::int64_t lost, bool exact = true);
  // Lost chunks of one transfer, and the runs of neighbours that they form.
  void saw_runs(std::uint64_t lost, std::uint64_t runs);
  void saw_rtt(Duration min, Duration smoothed, Duration variance);
  void saw_delivery(Bandwidth rate);

  [[nodiscard]] LinkEstimate estimate() const;

 private:
  struct Memory {
    double packets = 0;
    double lost = 0;
    void add(double more_packets, double more_lost, double most);
  };
  [[nodiscard]] double burst() const;
  // Significantly more loss than in the long memory.
  [[nodiscard]] bool stands_out(const Memory& memory) const;
  // Standard deviation of a count of lost packets.
  [[nodiscard]] double deviation(double lost) const;

  mutable std::mutex mutex_;
  Memory long_{300, 0.3};
  std::array<Memory, 3> short_;
  double run_losses_ = 0;
  double runs_ = 0;
  LinkEstimate link_;  // RTT and rate
};

}  // namespace sdr

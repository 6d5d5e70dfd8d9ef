// ProbePlan: what a run of `sdr probe` sends: so many trials for each size of packets, over so many flows, at one rate.
// The client decides it, the server reads it from the hello.
//
// Invariant of a plan that check() or from_json() let pass: sizes ascend, every number is within its limits, and a
// trial's packets fit kMostPackets, which bounds the memory of the receiver.
//
// A plain value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sdr/probe_order.hpp"
#include "sdr/report.hpp"
#include "sdr/result.hpp"
#include "sdr/units.hpp"
#include "simulation/link_spec.hpp"

namespace sdr::cli {

// Of what the two ends say to each other and of the packets; in the hello and in the answer.
inline constexpr std::uint64_t kProbeVersion = 1;

struct ProbePlan {
  static constexpr std::uint32_t kMostFlows = 64;
  static constexpr std::uint32_t kMostTrials = 1000;
  static constexpr std::size_t kMostPayloads = 64;
  static constexpr std::uint32_t kLeastPayload = 32;  // our header
  static constexpr std::uint32_t kMostPayload = 65000;
  static constexpr std::uint64_t kMostPackets = std::uint64_t{1} << 28;  // of all flows in a trial

  std::vector<std::uint32_t> payloads;  // bytes of a datagram beside IP and UDP
  std::uint32_t flows = 16;
  std::uint32_t trials = 20;
  std::uint64_t packets = 0;  // a flow and trial; 0: what `duration` holds at the rate
  Duration duration = std::chrono::seconds(1);
  Bandwidth rate;               // of all flows together, headers included
  std::uint32_t overhead = 28;  // bytes of IP and UDP
  std::string link;             // emulated, on the way out of either end; empty: none
  Duration timeout = std::chrono::seconds(10);
  std::uint64_t token = 0;

  // What the trials of this size send at most, all flows together.
  [[nodiscard]] std::uint64_t packets_of(std::uint32_t payload) const;
  // Packets go out in batches of about 100 us of the rate, so that the receiver's clock and ours matter little.
  [[nodiscard]] ProbeOrder order_of(std::uint32_t payload) const;
  [[nodiscard]] std::uint32_t all_trials() const { return trials * static_cast<std::uint32_t>(payloads.size()); }
  // By the number of a trial, counted over all sizes.
  [[nodiscard]] std::uint32_t payload_of_trial(std::uint32_t trial) const { return payloads[trial / trials]; }

  // The link of a plan that was checked.
  [[nodiscard]] std::optional<simulation::LinkSpec> link_spec() const;

  // InvalidArgument names the thing, the value and the limit.
  [[nodiscard]] Result<void> check() const;
  [[nodiscard]] Json to_json() const;
  static Result<ProbePlan> from_json(const Json& json);
};

}  // namespace sdr::cli

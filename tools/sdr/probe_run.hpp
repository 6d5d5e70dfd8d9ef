// The two ends of a run of `sdr probe`, once they have agreed on a plan and connected their sockets.
//
//   client                                        server
//   echoes while nothing else is on the way  <->  replies                                  (UDP, socket 0)
//   for each trial:
//     {"trial": i, "settle_ns": ...}          ->
//                                            <-   {"ready": i}
//     load, paced, and echoes                 ->  records                                  (UDP, a socket a flow)
//     {"sent": packets}                       ->
//     ends of the flows, until the answer     ->  waits for them, and for late packets
//                                            <-   TrialOutcome
//   {"done": true}                            ->
//                                            <-   {"host": HostCounters, "receive_buffer": bytes}
//
// Bounds: whoever waits for the other end does so for the plan's timeout (the server a little longer than its client
// sends); a sender that the host lets send nothing for as long gives up.
//
// Threads: one an end.
#pragma once

#include <cstdint>
#include <vector>

#include "sdr/probe_host.hpp"
#include "sdr/probe_plan.hpp"
#include "sdr/probe_sockets.hpp"
#include "sdr/probe_statistics.hpp"
#include "sdr/report.hpp"
#include "sdr/result.hpp"
#include "sdr/session.hpp"

namespace sdr::cli {

// An echo, its reply, and the end of a flow.
inline constexpr std::uint32_t kSmallDatagram = 64;

struct ProbeResult {
  std::vector<double> idle_rtt_ms;    // sorted; before the trials
  std::vector<double> loaded_rtt_ms;  // sorted; while load was on the way
  std::uint64_t echoes_sent = 0;
  std::vector<ProbeStatistics> payloads;
  std::uint64_t refused = 0;  // packets that this host would not send, which were sent later
  std::uint64_t receive_buffer = 0;
  HostCounters sender;
  HostCounters receiver;
};

Result<ProbeResult> measure_path(const ProbePlan& plan, ProbeSockets& sockets, Session& session);

struct ProbeServed {
  std::uint64_t trials = 0;
  std::uint64_t packets = 0;
  std::uint64_t host_drops = 0;
};

Result<ProbeServed> answer_probe(const ProbePlan& plan, ProbeSockets& sockets, Session& session);

}  // namespace sdr::cli

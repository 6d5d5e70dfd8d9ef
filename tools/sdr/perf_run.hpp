// A run of `sdr perf`, its two ends, over a Connection (any scheme) or over a QueuePair alone (scheme "none").
//
// Each takes a path and a session that are agreed upon, does the whole plan, and returns what it saw; sending and
// receiving end at the same point. The client's last word is {"done": true}, the server's what it has counted.
//
// Time: a Write's completion time is from its posting to the moment the client knows it complete. Writes of the warm-up
// are finished before the first one that counts is posted.
//
// Bounds: a silent peer ends a run after Path::timeout(), a closed session at once. Without reliability a message that
// gets nothing new for kLostAfter and misses chunks is given up, and counted as lost.
//
// Threads: one a process.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sdr/path.hpp"
#include "sdr/perf_plan.hpp"
#include "sdr/result.hpp"
#include "sdr/session.hpp"
#include "sdr/units.hpp"

namespace sdr::cli {

class ReceiveBuffers;  // perf_ends.hpp

inline constexpr Duration kLostAfter = std::chrono::seconds(1);

// What the client saw. Counters are of the Writes that count, without the warm-up.
struct SenderResult {
  std::vector<Duration> completion_times;  // in order of posting
  Duration elapsed{0};                     // from the first post to the last completion
  std::uint64_t packets_sent = 0;
  std::uint64_t packets_lost = 0;
  std::uint64_t chunks_sent = 0;
  std::uint64_t chunks_retransmitted = 0;
  std::uint64_t parity_chunks_sent = 0;
  std::uint64_t send_calls = 0;
  Duration rtt_min{0};
  Duration rtt_smoothed{0};
  std::uint32_t chunk_bytes = 0;
  std::uint16_t packet_overhead = 0;
  RateStatus rate;              // how fast it was allowed to send, by the end
  LinkEstimate link;            // what the connection has learned of the path, by the end
  std::string offload_failure;  // why the offload device was left; empty: it was not
};

// What the server saw.
struct ReceiverResult {
  std::uint64_t writes = 0;  // complete, of those that count
  std::uint64_t wrong = 0;   // of those, with other bytes than were sent
  std::uint64_t lost = 0;    // given up (scheme none)
  std::uint64_t packets_received = 0;
  std::uint64_t duplicate_packets = 0;
  std::uint64_t late_packets = 0;
  std::uint64_t host_drops = 0;
  std::uint64_t chunks_recovered = 0;
  std::uint64_t fallbacks = 0;
  std::uint64_t receive_calls = 0;
  std::string offload_failure;

  [[nodiscard]] Json to_json() const;
  static Result<ReceiverResult> from_json(const Json& json);
};

// What came in between two readings of a Connection's statistics, or of a QueuePair's counters.
template <typename Counters>
void add_received(ReceiverResult& result, const Counters& now, const Counters& before) {
  result.packets_received = now.packets_received - before.packets_received;
  result.duplicate_packets = now.duplicate_packets - before.duplicate_packets;
  result.late_packets = now.late_packets - before.late_packets;
  result.host_drops = now.host_drops - before.host_drops;
  result.receive_calls = now.receive_calls - before.receive_calls;
}

Result<SenderResult> send_reliable(const Path& path, const PerfPlan& plan, const Payload& payload, Session& session);
Result<ReceiverResult> receive_reliable(const Path& path, const PerfPlan& plan, ReceiveBuffers& buffers,
                                        Session& session);
Result<SenderResult> send_bare(const Path& path, const PerfPlan& plan, const Payload& payload, Session& session);
Result<ReceiverResult> receive_bare(const Path& path, const PerfPlan& plan, ReceiveBuffers& buffers, Session& session);

}  // namespace sdr::cli

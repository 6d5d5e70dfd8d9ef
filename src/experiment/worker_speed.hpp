// WorkerSpeed: how many packets a second one core takes through the receive worker, by the order they come in.
//
// Model: 16 posted messages of 2048 packets of 4 KiB (8 MiB each) are filled one after another, from completions that
// lie ready in batches of 64, as many as a system call brings. After its last packet a message is checked to be
// complete, completed and posted again: that is in the figure. Payload is not; placing it is the transport's. Shuffled:
// no packet is further than `window` places from its turn.
//
// Threads: one, the caller's; it should have its core to itself.
#pragma once

#include <cstdint>
#include <memory>

#include "sdr/units.hpp"

namespace sdr::experiment {

// Who sets the bits: the library's worker, or one that does the same with an atomic operation for every packet, for
// comparison.
enum class WorkerKind { Batched, AtomicPerPacket };

struct WorkerLoadOptions {
  std::uint32_t packets_per_chunk = 16;  // a power of two up to 2048
  std::uint32_t window = 1;              // 1: in order; 2048: anywhere in the message
  std::uint32_t interleaved = 1;         // messages that take turns, packet by packet: 1 or a power of two up to 16
};

// The messages of one measurement, ready to be filled again and again.
class WorkerLoad {
 public:
  explicit WorkerLoad(const WorkerLoadOptions& options, WorkerKind kind = WorkerKind::Batched);
  ~WorkerLoad();
  WorkerLoad(const WorkerLoad&) = delete;
  WorkerLoad& operator=(const WorkerLoad&) = delete;

  static constexpr std::uint64_t kPackets = 16ULL * 2048;
  // Fills every message once: kPackets packets. False when a message was not complete after its last packet.
  bool run_once();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// Million packets a second.
struct WorkerSpeed {
  double in_order_mpps = 0;           // chunks of 16 packets
  double shuffled_mpps = 0;           // the same within a window of 64
  double one_packet_chunks_mpps = 0;  // in order, a chunk a packet
  double atomic_per_packet_mpps = 0;  // as in_order, by an atomic operation a packet
  double atomic_shuffled_mpps = 0;    // as shuffled, likewise
};

// Medians of `rounds` measurements of about `each`, the five by turns.
WorkerSpeed measure_worker_speed(unsigned rounds = 5, Duration each = std::chrono::milliseconds(20));

}  // namespace sdr::experiment

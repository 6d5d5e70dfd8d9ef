// Bottleneck: the rate of one direction of a path and what stands before it: a bounded queue, drop-tail or with CoDel,
// or a policer.
//
// It holds descriptions of packets, not their bytes, and reads no clock. A packet that is accepted waits for those
// before it and then takes 8 b / rate; that time is kept to fractions of a nanosecond. Being asked late changes
// nothing: take() computes with the times at which things happened, not with the time at which it is called.
//
// The limit is of the bytes that wait; the packet that is being sent is not among them, so that a limit of 0 still
// carries what comes one by one. A policer passes what its bucket has tokens for, at once and as fast as it came.
// Without a rate everything passes.
//
// Memory grows to the longest queue there ever was and then stays. Threads: one at a time, with times that do not go
// back.
#pragma once

#include <cstdint>
#include <vector>

#include "sdr/units.hpp"
#include "simulation/codel.hpp"
#include "simulation/queue_spec.hpp"

namespace sdr::simulation {

struct QueuedPacket {
  std::uint32_t handle = 0;  // the caller's
  std::uint32_t bytes = 0;   // on the wire
  bool ecn_capable = false;
  TimePoint arrived{};
};

struct Departure {
  enum class Fate : std::uint8_t { Sent, Marked, Dropped };
  QueuedPacket packet;
  Fate fate = Fate::Sent;
  TimePoint at{};  // when its last bit is out; of a dropped one, when it was dropped
};

struct QueueCounts {
  std::uint64_t tail_drops = 0;   // the queue was full
  std::uint64_t codel_drops = 0;  // waited too long
  std::uint64_t policed = 0;      // the bucket was empty
  std::uint64_t marked = 0;
  std::uint64_t most_bytes = 0;  // that ever waited
  Duration longest_wait{0};      // of those that were sent
  Duration waited{0};            // of those that were sent, together
  std::uint64_t sent = 0;
};

class Bottleneck {
 public:
  Bottleneck(const QueueSpec& spec, Bandwidth rate, std::uint32_t mtu, TimePoint start);

  // False: dropped. What is due before `now` must have been taken.
  bool offer(const QueuedPacket& packet, TimePoint now);
  // When the next packet's sending begins, which is when it leaves the queue; kNever when none waits.
  [[nodiscard]] TimePoint next() const;
  // Takes out the next packet whose sending has begun by `now`; false when there is none.
  bool take(TimePoint now, Departure& into);
  // Of packets whose sending begins from then on.
  void set_rate(Bandwidth rate, TimePoint now);

  [[nodiscard]] std::uint64_t waiting_bytes() const { return waiting_bytes_; }
  [[nodiscard]] const QueueCounts& counts() const { return counts_; }

 private:
  [[nodiscard]] bool conforms(std::uint32_t bytes, TimePoint now);
  void fill_bucket(TimePoint now);
  [[nodiscard]] TimePoint send(std::uint32_t bytes, TimePoint begin);
  void push(const QueuedPacket& packet);

  QueueSpec spec_;
  Codel codel_;
  bool limited_;
  double ns_per_byte_;

  std::vector<QueuedPacket> ring_;  // a power of two long
  std::uint64_t head_ = 0;
  std::uint64_t tail_ = 0;
  std::uint64_t waiting_bytes_ = 0;
  TimePoint free_at_{};       // when everything that left the queue has been sent, in whole nanoseconds, and
  double free_fraction_ = 0;  // what is left
  double tokens_;             // bytes in the policer's bucket, at
  TimePoint filled_at_;
  QueueCounts counts_;
};

}  // namespace sdr::simulation

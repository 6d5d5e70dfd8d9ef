// FlowRecord: what the receiver saw of one flow in one trial, and what that says about each packet.
//
// Told of arrivals in their order and of the socket's drop counter after each batch of them, it says of every packet
// whether it arrived, was lost on the path, or was dropped by this host.
//
// Reordered is what RFC 4737 calls so: a packet whose number is below one that arrived before it. The first copy of a
// packet counts; further ones are duplicates.
//
// Host drops: a counter that grew by d between two batches says that d packets came over the path, between the highest
// number of the batch before and that of this one, and found no room. They are looked for among the numbers missing
// there; when more are missing than were dropped, the longest runs are taken first, since a full buffer drops what
// comes one after the other. When fewer are missing (the host dropped a late one), those below are taken, nearest
// first. A drop that fits no missing packet (a duplicate) stays counted, and hides no loss. Of a run that is the host's
// in part it is not known which packets are: as many as remain are lost, but none of them is part of a known run.
//
// No I/O, no clock. Memory: two bits a packet, and at most kMostWindows windows. One thread.
#pragma once

#include <cstdint>
#include <vector>

namespace sdr::cli {

struct FlowOutcome {
  std::uint64_t sent = 0;
  std::uint64_t arrived = 0;  // different packets that the program got
  std::uint64_t lost = 0;     // on the path
  std::uint64_t host_drops = 0;
  std::uint64_t duplicates = 0;
  std::uint64_t reordered = 0;

  FlowOutcome& operator+=(const FlowOutcome& other);
  friend bool operator==(const FlowOutcome&, const FlowOutcome&) = default;
};

class FlowRecord {
 public:
  static constexpr std::size_t kMostWindows = 1 << 16;

  enum class Fate : std::uint8_t { Arrived, Lost, LostAmongDrops, HostDropped };

  // For packets 0 to `most` - 1; `drop_counter` is what the socket counted before the trial.
  FlowRecord(std::uint32_t most, std::uint32_t drop_counter);

  void arrived(std::uint32_t sequence);
  // The flow has ended after `sent` packets: drops told of from now on may be of any of them.
  void ended(std::uint32_t sent);
  // After the arrivals of a batch: the socket's counter, as the last of them found it.
  void drops_so_far(std::uint32_t counter);

  [[nodiscard]] bool has_ended() const { return ended_; }
  [[nodiscard]] std::uint32_t drop_counter() const { return counter_; }
  [[nodiscard]] std::uint64_t arrived_so_far() const { return outcome_.arrived; }

  // Once, at the end: judges the first `sent` packets.
  FlowOutcome finish(std::uint32_t sent);
  // After finish().
  [[nodiscard]] Fate fate(std::uint32_t sequence) const;

 private:
  struct Window {
    std::uint32_t from = 0;
    std::uint32_t to = 0;
    std::uint64_t drops = 0;
  };
  struct Gap {
    std::uint32_t from = 0;
    std::uint32_t length = 0;
  };

  std::uint64_t place(const Window& window, std::uint32_t sent, std::vector<Gap>& mixed);
  [[nodiscard]] std::vector<Gap> gaps(std::uint32_t from, std::uint32_t to) const;
  [[nodiscard]] bool missing(std::uint32_t sequence) const { return !arrived_[sequence] && !dropped_[sequence]; }

  std::vector<bool> arrived_;
  std::vector<bool> dropped_;  // with arrived_, after finish(): LostAmongDrops
  std::vector<Window> windows_;
  std::uint32_t counter_;
  std::uint32_t next_expected_ = 0;  // one above the highest number so far
  std::uint32_t window_from_ = 0;
  std::uint32_t window_to_ = 0;
  bool ended_ = false;
  FlowOutcome outcome_;
};

}  // namespace sdr::cli

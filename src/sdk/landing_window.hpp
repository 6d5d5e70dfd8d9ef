// LandingWindow: keeps a sender on the same machine from overrunning the receiver's socket buffer.
//
// A link has a rate; loopback has none, and a socket that is not read in time drops packets. When both ends are on one
// machine the receiver reports how many bytes have left its socket, and the sender keeps no more than a socket buffer
// between itself and there. What was lost all the same never lands: a sender that is stuck asks with a probe, and the
// answer to a probe settles everything sent before it, landed or lost. What was taken for lost may still land, when the
// answer overtook it; later reports correct that, and the window is exceeded by no more than that much until they do.
//
// Off (always open) on paths between machines: there a pace and a congestion controller decide, not this.
// Threads: one. Both halves are driven with the QueuePair; no I/O.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "sdk/control_message.hpp"
#include "sdr/units.hpp"

namespace sdr::sdk {

// A packet costs a socket buffer this much beside its payload, roughly.
inline constexpr std::uint64_t kPacketCost = 64;
inline constexpr Duration kLandingProbeAfter = std::chrono::milliseconds(2);

class LandingWindow {
 public:
  // `window` in bytes; 0: always open. The last packet of a batch may overdraw the allowance by less than the cost of
  // the largest packet, which is kept back here. A window of many injections (packets that are handed over at once) is
  // allowed by whole ones: what is left over of one would be a system call by itself, at either end.
  void open(std::uint64_t window, std::uint64_t largest_packet, std::uint64_t injection_packets) {
    window_ = window == 0 ? 0 : window - std::min(window, largest_packet) + 1;
    const std::uint64_t injection = injection_packets * largest_packet;
    grain_ = injection_packets > 1 && injection <= window_ / kLeastInjections ? injection : 1;
  }
  [[nodiscard]] bool enabled() const { return window_ != 0; }
  [[nodiscard]] std::uint64_t allowance() const {
    if (!enabled()) return UINT64_MAX;
    const std::uint64_t in_flight = sent_ - settled_;
    return in_flight >= window_ ? 0 : (window_ - in_flight) / grain_ * grain_;
  }
  void spend(std::uint64_t bytes) { sent_ += bytes; }
  // By the peer's word of what it has taken, in the bytes of spend(). Less than a window of losses may not show yet.
  [[nodiscard]] std::uint64_t lost() const { return lost_; }

  void handle(const LandingReport& report, TimePoint now) {
    if (report.landed < landed_ || report.landed > sent_) return;  // old, or not of this connection
    landed_ = report.landed;
    if (report.probe > answered_ && report.probe <= sent_) {
      answered_ = report.probe;
      lost_ = report.probe > landed_ ? report.probe - landed_ : 0;
    }
    lost_ = std::min(lost_, sent_ - landed_);  // the rest of it was late, not lost
    if (landed_ + lost_ > settled_) {
      settled_ = landed_ + lost_;
      stuck_since_ = now;
    }
  }
  // Due when packets wait and nothing has landed for a while.
  std::optional<LandingProbe> poll(bool blocked, TimePoint now) {
    if (!enabled() || !blocked) {
      stuck_since_ = now;
      return std::nullopt;
    }
    if (now < stuck_since_ + kLandingProbeAfter) return std::nullopt;
    stuck_since_ = now;
    return LandingProbe{sent_};
  }
  [[nodiscard]] TimePoint next_timeout(bool blocked) const {
    return enabled() && blocked ? stuck_since_ + kLandingProbeAfter : kNever;
  }

 private:
  // In a window, for it to be allowed by whole ones.
  static constexpr std::uint64_t kLeastInjections = 8;

  std::uint64_t window_ = 0;
  std::uint64_t grain_ = 1;
  std::uint64_t sent_ = 0;
  std::uint64_t landed_ = 0;
  std::uint64_t lost_ = 0;
  std::uint64_t settled_ = 0;   // landed or lost
  std::uint64_t answered_ = 0;  // the latest probe that was
  TimePoint stuck_since_{};
};

// The receiving half: when to report.
class LandingReporter {
 public:
  // Reports every `every` bytes; 0: never unasked.
  void report_every(std::uint64_t every) { every_ = every; }
  // The answer must come after another look at the channels: the probe may have overtaken what it asks about.
  void handle(const LandingProbe& probe) { probe_ = probe.sent; }
  [[nodiscard]] bool asked() const { return probe_ != 0; }
  std::optional<LandingReport> poll(std::uint64_t landed) {
    if (probe_ == 0 && (every_ == 0 || landed - reported_ < every_)) return std::nullopt;
    reported_ = landed;
    const LandingReport report{landed, probe_};
    probe_ = 0;
    return report;
  }

 private:
  std::uint64_t every_ = 0;
  std::uint64_t reported_ = 0;
  std::uint64_t probe_ = 0;
};

}  // namespace sdr::sdk

// Timing: the intervals of the protocol, all derived from the measured RTT, in one place.
//
// People meet NICs that retransmit every 10 ms on a 30 ms path whatever is configured; here every timer follows the
// path. The bounds keep a loopback from being polled to death and a dead path from being forgotten.
#pragma once

#include <algorithm>

#include "reliability/rtt_estimator.hpp"
#include "sdr/units.hpp"

namespace sdr::reliability {

inline constexpr Duration kFastestOffer = std::chrono::milliseconds(1);
inline constexpr Duration kSlowestOffer = std::chrono::milliseconds(250);
inline constexpr Duration kSlowestConfirmation = std::chrono::seconds(1);
inline constexpr Duration kLeastTolerance = std::chrono::microseconds(100);
// Between processes of one machine control overtakes all that waits in the socket for data.
inline constexpr Duration kLocalTolerance = std::chrono::milliseconds(4);
inline constexpr Duration kLocalOffer = std::chrono::milliseconds(4);
inline constexpr Duration kLeastRto = std::chrono::milliseconds(1);
// A process that is slow, or does not get its core for a while, loses nothing.
inline constexpr Duration kLocalRto = std::chrono::milliseconds(100);
// Offers behind a repair, which show its loss: a share of the RTT, within these.
inline constexpr int kBehindRepairShare = 64;
inline constexpr Duration kSoonestBehindRepair = std::chrono::microseconds(50);
// What nothing can go on without is stated so often close together: a lost one then costs little.
inline constexpr int kCloseStatements = 4;
inline constexpr Duration kClosest = std::chrono::microseconds(5);
inline constexpr int kCloseShare = 256;  // of the RTT
// Nothing heard for this many RTTs: send no data into the dark, only ask.
inline constexpr int kSilentRtts = 4;
inline constexpr Duration kLeastSilence = std::chrono::milliseconds(100);

struct Timing {
  RttEstimator rtt;
  double rto_factor = 3;
  double tolerance_share = 1.0 / 16;
  Duration least_tolerance = kLeastTolerance;
  Duration least_rto = kLeastRto;
  int close_statements = kCloseStatements;
  Duration fastest_offer = kFastestOffer;
  Duration offers_apart{0};  // at least: on a slow path they would take too much of it

  // Both ends on one machine: nothing is lost between them but where a socket overflows.
  void between_processes() {
    least_tolerance = kLocalTolerance;
    least_rto = kLocalRto;
    close_statements = 1;
    fastest_offer = kLocalOffer;
  }
  // How long a gap may be reordering.
  [[nodiscard]] Duration tolerance() const {
    return std::max(least_tolerance, std::chrono::duration_cast<Duration>(rtt.min() * tolerance_share));
  }
  // Timeout of a chunk, paper section 4.1.1: RTO = rto_factor * RTT, never within the RTT's own variation.
  [[nodiscard]] Duration rto() const {
    return std::max({least_rto, std::chrono::duration_cast<Duration>(rtt.smoothed() * rto_factor),
                     rtt.smoothed() + 4 * rtt.variance()});
  }
  // How often an open transfer is stated again; ever more slowly towards a peer that is silent.
  [[nodiscard]] Duration offer_interval(Duration silence) const {
    const Duration usual = std::min(kSlowestOffer, std::max({rtt.smoothed() / 4, fastest_offer, offers_apart}));
    return silence < silent_after() ? usual : std::clamp(silence / 4, usual, kSlowestOffer);
  }
  [[nodiscard]] Duration behind_repair() const {
    return std::clamp(rtt.smoothed() / kBehindRepairShare, kSoonestBehindRepair, kFastestOffer);
  }
  [[nodiscard]] Duration close_interval() const { return std::max(kClosest, rtt.smoothed() / kCloseShare); }
  [[nodiscard]] Duration silent_after() const { return std::max(kLeastSilence, rtt.smoothed() * kSilentRtts); }
};

}  // namespace sdr::reliability

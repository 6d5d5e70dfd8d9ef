// RttEstimator: smoothed round-trip time from echoed stamps (RFC 6298 section 2, RFC 7323 for the stamps).
//
// Until the first sample the configured value stands. No Karn rule is needed: a stamp names its own transmission.
#pragma once

#include <algorithm>

#include "sdr/units.hpp"

namespace sdr::reliability {

class RttEstimator {
 public:
  explicit RttEstimator(Duration initial) : smoothed_(initial), variance_(initial / 2), min_(initial) {}

  // `exact`: nothing was subtracted from it. Where the peer's holding time was, a peer that reads its clock once a
  // round makes the RTT look shorter by up to a round: good for the mean, not for the minimum.
  void sample(Duration rtt, bool exact = true) {
    rtt = std::max(rtt, Duration(1));
    if (!measured_) {
      measured_ = true;
      smoothed_ = rtt;
      variance_ = rtt / 2;
      min_ = rtt;
      return;
    }
    const Duration error = rtt > smoothed_ ? rtt - smoothed_ : smoothed_ - rtt;
    variance_ = (variance_ * 3 + error) / 4;
    smoothed_ = (smoothed_ * 7 + rtt) / 8;
    if (exact) min_ = std::min(min_, rtt);
  }

  [[nodiscard]] bool measured() const { return measured_; }
  [[nodiscard]] Duration smoothed() const { return smoothed_; }
  [[nodiscard]] Duration variance() const { return variance_; }
  [[nodiscard]] Duration min() const { return min_; }

 private:
  bool measured_ = false;
  Duration smoothed_;
  Duration variance_;
  Duration min_;
};

}  // namespace sdr::reliability

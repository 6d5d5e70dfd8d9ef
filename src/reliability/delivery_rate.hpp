// DeliveryRate: how fast packets land at the peer, from its counts at the arrival of our offers.
//
// Between two offers sent some time apart so many packets landed in between: at least a quarter of an RTT apart, so
// that what a batch brings does not look like a rate. Sans-I/O, one thread. Source: the idea of delivery-rate samples,
// draft-cheng-iccrg-delivery-rate-estimation.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "reliability/control_message.hpp"
#include "sdr/units.hpp"

namespace sdr::reliability {

class DeliveryRate {
 public:
  void landed(Stamp echo, std::uint64_t packets, Duration rtt) {
    const Stamp apart = static_cast<Stamp>(std::max<Duration>(rtt / 4, std::chrono::microseconds(100)).count());
    if (echo < since_ + apart || packets < before_) return;
    if (since_ != 0 && packets > before_)
      sample_ = static_cast<double>(packets - before_) * 1e9 / static_cast<double>(echo - since_);
    since_ = echo;
    before_ = packets;
  }
  // Packets a second; each sample once.
  std::optional<double> take() { return std::exchange(sample_, std::nullopt); }

 private:
  Stamp since_ = 0;
  std::uint64_t before_ = 0;
  std::optional<double> sample_;
};

}  // namespace sdr::reliability

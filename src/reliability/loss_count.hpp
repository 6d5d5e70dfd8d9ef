// LossCount: how many of our packets the path has lost, from what the peer says had landed when our offers arrived.
//
// Offers go out behind data. Whatever had been sent before an offer and had not landed when it arrived is lost, give or
// take what is reordered around it. Remembers what had been sent with the last few offers; forgets the older ones.
// Packets that the network itself duplicates hide as many losses: nobody can tell them from repeated repairs.
// Sans-I/O, one thread, fixed memory.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "reliability/control_message.hpp"

namespace sdr::reliability {

class LossCount {
 public:
  // Offers of `stamp` go out behind `packets` packets.
  void offered(Stamp stamp, std::uint64_t packets) { offers_[next_++ % offers_.size()] = {stamp, packets}; }
  // `packets` had landed when those offers arrived.
  void landed(Stamp stamp, std::uint64_t packets) {
    const auto offer =
        std::find_if(offers_.begin(), offers_.end(), [stamp](const Offered& o) { return o.stamp == stamp; });
    if (stamp == 0 || offer == offers_.end() || offer->packets < counted_) return;
    counted_ = offer->packets;
    // Data and control come in on different sockets: what an offer overtook on the last metre counts as lost until the
    // next word. So each word is an upper bound, and the newest is the best.
    lost_ = offer->packets > packets ? offer->packets - packets : 0;
  }

  [[nodiscard]] std::uint64_t lost() const { return lost_; }
  // Of the packets whose fate is known; 0 before any is.
  [[nodiscard]] double share() const {
    return counted_ == 0 ? 0 : static_cast<double>(lost_) / static_cast<double>(counted_);
  }

 private:
  struct Offered {
    Stamp stamp = 0;
    std::uint64_t packets = 0;
  };
  std::array<Offered, 64> offers_{};
  std::size_t next_ = 0;
  std::uint64_t counted_ = 0;
  std::uint64_t lost_ = 0;
};

}  // namespace sdr::reliability

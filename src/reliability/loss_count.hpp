// LossCount: how many of our packets the path has lost, from what the peer says had landed when our offers arrived.
//
// Offers go out behind data. Whatever had been sent before an offer and had not landed when it arrived is lost, give or
// take what is reordered around it. Remembers what had been sent with the last few offers; forgets the older ones.
// A word is exact when nothing had been sent for a while before its offers: nothing was there to overtake them or to be
// overtaken. In a steady stream none is; there the count is off by what an end takes in one go, to either side, which
// matters the less the more packets it is of.
// Packets that the network itself duplicates hide as many losses: nobody can tell them from repeated repairs.
// Sans-I/O, one thread, fixed memory.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>

#include "reliability/control_message.hpp"

namespace sdr::reliability {

class LossCount {
 public:
  // What became of `sent` packets; fewer than none are lost when some were thought to be before.
  struct Sample {
    std::uint64_t sent = 0;
    std::int64_t lost = 0;
    bool exact = false;
  };

  // Offers of `stamp` go out behind `packets` packets; `quiet`: well behind them.
  void offered(Stamp stamp, std::uint64_t packets, bool quiet) {
    offers_[next_++ % offers_.size()] = {stamp, packets, quiet};
  }
  // `packets` had landed when those offers arrived.
  void landed(Stamp stamp, std::uint64_t packets) {
    const auto offer =
        std::find_if(offers_.begin(), offers_.end(), [stamp](const Offered& o) { return o.stamp == stamp; });
    if (stamp == 0 || offer == offers_.end() || offer->packets < counted_) return;
    counted_ = offer->packets;
    exact_ = offer->quiet;
    // Data and control come in on different sockets: what an offer overtook on the last metre counts as lost until the
    // next word. So each word is an upper bound, and the newest is the best.
    lost_ = offer->packets > packets ? offer->packets - packets : 0;
  }

  [[nodiscard]] std::uint64_t lost() const { return lost_; }
  // What is new since the last one: at the first exact word, or when it is so many packets that it need not be exact.
  std::optional<Sample> take_sample() {
    if (counted_ == sampled_.counted || (!exact_ && counted_ - sampled_.counted < kInexactPackets)) return std::nullopt;
    const Sample sample{counted_ - sampled_.counted,
                        static_cast<std::int64_t>(lost_) - static_cast<std::int64_t>(sampled_.lost), exact_};
    sampled_ = {counted_, lost_};
    return sample;
  }
  // What has been counted since the last sample is none.
  void skip_sample() { sampled_ = {counted_, lost_}; }
  // Of the packets whose fate is known; 0 before any is.
  [[nodiscard]] double share() const {
    return counted_ == 0 ? 0 : static_cast<double>(lost_) / static_cast<double>(counted_);
  }

 private:
  struct Offered {
    Stamp stamp = 0;
    std::uint64_t packets = 0;
    bool quiet = false;
  };
  static constexpr std::uint64_t kInexactPackets = 131072;
  std::array<Offered, 64> offers_{};
  std::size_t next_ = 0;
  std::uint64_t counted_ = 0;
  std::uint64_t lost_ = 0;
  bool exact_ = false;  // the word that they are from
  struct {
    std::uint64_t counted = 0;
    std::uint64_t lost = 0;
  } sampled_;
};

}  // namespace sdr::reliability

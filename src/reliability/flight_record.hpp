// FlightRecord: what had been sent when each of the last offers went out, so that the peer's word on what had landed
// when they arrived becomes a sample: how fast packets land, how many are lost, how many are in flight.
//
// No packet is remembered, only offers. Whatever was sent before an offer that is answered has landed or is lost; what
// was sent behind it is in flight. Data and control come in on different sockets, and an end takes what is there in
// batches, so a word may count packets that were sent behind the offer as landed, or miss some that were sent before
// it: losses are what stays missing in the best of the last kWords words.
//
// Times of landing are by the peer's clock, of sending by ours; only differences of each are used, and the difference
// of the two as a delay without an origin. Sans-I/O, one thread, fixed memory.
// Source: draft-ietf-ccwg-bbr, delivery rate samples, per offer in the place of per packet.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>

#include "reliability/control_message.hpp"
#include "sdr/units.hpp"

namespace sdr::reliability {

class FlightRecord {
 public:
  // What all connections of the group have seen land, when the offer went out.
  struct Mark {
    std::uint64_t delivered = 0;  // bytes of the group
    std::uint64_t in_flight = 0;
  };
  struct Word {
    Stamp echo = 0;
    std::uint64_t landed = 0;   // packets, when that offer arrived
    std::uint64_t marks = 0;    // of them
    std::uint64_t arrival = 0;  // nanoseconds on the peer's clock; 0: not known
    Duration held{0};           // at the peer, before the answer
  };
  struct Sample {
    std::uint64_t delivered = 0;  // bytes
    std::uint64_t lost = 0;
    std::uint64_t sent = 0;  // between the offer of the sample before and this one
    std::uint64_t packets_landed = 0;
    std::uint64_t packets_lost = 0;
    std::uint64_t marks = 0;
    Duration landed_in{0};    // the last round trip, by the peer's clock
    Duration sent_in{0};      // and by ours
    Duration apart_there{0};  // since the sample before, likewise
    Duration apart_here{0};
    Duration rtt{0};  // zero: no exact sample
    Duration delay{0};
    Mark mark;  // of the offer that is answered
    bool app_limited = false;
  };

  // An offer goes out behind `packets` packets of `bytes` bytes, headers included.
  void offered(Stamp stamp, std::uint64_t packets, std::uint64_t bytes, const Mark& mark, bool app_limited);
  // Nothing for an old word.
  std::optional<Sample> landed(const Word& word, TimePoint now);

  // Of so many that have been sent.
  [[nodiscard]] std::uint64_t in_flight(std::uint64_t bytes) const { return bytes - std::min(bytes, answered_.bytes); }
  [[nodiscard]] std::uint64_t packets_answered() const { return answered_.packets; }
  [[nodiscard]] Stamp newest_offer() const { return newest_; }
  [[nodiscard]] Stamp newest_answer() const { return answered_.stamp; }
  [[nodiscard]] std::uint64_t packets_offered() const { return offered_; }

 private:
  struct Offer {
    Stamp stamp = 0;
    std::uint64_t packets = 0;
    std::uint64_t bytes = 0;
    Mark mark;
    std::uint64_t limited = 0;  // offers so far before which this end sent less than it might have
    // When it went out: the offer that was answered last, its arrival at the peer, and its `limited`.
    Stamp last_answered = 0;
    std::uint64_t last_arrival = 0;
    std::uint64_t last_limited = 0;
  };
  static constexpr std::size_t kOffers = 256;
  static constexpr std::size_t kWords = 3;

  std::array<Offer, kOffers> offers_{};
  std::size_t next_ = 0;
  std::uint64_t limited_ = 0;
  Stamp newest_ = 0;
  std::uint64_t offered_ = 0;
  Offer answered_{};  // the newest that is
  std::uint64_t arrival_ = 0;
  std::uint64_t landed_ = 0;
  std::uint64_t marks_ = 0;
  std::array<std::uint64_t, kWords> missing_{};  // packets, by the last words
  std::size_t word_ = 0;
  std::uint64_t lost_ = 0;
};

}  // namespace sdr::reliability

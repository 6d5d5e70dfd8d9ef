// RateGroup: one controller for the connections that share a path, and RateMember: a connection's part in it.
//
// A member says what it has sent and what the peer has answered; the group makes samples of all members' bytes together
// and hands each of those that have something to send an equal part of pace and window. A member says as well when the
// next question to the peer is due: an offer every sixteenth of the RTT, but no more than one in so many bytes as keep
// them cheap, and at once when the window is used up and all that was asked has been answered.
//
// Threads: members of one group may be used by different threads, each by one at a time.
#pragma once

#include <algorithm>
#include <array>
#include <memory>
#include <mutex>
#include <vector>

#include "reliability/flight_record.hpp"
#include "reliability/rate_controller.hpp"

namespace sdr::reliability {

class RateGroup {
 public:
  RateGroup(RateMode mode, std::unique_ptr<RateController> controller)
      : mode_(mode), controller_(std::move(controller)) {}

  [[nodiscard]] RateMode mode() const { return mode_; }
  [[nodiscard]] RateStatus status() const;

 private:
  friend class RateMember;
  struct Share {
    std::uint64_t in_flight = 0;
    TimePoint wanted_at = TimePoint::min();  // when it last had something to send
  };

  // Of those that have something to send, this one among them.
  [[nodiscard]] std::size_t active(const Share& self, TimePoint now) const;
  void reported(const FlightRecord::Sample& flight, bool dark, TimePoint now);

  // The middle one of the last three: an end that is held up between reading its clock and its socket makes a time
  // look shorter than any is, and a least one would keep that.
  class Middle {
   public:
    Duration add(Duration value) {
      last_[next_++ % last_.size()] = value;
      if (next_ < last_.size()) return value;
      return std::max(std::min(last_[0], last_[1]), std::min(std::max(last_[0], last_[1]), last_[2]));
    }

   private:
    std::array<Duration, 3> last_{};
    std::size_t next_ = 0;
  };

  RateMode mode_;
  mutable std::mutex mutex_;
  std::unique_ptr<RateController> controller_;
  std::vector<std::shared_ptr<Share>> shares_;
  std::uint64_t delivered_ = 0;  // bytes, of all members
  std::uint64_t in_flight_ = 0;
  std::uint64_t round_end_ = 0;  // delivered by then: the round is over once what was sent behind it is answered
  TimePoint quiet_since_ = TimePoint::min();  // nothing is in flight since then
  Middle middle_rtt_;
  Middle middle_delay_;
  bool begun_ = false;
  Duration rtt_{0};
  RateStatus counts_;  // losses and marks
};

class RateMember {
 public:
  explicit RateMember(std::shared_ptr<RateGroup> group, std::uint32_t packet_bytes);
  ~RateMember();
  RateMember(const RateMember&) = delete;
  RateMember& operator=(const RateMember&) = delete;

  // How far this end has come: packets and bytes on the wire sent so far; `wants`: more waits to be sent.
  struct Sent {
    std::uint64_t packets = 0;
    std::uint64_t bytes = 0;
    bool wants = false;
    Duration rtt{0};  // least one that is known
  };
  struct Allowance {
    Bandwidth pace{};       // zero: not limited
    std::uint64_t packets;  // that may have been sent in all
    Bandwidth bandwidth{};  // of the path, as far as it is known; zero: not known
  };
  [[nodiscard]] Allowance allowance(const Sent& sent, TimePoint now);
  void offered(Stamp stamp, const Sent& sent, TimePoint now);
  // `dark`: nothing had been heard for so long before that nothing was sent.
  void reported(const FlightRecord::Word& word, const Sent& sent, bool dark, TimePoint now);

  // Whether the peer should be asked now what has landed, and when else.
  [[nodiscard]] TimePoint question_at(const Sent& sent, TimePoint now) const;
  [[nodiscard]] TimePoint next_timeout() const;
  [[nodiscard]] bool congested() const;
  [[nodiscard]] std::uint64_t in_flight(const Sent& sent) const { return flight_.in_flight(sent.bytes); }
  [[nodiscard]] RateStatus status() const { return group_->status(); }

 private:
  void note(const Sent& sent, TimePoint now);

  std::shared_ptr<RateGroup> group_;
  std::shared_ptr<RateGroup::Share> share_;
  FlightRecord flight_;
  std::uint32_t packet_bytes_;
  std::uint64_t limit_ = UINT64_MAX;  // packets
  TimePoint asked_at_ = TimePoint::min();
  std::uint64_t asked_bytes_ = 0;  // sent by then
  Duration rtt_{0};
  Bandwidth pace_{};
  TimePoint paced_at_{};
  double behind_ = 0;     // bytes that were allowed and not sent
  double allowed_ = 0;    // bytes, by the pace since the last offer
  bool wanted_ = false;   // without a break since the last offer
  bool blocked_ = false;  // by the window, for a part of that time
};

}  // namespace sdr::reliability

// Clear to send, both ends: how a sender learns which receives are posted, over a path that loses anything.
//
// Model: the receiver states how many receives it has posted and describes those that the sender is not known to know;
// the sender states how many it knows. CtsAnnouncer repeats its statement, at first at the pace of the RTT and then
// ever more slowly, until the sender is seen to know: by its own word, or by data of the newest message. A sender that
// wants to send and has no grant asks, at the pace of the RTT. So no single loss costs more than about an RTT, and a
// duplicate changes nothing.
//
// Threads: driven by the thread that drives the QueuePair. No I/O: due messages are taken by the caller.
// Invariants: announced numbers are contiguous; grants are learnt in order. A statement describes at most the receives
// that there are slots for; older ones, completed before the sender ever heard of them, are granted in bulk, and what
// is sent into them is late.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sdk/control_message.hpp"
#include "sdr/units.hpp"

namespace sdr::sdk {

// Intervals double from the RTT up to this: an idle connection costs one small datagram in this time, or none.
inline constexpr Duration kSlowestRepeat = std::chrono::seconds(1);
inline constexpr Duration kFastestRepeat = std::chrono::milliseconds(1);

class CtsAnnouncer {
 public:
  CtsAnnouncer(std::uint32_t slots, std::uint64_t max_message) : ring_(slots), gone_{.max_length = max_message} {}

  // Where a datagram costs more than its way: as long as the sender has heard of three in four of the receives that it
  // has not used, new ones are said together, within `hold`.
  void gather(Duration hold) { hold_ = hold; }

  // The next receive (its number is posted()) has been posted.
  void announce(const Announcement& announcement);
  void handle(const GrantsKnown& known);
  // Data of message `number` has arrived: the sender knows every receive up to it.
  void seen_in_use(std::uint64_t number);

  // Writes the CTS that is due at `now`, if one is; call again until false.
  bool poll(ByteWriter& writer, TimePoint now, Duration rtt);
  [[nodiscard]] TimePoint next_timeout() const { return known_ < posted_ ? next_ : kNever; }
  [[nodiscard]] std::uint64_t posted() const { return posted_; }
  [[nodiscard]] std::uint64_t known() const { return known_; }

 private:
  struct Run {
    const Announcement* announcement = nullptr;
    std::uint64_t end = 0;
  };
  // The equal announcements from number `from` on.
  [[nodiscard]] Run run_from(std::uint64_t from) const;
  [[nodiscard]] bool sender_has_plenty() const {
    return stated_ > used_ && 4 * (stated_ - used_) >= 3 * (posted_ - used_);
  }
  void say_now();

  std::vector<Announcement> ring_;  // by number modulo slots
  Announcement gone_;               // stands for receives whose place in the ring has been taken
  std::uint64_t posted_ = 0;
  std::uint64_t known_ = 0;      // the sender knows all below
  std::uint64_t described_ = 0;  // of this round of the statement: described so far
  std::uint64_t stated_ = 0;     // all below have been described at least once
  std::uint64_t used_ = 0;       // data has come for messages below
  TimePoint next_ = TimePoint::min();
  Duration interval_{0};
  Duration hold_{0};
  bool held_ = false;   // until next_
  bool asked_ = false;  // the sender waits for a receive
};

class GrantBook {
 public:
  explicit GrantBook(std::uint32_t slots) : ring_(slots) {}

  void handle(const ClearToSend& cts);
  // The announcement of message `number`, if it is granted.
  [[nodiscard]] const Announcement* find(std::uint64_t number) const;
  // Message `number` is the oldest whose announcement is still needed.
  void keep_from(std::uint64_t number) { oldest_ = number; }
  void want() { wanted_ = true; }

  // Writes the statement that is due at `now`, if one is.
  bool poll(ByteWriter& writer, TimePoint now, Duration rtt);
  [[nodiscard]] TimePoint next_timeout() const;
  [[nodiscard]] std::uint64_t known() const { return known_; }

 private:
  std::vector<Announcement> ring_;  // by number modulo slots
  std::uint64_t known_ = 0;
  std::uint64_t oldest_ = 0;
  bool wanted_ = false;
  bool answer_due_ = false;  // a repeated CTS wants to hear that we know
  TimePoint next_request_ = TimePoint::min();
};

}  // namespace sdr::sdk

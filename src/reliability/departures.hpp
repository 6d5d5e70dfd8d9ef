// Departures: what has been handed to the QueuePair and has yet to leave it, oldest first.
//
// When it leaves can only be guessed as it is handed out: the pace may owe for control datagrams or change, a window or
// the transport may hold everything up. Loss is told by offers that were sent behind what is lost, so a guess that is
// too early has things taken for lost that never left. Hence: who is not gone when the guess says so is late, and when
// the late one goes, that is said, too. Those that leave in time keep their guess, which is exact to the packet where
// looks are rare.
//
// Bounded by the QueuePair's backlog. No clock, one thread.
#pragma once

#include <cstdint>
#include <deque>

#include "reliability/transfer_sender.hpp"
#include "sdr/units.hpp"

namespace sdr::reliability {

class Departures {
 public:
  struct Entry {
    std::uint64_t transfer = 0;
    TransferSender::Extent extent;
    TimePoint leaves{};      // as guessed
    std::uint64_t upto = 0;  // payload handed out with it and before it
    bool late = false;
  };

  // `bytes` of payload more wait in the QueuePair.
  void handed_out(std::uint64_t transfer, const TransferSender::Extent& extent, std::uint64_t bytes, TimePoint leaves) {
    handed_out_ += bytes;
    waiting_.push_back({transfer, extent, leaves, handed_out_, false});
  }
  // So much waits there at `now`. Calls on_left(entry) for each late one that has gone, on_late(entry) for each that
  // should have.
  template <typename OnLeft, typename OnLate>
  void look(std::uint64_t backlog, TimePoint now, OnLeft&& on_left, OnLate&& on_late) {
    for (; !waiting_.empty() && waiting_.front().upto + backlog <= handed_out_; waiting_.pop_front())
      if (waiting_.front().late) on_left(waiting_.front());
    for (Entry& entry : waiting_) {
      if (entry.late || entry.leaves > now) continue;
      entry.late = true;
      on_late(entry);
    }
  }
  void clear() { waiting_.clear(); }

 private:
  std::deque<Entry> waiting_;
  std::uint64_t handed_out_ = 0;
};

}  // namespace sdr::reliability

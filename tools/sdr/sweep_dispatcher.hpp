// SweepDispatcher: which rank computes which cell. It knows no network and reads no clock: it is told what happened,
// and when, and says what to do.
//
// Model: a rank has one cell at a time. Cells go out dearest first, so that none of the long ones begins last. A rank
// that was silent for longer than the patience is lost: its cell goes to another. It may come back (it was stopped, or
// cut off): then it counts again, and if its cell was computed twice, the second result is the first one and is
// dropped. A cell that was under way in kMostLosses ranks that were lost is given up: it would take all of them, one
// after the other.
//
// Invariants: an open cell is waiting, under way in at least one rank, or settled. One thread.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "sdr/units.hpp"

namespace sdr::cli {

class SweepDispatcher {
 public:
  static constexpr unsigned kMostLosses = 2;

  struct Work {
    std::uint64_t cell = 0;
    double cost = 0;
  };
  // What became of a rank that is lost.
  struct Loss {
    int rank = 0;
    Duration silence{0};
    std::optional<std::uint64_t> cell;  // that it had
    bool given_up = false;              // the cell will not be tried again
  };

  SweepDispatcher(std::vector<Work> open, Duration patience);

  // A rank from which something is expected from now on. It gets work once it is ready.
  void expect(int rank, TimePoint now);
  void ready(int rank) { ranks_.at(rank).ready = true; }
  // Never silent: this process itself.
  void expect_always(int rank);

  // Something came from this rank. True when it had been lost.
  bool heard(int rank, TimePoint now);
  // The next cell for a rank, which has it from now on; nothing when it is busy, not ready or lost, or when no cell
  // waits.
  std::optional<std::uint64_t> assign(int rank);
  // The rank is through with a cell. True when the result counts.
  bool finish(int rank, std::uint64_t cell);
  // Ranks that were silent for too long by now, each told once.
  std::vector<Loss> expire(TimePoint now);

  // Every cell is settled.
  [[nodiscard]] bool done() const { return cells_.empty(); }
  [[nodiscard]] std::uint64_t unsettled() const { return cells_.size(); }
  [[nodiscard]] bool live(int rank) const { return ranks_.at(rank).state == State::Live; }
  // Those who are lost now.
  [[nodiscard]] std::vector<int> lost() const;

 private:
  enum class State : std::uint8_t { Live, Lost };
  struct Cell {
    bool waiting = true;
    unsigned losses = 0;  // of ranks that had it
  };
  struct Rank {
    State state = State::Live;
    bool watched = true;
    bool ready = false;
    TimePoint heard{};
    std::optional<std::uint64_t> cell;
  };

  void settle(std::uint64_t cell);
  void release(Rank& rank);

  Duration patience_;
  std::deque<std::uint64_t> waiting_;
  std::unordered_map<std::uint64_t, Cell> cells_;  // that are not settled
  std::map<int, Rank> ranks_;
};

}  // namespace sdr::cli

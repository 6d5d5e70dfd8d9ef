#include "sdr/sweep_dispatcher.hpp"

#include <algorithm>

namespace sdr::cli {

SweepDispatcher::SweepDispatcher(std::vector<Work> open, Duration patience) : patience_(patience) {
  std::sort(open.begin(), open.end(),
            [](const Work& a, const Work& b) { return a.cost != b.cost ? a.cost > b.cost : a.cell < b.cell; });
  for (const Work& work : open) {
    waiting_.push_back(work.cell);
    cells_[work.cell] = {};
  }
}

void SweepDispatcher::expect(int rank, TimePoint now) {
  ranks_[rank] = Rank{.heard = now};
}

void SweepDispatcher::expect_always(int rank) {
  ranks_[rank] = Rank{.watched = false, .ready = true};
}

bool SweepDispatcher::heard(int rank, TimePoint now) {
  Rank& speaker = ranks_.at(rank);
  speaker.heard = now;
  if (speaker.state != State::Lost) return false;
  speaker.state = State::Live;
  return true;
}

std::optional<std::uint64_t> SweepDispatcher::assign(int rank) {
  Rank& idle = ranks_.at(rank);
  if (idle.state != State::Live || !idle.ready || idle.cell || waiting_.empty()) return std::nullopt;
  idle.cell = waiting_.front();
  waiting_.pop_front();
  cells_.at(*idle.cell).waiting = false;
  return idle.cell;
}

bool SweepDispatcher::finish(int rank, std::uint64_t cell) {
  Rank& through = ranks_.at(rank);
  if (through.cell == cell) through.cell.reset();
  if (!cells_.contains(cell)) return false;
  settle(cell);
  return true;
}

std::vector<SweepDispatcher::Loss> SweepDispatcher::expire(TimePoint now) {
  std::vector<Loss> losses;
  for (auto& [number, rank] : ranks_) {
    if (!rank.watched || rank.state != State::Live || now - rank.heard <= patience_) continue;
    rank.state = State::Lost;
    Loss loss{.rank = number, .silence = now - rank.heard, .cell = rank.cell};
    const auto found = rank.cell ? cells_.find(*rank.cell) : cells_.end();
    if (found != cells_.end() && ++found->second.losses >= kMostLosses) {
      loss.given_up = true;
      settle(*rank.cell);
      rank.cell.reset();
    }
    release(rank);
    losses.push_back(loss);
  }
  return losses;
}

std::vector<int> SweepDispatcher::lost() const {
  std::vector<int> lost;
  for (const auto& [number, rank] : ranks_) {
    if (rank.state == State::Lost) lost.push_back(number);
  }
  return lost;
}

void SweepDispatcher::settle(std::uint64_t cell) {
  const auto found = cells_.find(cell);
  if (found->second.waiting) std::erase(waiting_, cell);
  cells_.erase(found);
}

// Back to the front: it is dearer than what waits.
void SweepDispatcher::release(Rank& rank) {
  const auto found = rank.cell ? cells_.find(*rank.cell) : cells_.end();
  rank.cell.reset();
  if (found == cells_.end() || found->second.waiting) return;
  found->second.waiting = true;
  waiting_.push_front(found->first);
}

}  // namespace sdr::cli

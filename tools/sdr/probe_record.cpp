#include "sdr/probe_record.hpp"

#include <algorithm>

namespace sdr::cli {

FlowOutcome& FlowOutcome::operator+=(const FlowOutcome& other) {
  sent += other.sent;
  arrived += other.arrived;
  lost += other.lost;
  host_drops += other.host_drops;
  duplicates += other.duplicates;
  reordered += other.reordered;
  return *this;
}

FlowRecord::FlowRecord(std::uint32_t most, std::uint32_t drop_counter)
    : arrived_(most), dropped_(most), counter_(drop_counter) {}

void FlowRecord::arrived(std::uint32_t sequence) {
  if (sequence >= arrived_.size()) return;  // nothing that was announced
  if (arrived_[sequence]) {
    ++outcome_.duplicates;
    return;
  }
  arrived_[sequence] = true;
  ++outcome_.arrived;
  if (sequence < next_expected_) {
    ++outcome_.reordered;
  } else {
    next_expected_ = sequence + 1;
    window_to_ = std::max(window_to_, next_expected_);
  }
}

void FlowRecord::ended(std::uint32_t sent) {
  ended_ = true;
  window_to_ = std::max(window_to_, std::min(sent, static_cast<std::uint32_t>(arrived_.size())));
}

void FlowRecord::drops_so_far(std::uint32_t counter) {
  const std::uint32_t drops = counter - counter_;  // modulo 2^32, as the kernel counts
  const bool newer = drops != 0 && drops < UINT32_MAX / 2;
  if (newer) {
    counter_ = counter;
    outcome_.host_drops += drops;
    if (windows_.size() < kMostWindows) {
      windows_.push_back({.from = window_from_, .to = window_to_, .drops = drops});
    } else {
      windows_.back().to = window_to_;
      windows_.back().drops += drops;
    }
  }
  window_from_ = window_to_;
}

std::vector<FlowRecord::Gap> FlowRecord::gaps(std::uint32_t from, std::uint32_t to) const {
  std::vector<Gap> found;
  for (std::uint32_t i = from; i < to; ++i) {
    if (!missing(i)) continue;
    if (found.empty() || found.back().from + found.back().length != i) found.push_back({.from = i});
    ++found.back().length;
  }
  return found;
}

// Marks what the window's drops can have been; how many found no packet. Runs that are the host's in part are `mixed`.
std::uint64_t FlowRecord::place(const Window& window, std::uint32_t sent, std::vector<Gap>& mixed) {
  std::uint64_t left = window.drops;
  std::vector<Gap> found = gaps(std::min(window.from, sent), std::min(window.to, sent));
  std::stable_sort(found.begin(), found.end(), [](const Gap& a, const Gap& b) { return a.length > b.length; });
  for (const Gap& gap : found) {
    const auto n = static_cast<std::uint32_t>(std::min<std::uint64_t>(gap.length, left));
    std::fill_n(dropped_.begin() + gap.from, n, true);
    if (n > 0 && n < gap.length) mixed.push_back({.from = gap.from + n, .length = gap.length - n});
    left -= n;
  }
  return left;
}

FlowOutcome FlowRecord::finish(std::uint32_t sent) {
  sent = std::min(sent, static_cast<std::uint32_t>(arrived_.size()));
  std::vector<Window> wanting;
  std::vector<Gap> mixed;
  for (const Window& window : windows_) {
    if (const std::uint64_t left = place(window, sent, mixed); left > 0) {
      wanting.push_back({.from = 0, .to = std::min(window.from, sent), .drops = left});
    }
  }
  for (Window& window : wanting) {
    for (std::uint32_t i = window.to; i > 0 && window.drops > 0; --i) {
      if (!missing(i - 1)) continue;
      dropped_[i - 1] = true;
      --window.drops;
    }
  }
  outcome_.sent = sent;
  outcome_.lost = 0;
  for (std::uint32_t i = 0; i < sent; ++i) outcome_.lost += missing(i) ? 1U : 0U;
  for (const Gap& gap : mixed) {
    for (std::uint32_t i = gap.from; i < gap.from + gap.length; ++i) {
      if (missing(i)) arrived_[i] = dropped_[i] = true;
    }
  }
  return outcome_;
}

FlowRecord::Fate FlowRecord::fate(std::uint32_t sequence) const {
  if (arrived_[sequence]) return dropped_[sequence] ? Fate::LostAmongDrops : Fate::Arrived;
  return dropped_[sequence] ? Fate::HostDropped : Fate::Lost;
}

}  // namespace sdr::cli

// TcpRanges: which numbers beyond the first gap are there, as ranges that do not touch.
//
// Threads: one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>

#include "simulation/tcp_segment.hpp"

namespace sdr::simulation {

class TcpRanges {
 public:
  // Calls fresh(n) for each number of the range that was not there, in order.
  template <typename Fresh>
  void add(TcpRange range, Fresh&& fresh) {
    if (range.begin >= range.end) return;
    auto at = ranges_.upper_bound(range.begin);
    if (at != ranges_.begin() && std::prev(at)->second >= range.begin) --at;
    std::uint64_t n = range.begin;
    TcpRange whole = range;
    while (at != ranges_.end() && at->first <= range.end) {
      for (; n < std::min(at->first, range.end); ++n) fresh(n);
      n = std::max(n, at->second);
      whole = {std::min(whole.begin, at->first), std::max(whole.end, at->second)};
      if (whole.begin == at->first && whole.end == at->second && at->second >= range.end) return;  // nothing new
      at = ranges_.erase(at);
    }
    for (; n < range.end; ++n) fresh(n);
    ranges_[whole.begin] = whole.end;
  }
  void add(std::uint64_t number) {
    add({number, number + 1}, [](std::uint64_t) {});
  }

  // The range that a number is in.
  [[nodiscard]] std::optional<TcpRange> around(std::uint64_t number) const {
    const auto after = ranges_.upper_bound(number);
    if (after == ranges_.begin() || std::prev(after)->second <= number) return std::nullopt;
    return TcpRange{std::prev(after)->first, std::prev(after)->second};
  }
  void drop_below(std::uint64_t number) {
    while (!ranges_.empty() && ranges_.begin()->first < number) {
      const std::uint64_t end = ranges_.begin()->second;
      ranges_.erase(ranges_.begin());
      if (end > number) ranges_[number] = end;
    }
  }
  [[nodiscard]] bool empty() const { return ranges_.empty(); }

 private:
  std::map<std::uint64_t, std::uint64_t> ranges_;  // begin to end
};

}  // namespace sdr::simulation

// Ranges: which bytes of a file, as sorted ranges that neither touch nor overlap.
//
// A value. Used for what a receiver holds of a file, what is missing, and what has to be looked at.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace sdr::cli {

struct Range {
  std::uint64_t offset = 0;
  std::uint64_t length = 0;

  [[nodiscard]] std::uint64_t end() const { return offset + length; }
  friend bool operator==(const Range&, const Range&) = default;
};

class Ranges {
 public:
  Ranges() = default;
  static Ranges whole(std::uint64_t size) {
    Ranges all;
    all.add({0, size});
    return all;
  }

  void add(Range range) {
    if (range.length == 0) return;
    // The first that ends at or after our begin may touch us; all that begin at or before our end join.
    auto first = std::lower_bound(ranges_.begin(), ranges_.end(), range.offset,
                                  [](const Range& r, std::uint64_t at) { return r.end() < at; });
    auto last = first;
    std::uint64_t begin = range.offset;
    std::uint64_t end = range.end();
    for (; last != ranges_.end() && last->offset <= end; ++last) {
      begin = std::min(begin, last->offset);
      end = std::max(end, last->end());
    }
    ranges_.insert(ranges_.erase(first, last), Range{begin, end - begin});
  }

  // What of [0, size) is not in here.
  [[nodiscard]] Ranges complement(std::uint64_t size) const {
    Ranges rest;
    std::uint64_t at = 0;
    for (const Range& r : ranges_) {
      if (r.offset >= size) break;
      rest.add({at, r.offset - at});
      at = std::min(r.end(), size);
    }
    rest.add({at, size - at});
    return rest;
  }

  // Widened outwards to multiples of `unit`, within [0, size).
  [[nodiscard]] Ranges widened(std::uint64_t unit, std::uint64_t size) const {
    Ranges wide;
    for (const Range& r : ranges_) {
      if (r.offset >= size) break;
      const std::uint64_t begin = r.offset / unit * unit;
      const std::uint64_t end = std::min(size, (std::min(r.end(), size) + unit - 1) / unit * unit);
      wide.add({begin, end - begin});
    }
    return wide;
  }

  // Where the first byte from 0 on is that is not in here.
  [[nodiscard]] std::uint64_t prefix() const {
    return ranges_.empty() || ranges_.front().offset != 0 ? 0 : ranges_.front().length;
  }
  [[nodiscard]] std::uint64_t total() const {
    std::uint64_t bytes = 0;
    for (const Range& r : ranges_) bytes += r.length;
    return bytes;
  }
  [[nodiscard]] bool empty() const { return ranges_.empty(); }
  [[nodiscard]] std::size_t size() const { return ranges_.size(); }
  [[nodiscard]] auto begin() const { return ranges_.begin(); }
  [[nodiscard]] auto end() const { return ranges_.end(); }
  friend bool operator==(const Ranges&, const Ranges&) = default;

 private:
  std::vector<Range> ranges_;
};

}  // namespace sdr::cli

// ArrivalTracker: what is new in a chunk bitmap since the last look.
//
// Keeps its own copy of the bitmap, a bit a chunk; poll() compares word by word and reports each chunk once. Words that
// are full and seen are never looked at again at the front (the cumulative point); behind it everything is.
// Sans-I/O, one thread; the bitmap itself is written by others.
#pragma once

#include <atomic>
#include <bit>
#include <cstdint>
#include <vector>

#include "sdr/queue_pair.hpp"

namespace sdr::reliability {

class ArrivalTracker {
 public:
  void begin(std::uint32_t chunks) {
    chunks_ = chunks;
    seen_.assign((chunks + 63) / 64, 0);
    arrived_ = 0;
    cumulative_ = 0;
    highest_ = 0;
  }

  // Calls on_new(chunk) for every chunk that arrived since the last poll; whether there was one.
  template <typename OnNew>
  bool poll(ChunkBitmap bitmap, OnNew&& on_new) {
    const std::uint32_t before = arrived_;
    for (std::size_t w = cumulative_ / 64; w < seen_.size() && w < bitmap.size(); ++w) {
      std::uint64_t fresh = bitmap[w].load(std::memory_order_acquire) & ~seen_[w] & mask(w);
      if (fresh == 0) continue;
      seen_[w] |= fresh;
      arrived_ += static_cast<std::uint32_t>(std::popcount(fresh));
      const auto top = static_cast<std::uint32_t>(w * 64 + 64) - static_cast<std::uint32_t>(std::countl_zero(fresh));
      highest_ = highest_ > top ? highest_ : top;
      for (; fresh != 0; fresh &= fresh - 1)
        on_new(static_cast<std::uint32_t>(w * 64) + static_cast<std::uint32_t>(std::countr_zero(fresh)));
    }
    if (arrived_ == before) return false;
    while (cumulative_ < chunks_ && seen_[cumulative_ / 64] == ~std::uint64_t{0})
      cumulative_ = (cumulative_ / 64 + 1) * 64;
    if (cumulative_ < chunks_)
      cumulative_ = cumulative_ / 64 * 64 + static_cast<std::uint32_t>(std::countr_one(seen_[cumulative_ / 64]));
    if (cumulative_ > chunks_) cumulative_ = chunks_;
    return true;
  }

  [[nodiscard]] bool has(std::uint32_t chunk) const { return (seen_[chunk / 64] >> (chunk % 64) & 1) != 0; }
  [[nodiscard]] bool complete() const { return arrived_ == chunks_; }
  [[nodiscard]] std::uint32_t chunks() const { return chunks_; }
  [[nodiscard]] std::uint32_t arrived() const { return arrived_; }
  // All chunks below are here.
  [[nodiscard]] std::uint32_t cumulative() const { return cumulative_; }
  // One past the highest chunk that is here.
  [[nodiscard]] std::uint32_t highest() const { return highest_; }

  // Calls on_range(first, count) for each run of missing chunks in [from, to).
  template <typename OnRange>
  void each_missing(std::uint32_t from, std::uint32_t to, OnRange&& on_range) const {
    for (std::uint32_t at = next(from, to, false); at < to;) {
      const std::uint32_t end = next(at, to, true);
      on_range(at, end - at);
      at = next(end, to, false);
    }
  }

 private:
  [[nodiscard]] std::uint64_t mask(std::size_t word) const {
    const std::uint64_t left = chunks_ - word * 64;
    return left >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << left) - 1;
  }
  // The first chunk in [from, to) that is (not) here; `to` when there is none.
  [[nodiscard]] std::uint32_t next(std::uint32_t from, std::uint32_t to, bool here) const {
    while (from < to) {
      const std::uint64_t word = (here ? seen_[from / 64] : ~seen_[from / 64]) >> (from % 64);
      if (word != 0) {
        const std::uint32_t found = from + static_cast<std::uint32_t>(std::countr_zero(word));
        return found < to ? found : to;
      }
      from = (from / 64 + 1) * 64;
    }
    return to;
  }

  std::vector<std::uint64_t> seen_;
  std::uint32_t chunks_ = 0;
  std::uint32_t arrived_ = 0;
  std::uint32_t cumulative_ = 0;
  std::uint32_t highest_ = 0;
};

}  // namespace sdr::reliability

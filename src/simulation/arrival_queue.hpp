// ArrivalQueue: what is under way on a link, in the order in which it arrives.
//
// Nearly everything arrives in the order in which it left: that part is a ring, appended at one end and taken from the
// other, a few nanoseconds an item. Only what overtakes or falls behind goes through a heap. Equal times: the ring
// before the heap, each in the order of the pushes, so that a run repeats exactly.
//
// Memory grows to the most that was ever under way at once and then stays: no allocation in the steady state.
// Threads: one at a time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "sdr/units.hpp"

namespace sdr::simulation {

template <typename Item>
class ArrivalQueue {
  static_assert(std::is_trivially_copyable_v<Item>);

 public:
  // The next of the in-order stream. One that is earlier than its predecessor is taken as late.
  void push(TimePoint at, const Item& item) {
    if (head_ != tail_ && at < ring_[(tail_ - 1) & mask_].at) {
      push_late(at, item);
      return;
    }
    if (tail_ - head_ == ring_.size()) grow();
    ring_[tail_++ & mask_] = {at, item};
  }

  // Off the stream: does not hold up those that follow.
  void push_late(TimePoint at, const Item& item) {
    heap_.push_back({at, late_++, item});
    std::push_heap(heap_.begin(), heap_.end(), after);
  }

  // The first item due by `now`, or null; take it away with pop() before any other call.
  [[nodiscard]] const Item* due(TimePoint now) {
    const bool waiting = head_ != tail_;
    from_heap_ = !heap_.empty() && (!waiting || heap_.front().at < ring_[head_ & mask_].at);
    if (from_heap_) return heap_.front().at <= now ? &heap_.front().item : nullptr;
    return waiting && ring_[head_ & mask_].at <= now ? &ring_[head_ & mask_].item : nullptr;
  }

  void pop() {
    if (!from_heap_) {
      head_++;
      return;
    }
    std::pop_heap(heap_.begin(), heap_.end(), after);
    heap_.pop_back();
  }

  [[nodiscard]] TimePoint next() const {
    TimePoint at = head_ == tail_ ? kNever : ring_[head_ & mask_].at;
    if (!heap_.empty()) at = std::min(at, heap_.front().at);
    return at;
  }

  [[nodiscard]] bool empty() const { return head_ == tail_ && heap_.empty(); }
  [[nodiscard]] std::size_t size() const { return static_cast<std::size_t>(tail_ - head_) + heap_.size(); }

 private:
  struct InOrder {
    TimePoint at;
    Item item;
  };
  struct Late {
    TimePoint at;
    std::uint64_t number;
    Item item;
  };

  static bool after(const Late& a, const Late& b) { return a.at != b.at ? a.at > b.at : a.number > b.number; }

  void grow() {
    std::vector<InOrder> larger(ring_.empty() ? 64 : ring_.size() * 2);
    const std::uint64_t count = tail_ - head_;
    for (std::uint64_t i = 0; i < count; ++i) larger[i] = ring_[(head_ + i) & mask_];
    ring_ = std::move(larger);
    mask_ = ring_.size() - 1;
    head_ = 0;
    tail_ = count;
  }

  std::vector<InOrder> ring_;  // a power of two long
  std::uint64_t mask_ = 0;
  std::uint64_t head_ = 0;
  std::uint64_t tail_ = 0;
  std::vector<Late> heap_;
  std::uint64_t late_ = 0;
  bool from_heap_ = false;
};

}  // namespace sdr::simulation

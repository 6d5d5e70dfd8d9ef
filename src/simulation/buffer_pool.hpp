// BufferPool: equal buffers for the copies that a link owns while packets are under way.
//
// take() hands out the buffer that came back last (it is likely still in the cache); when none is left, memory for 64
// more is allocated, and kept. So the memory is bounded by the most that was ever under way at once, and the steady
// state does not allocate. Threads: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace sdr::simulation {

class BufferPool {
 public:
  using Handle = std::uint32_t;
  static constexpr Handle kNone = ~Handle{0};

  explicit BufferPool(std::size_t buffer_bytes) : buffer_bytes_(buffer_bytes) {}

  [[nodiscard]] Handle take() {
    if (free_.empty()) grow();
    const Handle handle = free_.back();
    free_.pop_back();
    return handle;
  }
  void give_back(Handle handle) {
    if (handle != kNone) free_.push_back(handle);
  }
  [[nodiscard]] std::byte* data(Handle handle) {
    return slabs_[handle / kSlab].get() + (handle % kSlab) * buffer_bytes_;
  }

  [[nodiscard]] std::size_t bytes_in_use() const { return (slabs_.size() * kSlab - free_.size()) * buffer_bytes_; }

 private:
  static constexpr Handle kSlab = 64;

  void grow() {
    const auto first = static_cast<Handle>(slabs_.size() * kSlab);
    slabs_.push_back(std::make_unique_for_overwrite<std::byte[]>(kSlab * buffer_bytes_));
    // Room for every buffer, so that give_back() never allocates.
    if (free_.capacity() < slabs_.size() * kSlab) free_.reserve(slabs_.size() * kSlab * 2);
    for (Handle i = kSlab; i > 0; --i) free_.push_back(first + i - 1);
  }

  std::size_t buffer_bytes_;
  std::vector<std::unique_ptr<std::byte[]>> slabs_;
  std::vector<Handle> free_;
};

}  // namespace sdr::simulation

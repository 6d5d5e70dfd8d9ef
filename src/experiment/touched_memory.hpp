// TouchedMemory: memory that is mapped, and touched, before it is used, so that no page fault falls into a measurement;
// in huge pages where the system has them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "sdr/result.hpp"

namespace sdr::experiment {

class TouchedMemory {
 public:
  // At least `bytes`, all 0. System when there is not so much.
  static Result<TouchedMemory> allocate(std::uint64_t bytes);
  TouchedMemory(TouchedMemory&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}
  TouchedMemory& operator=(TouchedMemory&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~TouchedMemory();

  [[nodiscard]] std::span<std::byte> bytes() const { return bytes_; }

 private:
  explicit TouchedMemory(std::span<std::byte> bytes) : bytes_(bytes) {}
  std::span<std::byte> bytes_;
};

}  // namespace sdr::experiment

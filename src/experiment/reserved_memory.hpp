// ReservedMemory: addresses without memory behind them, for buffers that are named and never touched.
//
// A simulation that counts payload and does not move it needs a place of the Write's size and no byte of it. Whoever
// reads or writes there all the same is stopped by the hardware: that is the proof that nobody does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "sdr/result.hpp"

namespace sdr::experiment {

class ReservedMemory {
 public:
  // System when there are not so many addresses.
  static Result<ReservedMemory> reserve(std::uint64_t bytes);
  ReservedMemory(ReservedMemory&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}
  ReservedMemory& operator=(ReservedMemory&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~ReservedMemory();

  [[nodiscard]] std::span<std::byte> bytes() const { return bytes_; }

 private:
  explicit ReservedMemory(std::span<std::byte> bytes) : bytes_(bytes) {}
  std::span<std::byte> bytes_;
};

}  // namespace sdr::experiment

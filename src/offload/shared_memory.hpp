// SharedMemory: zeroed memory of this process that another can map by descriptor.
//
// Not thread safe; the bytes are shared as their user arranges. Movable; unmapped and closed at the end.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <utility>

#include "sdr/result.hpp"

namespace sdr::offload {

class SharedMemory {
 public:
  static Result<SharedMemory> create(const std::string& name, std::size_t bytes);
  SharedMemory(SharedMemory&& other) noexcept
      : bytes_(std::exchange(other.bytes_, {})), descriptor_(std::exchange(other.descriptor_, -1)) {}
  SharedMemory& operator=(SharedMemory&&) = delete;
  ~SharedMemory();

  [[nodiscard]] std::span<std::byte> bytes() const { return bytes_; }
  [[nodiscard]] int descriptor() const { return descriptor_; }

 private:
  SharedMemory(std::span<std::byte> bytes, int descriptor) : bytes_(bytes), descriptor_(descriptor) {}
  std::span<std::byte> bytes_;
  int descriptor_;
};

}  // namespace sdr::offload

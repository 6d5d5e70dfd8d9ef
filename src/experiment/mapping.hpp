// Mapping: a range of addresses that the system was asked for, given back at the end. TouchedMemory and ReservedMemory
// say what stands behind it.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <span>
#include <utility>

namespace sdr::experiment {

class Mapping {
 public:
  Mapping(Mapping&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}
  Mapping& operator=(Mapping&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~Mapping() {
    if (!bytes_.empty()) ::munmap(bytes_.data(), bytes_.size());
  }

  [[nodiscard]] std::span<std::byte> bytes() const { return bytes_; }

 protected:
  explicit Mapping(std::span<std::byte> bytes) : bytes_(bytes) {}

 private:
  std::span<std::byte> bytes_;
};

}  // namespace sdr::experiment

// RegisteredMemory: memory that a device may read and write by itself, for as long as this object lives.
//
// An RDMA device sends from and receives into registered memory without a copy. Memory that is not registered works as
// well: what is sent from it is copied once, and a receive into it is registered for as long as it is posted. A device
// that moves bytes with the CPU (udp) needs no registration and does nothing here.
//
// Ownership: the memory must stay where it is, and whole, until this object is gone; this object must stay until
// nothing is sent from the memory and no receive is posted in it. It keeps its device alive. Threads: any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "sdr/device.hpp"
#include "sdr/result.hpp"

namespace sdr {

class RegisteredMemory {
 public:
  // Errors: System with the device's reason, such as the limit of locked memory.
  static Result<RegisteredMemory> make(DevicePtr device, std::span<std::byte> memory);
  RegisteredMemory(RegisteredMemory&& other) noexcept;
  RegisteredMemory& operator=(RegisteredMemory&& other) noexcept;
  ~RegisteredMemory();

  [[nodiscard]] std::span<std::byte> bytes() const { return memory_; }

 private:
  RegisteredMemory(DevicePtr device, std::span<std::byte> memory, std::uint32_t key)
      : device_(std::move(device)), memory_(memory), key_(key) {}

  DevicePtr device_;  // null once moved from
  std::span<std::byte> memory_;
  std::uint32_t key_ = 0;
};

}  // namespace sdr

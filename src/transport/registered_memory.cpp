// Implements sdr/registered_memory.hpp.
#include "sdr/registered_memory.hpp"

#include <utility>

#include "transport/transport.hpp"

namespace sdr {

Result<RegisteredMemory> RegisteredMemory::make(DevicePtr device, std::span<std::byte> memory) {
  const Result<transport::MemoryKey> key = device->register_memory(memory);
  if (!key) return key.error();
  return RegisteredMemory(std::move(device), memory, key->value);
}

RegisteredMemory::RegisteredMemory(RegisteredMemory&& other) noexcept
    : device_(std::exchange(other.device_, nullptr)), memory_(other.memory_), key_(other.key_) {}

RegisteredMemory& RegisteredMemory::operator=(RegisteredMemory&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(memory_, other.memory_);
  std::swap(key_, other.key_);
  return *this;
}

RegisteredMemory::~RegisteredMemory() {
  if (device_ != nullptr) device_->deregister_memory(transport::MemoryKey(key_));
}

}  // namespace sdr

// VerbsMemory: the memory that was registered with a device, and where a pointer lies in it.
//
// Regions are registered with an iova of their page offset: addresses on the wire stay small (verbs_wire.hpp), and
// agree with the memory's pages in the low bits as NICs want them. An lkey goes with iova + distance from the region's
// start.
//
// Threads: any. A View holds a shared lock for as long as a batch takes; registration takes it alone.
// Lifetime: a region is deregistered by its owner once nothing is sent from it and no receive is posted in it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <shared_mutex>
#include <span>
#include <vector>

#include "transport/transport.hpp"
#include "transport/verbs_objects.hpp"
#include "transport/verbs_port.hpp"

namespace sdr::transport {

struct VerbsRegion {
  std::span<std::byte> bytes;
  std::uint64_t iova = 0;
  verbs::MemoryRegion region;

  // Registers `bytes`; System error with the reason of the device.
  static Result<VerbsRegion> make(const VerbsPort& port, std::span<std::byte> bytes, unsigned access);
  [[nodiscard]] bool holds(const std::byte* at, std::size_t length) const {
    return at >= bytes.data() && length <= bytes.size() &&
           static_cast<std::size_t>(at - bytes.data()) <= bytes.size() - length;
  }
  [[nodiscard]] std::uint64_t address_of(const std::byte* at) const {
    return iova + static_cast<std::uint64_t>(at - bytes.data());
  }
};

class VerbsMemory {
 public:
  explicit VerbsMemory(std::shared_ptr<VerbsPort> port) : port_(std::move(port)) {}

  Result<MemoryKey> add(std::span<std::byte> bytes);
  void remove(MemoryKey key);

  class View {
   public:
    explicit View(const VerbsMemory& memory) : memory_(memory), lock_(memory.mutex_) {}
    // The region that holds all of it; null when none does.
    [[nodiscard]] const VerbsRegion* find(const std::byte* at, std::size_t length);

   private:
    const VerbsMemory& memory_;
    std::shared_lock<std::shared_mutex> lock_;
    const VerbsRegion* last_ = nullptr;
  };

 private:
  struct Entry {
    MemoryKey key;
    VerbsRegion region;
  };

  std::shared_ptr<VerbsPort> port_;
  mutable std::shared_mutex mutex_;
  std::vector<std::unique_ptr<Entry>> entries_;  // guarded by mutex_
  std::uint32_t last_key_ = 0;                   // guarded by mutex_
};

}  // namespace sdr::transport

// MemoryRegions: the registered memory of one context, by its lkey.
//
// An lkey is never given out twice, so that one of a region that is gone names nothing. Transports that need keys of
// their own get the region registered with the device here.
//
// Threads: any; look-ups share a lock, which only registration takes alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <shared_mutex>
#include <span>
#include <utility>

#include "sdr/device.hpp"
#include "sdr/result.hpp"
#include "transport/transport.hpp"

namespace sdr::capi {

class MemoryRegions {
 public:
  explicit MemoryRegions(DevicePtr device) : device_(std::move(device)) {}

  // The lkey, 1 or more. InvalidArgument for no memory; otherwise what the device says.
  Result<std::uint32_t> add(std::span<std::byte> region);
  void remove(std::uint32_t lkey);
  // The bytes [address, address + length). InvalidArgument when they do not lie inside the region of `lkey`. No bytes
  // lie everywhere.
  [[nodiscard]] Result<std::span<std::byte>> locate(std::uint32_t lkey, std::uint64_t address,
                                                    std::uint32_t length) const;
  [[nodiscard]] std::size_t count() const;

 private:
  struct Region {
    std::span<std::byte> bytes;
    transport::MemoryKey device_key;
  };
  DevicePtr device_;
  mutable std::shared_mutex mutex_;
  std::map<std::uint32_t, Region> regions_;  // guarded by mutex_
  std::uint32_t last_lkey_ = 0;              // guarded by mutex_
};

}  // namespace sdr::capi

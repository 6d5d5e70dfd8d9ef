#include "capi/memory_regions.hpp"

#include <fmt/format.h>

#include <mutex>

namespace sdr::capi {

Result<std::uint32_t> MemoryRegions::add(std::span<std::byte> region) {
  if (region.data() == nullptr || region.empty())
    return Error{ErrorCode::InvalidArgument, fmt::format("a memory region of {} bytes at {} holds nothing",
                                                         region.size(), static_cast<const void*>(region.data()))};
  if (const auto begin = reinterpret_cast<std::uintptr_t>(region.data()); region.size() > UINTPTR_MAX - begin)
    return Error{ErrorCode::InvalidArgument, fmt::format("a memory region of {} bytes at {:#x} reaches past the last "
                                                         "address",
                                                         region.size(), begin)};
  const std::unique_lock lock(mutex_);
  if (last_lkey_ == UINT32_MAX)
    return Error{ErrorCode::InvalidArgument, "all 2^32 - 1 lkeys of this context are used up"};
  const Result<transport::MemoryKey> device_key = device_->register_memory(region);
  if (!device_key) return device_key.error();
  regions_.emplace(++last_lkey_, Region{region, *device_key});
  return last_lkey_;
}

void MemoryRegions::remove(std::uint32_t lkey) {
  const std::unique_lock lock(mutex_);
  const auto at = regions_.find(lkey);
  if (at == regions_.end()) return;
  device_->deregister_memory(at->second.device_key);
  regions_.erase(at);
}

Result<std::span<std::byte>> MemoryRegions::locate(std::uint32_t lkey, std::uint64_t address,
                                                   std::uint32_t length) const {
  if (length == 0) return std::span<std::byte>();
  const std::shared_lock lock(mutex_);
  const auto at = regions_.find(lkey);
  if (at == regions_.end())
    return Error{ErrorCode::InvalidArgument, fmt::format("lkey {} names no memory region of this context", lkey)};
  const std::span<std::byte> region = at->second.bytes;
  const auto begin = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(region.data()));
  // In this order nothing can overflow.
  if (address < begin || length > region.size() || address - begin > region.size() - length)
    return Error{ErrorCode::InvalidArgument,
                 fmt::format("{} bytes at {:#x} do not lie inside the region of lkey {}, {} bytes at {:#x}", length,
                             address, lkey, region.size(), begin)};
  return region.subspan(address - begin, length);
}

std::size_t MemoryRegions::count() const {
  const std::shared_lock lock(mutex_);
  return regions_.size();
}

}  // namespace sdr::capi

#include "transport/verbs_memory.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <mutex>

#include "transport/verbs_wire.hpp"

namespace sdr::transport {
namespace {

constexpr std::uintptr_t kPage = 4096;

}  // namespace

Result<VerbsRegion> VerbsRegion::make(const VerbsPort& port, std::span<std::byte> bytes, unsigned access) {
  if (bytes.size() > verbs_wire::kMostAddressed - kPage) {
    return Error{ErrorCode::InvalidArgument, fmt::format("{} bytes of memory are more than one region may have, {}",
                                                         bytes.size(), verbs_wire::kMostAddressed - kPage)};
  }
  VerbsRegion made{.bytes = bytes, .iova = reinterpret_cast<std::uintptr_t>(bytes.data()) % kPage, .region = {}};
  made.region.reset(ibv_reg_mr_iova(port.domain(), bytes.data(), bytes.size(), made.iova, access));
  if (made.region) return made;
  return verbs::verbs_error(
      fmt::format("{} bytes of memory cannot be registered with RDMA device {}", bytes.size(), port.name()), errno);
}

Result<MemoryKey> VerbsMemory::add(std::span<std::byte> bytes) {
  unsigned access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
  if ((port_->attributes().device_cap_flags & IBV_DEVICE_MEM_WINDOW) != 0) access |= IBV_ACCESS_MW_BIND;
  auto region = VerbsRegion::make(*port_, bytes, access);
  if (!region) return region.error();
  const std::unique_lock lock(mutex_);
  entries_.push_back(std::make_unique<Entry>(Entry{MemoryKey(++last_key_), std::move(region).value()}));
  return MemoryKey(last_key_);
}

void VerbsMemory::remove(MemoryKey key) {
  const std::unique_lock lock(mutex_);
  std::erase_if(entries_, [&](const auto& entry) { return entry->key == key; });
}

const VerbsRegion* VerbsMemory::View::find(const std::byte* at, std::size_t length) {
  if (last_ != nullptr && last_->holds(at, length)) return last_;
  for (const auto& entry : memory_.entries_) {
    if (entry->region.holds(at, length)) return last_ = &entry->region;
  }
  return nullptr;
}

}  // namespace sdr::transport

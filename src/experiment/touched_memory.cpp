#include "experiment/touched_memory.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <span>

#include "sdr/units.hpp"

namespace sdr::experiment {
namespace {

constexpr std::uint64_t kHugePage = 2ULL << 20;

}  // namespace

Result<TouchedMemory> TouchedMemory::allocate(std::uint64_t bytes) {
  const std::uint64_t rounded = (std::max<std::uint64_t>(bytes, 1) + kHugePage - 1) / kHugePage * kHugePage;
  void* at = ::mmap(nullptr, rounded, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) {
    return Error{ErrorCode::System,
                 fmt::format("cannot have {} of memory: {}", to_string(Bytes{bytes}), std::strerror(errno))};
  }
  ::madvise(at, rounded, MADV_HUGEPAGE);
  std::memset(at, 0, rounded);
  return TouchedMemory(std::span(static_cast<std::byte*>(at), rounded));
}

Result<void> fits_in_memory(std::uint64_t buffers, Bytes each) {
  const auto half =
      static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)) / 2;
  if (each.count <= half / buffers) return {};
  return Error{ErrorCode::InvalidArgument,
               fmt::format("{} x {} of buffers are more than {}, half of this machine's memory", buffers,
                           to_string(each), to_string(Bytes{half}))};
}

}  // namespace sdr::experiment

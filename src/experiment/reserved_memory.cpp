#include "experiment/reserved_memory.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <span>

#include "sdr/units.hpp"

namespace sdr::experiment {

Result<ReservedMemory> ReservedMemory::reserve(std::uint64_t bytes) {
  const std::uint64_t length = std::max<std::uint64_t>(bytes, 1);
  void* at = ::mmap(nullptr, length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) {
    return Error{ErrorCode::System,
                 fmt::format("cannot reserve addresses for {}: {}", to_string(Bytes{bytes}), std::strerror(errno))};
  }
  return ReservedMemory(std::span(static_cast<std::byte*>(at), length));
}

}  // namespace sdr::experiment

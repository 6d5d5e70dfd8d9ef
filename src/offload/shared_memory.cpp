#include "offload/shared_memory.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace sdr::offload {

Result<SharedMemory> SharedMemory::create(const std::string& name, std::size_t bytes) {
  const auto refused = [&](const char* call, int error) {
    return Error{ErrorCode::System,
                 fmt::format("no shared memory of {} bytes for {}: {}: {}", bytes, name, call, std::strerror(error))};
  };
  const int descriptor = ::memfd_create(name.c_str(), MFD_CLOEXEC);
  if (descriptor < 0) return refused("memfd_create", errno);
  void* at = MAP_FAILED;
  const char* call = "ftruncate";
  if (::ftruncate(descriptor, static_cast<off_t>(bytes)) == 0) {
    call = "mmap";
    at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  }
  if (at == MAP_FAILED) {
    const int error = errno;
    ::close(descriptor);
    return refused(call, error);
  }
  return SharedMemory({static_cast<std::byte*>(at), bytes}, descriptor);
}

SharedMemory::~SharedMemory() {
  if (!bytes_.empty()) ::munmap(bytes_.data(), bytes_.size());
  if (descriptor_ >= 0) ::close(descriptor_);
}

}  // namespace sdr::offload

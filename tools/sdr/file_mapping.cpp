#include "sdr/file_mapping.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <mutex>
#include <utility>

#include "sdr/file_name.hpp"
#include "sdr/report.hpp"

namespace sdr::cli {

namespace {

struct Guard {
  std::atomic<std::uintptr_t> begin{0};  // 0: free
  std::atomic<std::uintptr_t> end{0};
  std::atomic<bool> damaged{false};
};

std::array<Guard, FileMapping::kMost> guards;

// Replaces the page at fault by zeros. mmap() is a bare system call here, and the handler runs on the thread that made
// the access, so nothing else is interrupted half-way.
void on_bus_error(int number, siginfo_t* info, void* /*context*/) {
  const auto address = reinterpret_cast<std::uintptr_t>(info->si_addr);
  for (Guard& guard : guards) {
    const std::uintptr_t begin = guard.begin.load(std::memory_order_acquire);
    if (begin == 0 || address < begin || address >= guard.end.load(std::memory_order_acquire)) continue;
    guard.damaged.store(true, std::memory_order_release);
    const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
    void* const start = static_cast<std::byte*>(info->si_addr) - address % page;
    if (mmap(start, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED) return;
    break;
  }
  signal(number, SIG_DFL);  // the access is tried again and ends the program, as without us
}

void install_handler() {
  static std::once_flag once;
  std::call_once(once, [] {
    struct sigaction action {};
    action.sa_sigaction = on_bus_error;
    action.sa_flags = SA_SIGINFO;
    sigemptyset(&action.sa_mask);
    sigaction(SIGBUS, &action, nullptr);
  });
}

std::size_t take_guard(std::span<std::byte> bytes) {
  const auto begin = reinterpret_cast<std::uintptr_t>(bytes.data());
  for (std::size_t i = 0; i < guards.size(); ++i) {
    if (guards[i].begin.load(std::memory_order_relaxed) != 0) continue;
    guards[i].damaged.store(false, std::memory_order_relaxed);
    guards[i].end.store(begin + bytes.size(), std::memory_order_relaxed);
    guards[i].begin.store(begin, std::memory_order_release);
    return i;
  }
  return guards.size();
}

}  // namespace

Result<FileMapping> FileMapping::map(int fd, std::uint64_t size, Access access, const std::string& name) {
  FileMapping mapping;
  if (size == 0) return mapping;
  install_handler();
  const int protection = access == Access::Read ? PROT_READ : PROT_READ | PROT_WRITE;
  void* const memory = mmap(nullptr, size, protection, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) {
    return Error{ErrorCode::System,
                 fmt::format("{} ({} bytes) cannot be mapped: {}", printable(name), size, std::strerror(errno))};
  }
  mapping.bytes_ = {static_cast<std::byte*>(memory), size};
  mapping.guard_ = take_guard(mapping.bytes_);
  if (mapping.guard_ == kMost) {
    return Error{ErrorCode::System, fmt::format("{} cannot be mapped: {} files are already", printable(name), kMost)};
  }
  return mapping;
}

bool FileMapping::damaged() const {
  return guard_ != kMost && guards[guard_].damaged.load(std::memory_order_acquire);
}

void FileMapping::swap(FileMapping& other) noexcept {
  std::swap(bytes_, other.bytes_);
  std::swap(guard_, other.guard_);
}

void FileMapping::unmap() {
  if (guard_ != kMost) guards[guard_].begin.store(0, std::memory_order_release);
  if (!bytes_.empty()) munmap(bytes_.data(), bytes_.size());
  guard_ = kMost;
  bytes_ = {};
}

}  // namespace sdr::cli

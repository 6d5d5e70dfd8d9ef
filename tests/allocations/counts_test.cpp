// The replaced functions (counts.hpp), and the proof that they count.
#include "tests/allocations/counts.hpp"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <time.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <new>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SDR_UNDER_SANITIZER 1
#else
#define SDR_UNDER_SANITIZER 0
#endif

namespace {

std::atomic<std::uint64_t> allocations{0};
std::atomic<std::uint64_t> locks{0};
std::atomic<std::uint64_t> clock_reads{0};

void* counted(std::size_t size) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  void* at = std::malloc(size == 0 ? 1 : size);
  if (at == nullptr) throw std::bad_alloc();
  return at;
}

void* counted(std::size_t size, std::align_val_t alignment) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  const auto align = static_cast<std::size_t>(alignment);
  void* at = std::aligned_alloc(align, (size + align - 1) / align * align);
  if (at == nullptr) throw std::bad_alloc();
  return at;
}

}  // namespace

void* operator new(std::size_t size) {
  return counted(size);
}
void* operator new[](std::size_t size) {
  return counted(size);
}
void* operator new(std::size_t size, std::align_val_t alignment) {
  return counted(size, alignment);
}
void* operator new[](std::size_t size, std::align_val_t alignment) {
  return counted(size, alignment);
}
void operator delete(void* at) noexcept {
  std::free(at);
}
void operator delete[](void* at) noexcept {
  std::free(at);
}
void operator delete(void* at, std::size_t /*size*/) noexcept {
  std::free(at);
}
void operator delete[](void* at, std::size_t /*size*/) noexcept {
  std::free(at);
}
void operator delete(void* at, std::align_val_t /*alignment*/) noexcept {
  std::free(at);
}
void operator delete[](void* at, std::align_val_t /*alignment*/) noexcept {
  std::free(at);
}
void operator delete(void* at, std::size_t /*size*/, std::align_val_t /*alignment*/) noexcept {
  std::free(at);
}
void operator delete[](void* at, std::size_t /*size*/, std::align_val_t /*alignment*/) noexcept {
  std::free(at);
}

#if !SDR_UNDER_SANITIZER
namespace {

template <typename Function>
Function next_after_ours(const char* name) {
  return reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" int pthread_mutex_lock(pthread_mutex_t* mutex) noexcept {
  static const auto original = next_after_ours<int (*)(pthread_mutex_t*)>("pthread_mutex_lock");
  locks.fetch_add(1, std::memory_order_relaxed);
  return original(mutex);
}

extern "C" int clock_gettime(clockid_t clock, timespec* time) noexcept {
  static const auto original = next_after_ours<int (*)(clockid_t, timespec*)>("clock_gettime");
  clock_reads.fetch_add(1, std::memory_order_relaxed);
  return original(clock, time);
}
#endif

namespace sdr::testing_support {

Counts counts_so_far() {
  return {allocations.load(), locks.load(), clock_reads.load()};
}

bool counts_calls() {
  return SDR_UNDER_SANITIZER == 0;
}

namespace {

TEST(Counts, SeeAllocationsLocksAndClockReads) {
  const Counts before = counts_so_far();
  const auto kept = std::make_unique<int>(7);
  std::mutex mutex;
  { const std::lock_guard lock(mutex); }
  const auto now = std::chrono::steady_clock::now();
  const Counts seen = counts_so_far() - before;
  EXPECT_EQ(*kept, 7);
  EXPECT_GT(now.time_since_epoch().count(), 0);
  EXPECT_GE(seen.allocations, 1U);
  if (!counts_calls()) return;
  EXPECT_GE(seen.locks, 1U);
  EXPECT_GE(seen.clock_reads, 1U);
}

}  // namespace
}  // namespace sdr::testing_support

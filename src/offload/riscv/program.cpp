// The device program for RV64: DeviceWorker on threads of a process that has nothing but two mapped windows.
//
// Model: started as PROGRAM DEVICE-FD DEVICE-BYTES HOST-FD HOST-BYTES PARENT. It maps the windows at fixed addresses,
// starts a thread for each worker but the first on a stack in device memory, and becomes worker 0. There is no library
// underneath: system calls are made here, and so are the few functions that the compiler calls by itself.
//
// Threads of one process rather than a process each: they are the threads of one device process, killed as one and
// translated once by the emulator.
#include <cstddef>
#include <cstdint>

#include "offload/device_worker.hpp"

// What the compiler calls where the instruction set has no instruction (no Zbb), or for large objects.
extern "C" {
void* memset(void* to, int value, std::size_t n) {
  auto* at = static_cast<unsigned char*>(to);
  for (; n != 0; --n) {
    *at++ = static_cast<unsigned char>(value);
    asm volatile("" ::: "memory");  // or it becomes a call of itself
  }
  return to;
}
void* memcpy(void* to, const void* from, std::size_t n) {
  auto* at = static_cast<unsigned char*>(to);
  const auto* source = static_cast<const unsigned char*>(from);
  for (; n != 0; --n) {
    *at++ = *source++;
    asm volatile("" ::: "memory");
  }
  return to;
}
int __popcountdi2(long word) {
  if (word == 0) return 0;
  auto v = static_cast<unsigned long>(word);
  if ((v & (v - 1)) == 0) return 1;
  v -= v >> 1 & 0x5555555555555555;
  v = (v & 0x3333333333333333) + (v >> 2 & 0x3333333333333333);
  v = (v + (v >> 4)) & 0x0F0F0F0F0F0F0F0F;
  return static_cast<int>(v * 0x0101010101010101 >> 56);
}
// The lowest bit alone, multiplied into a sequence in which every six bits occur once (de Bruijn).
int __ctzdi2(long word) {
  static constexpr unsigned char kPlace[64] = {0,  1,  2,  53, 3,  7,  54, 27, 4,  38, 41, 8,  34, 55, 48, 28,
                                               62, 5,  39, 46, 44, 42, 22, 9,  24, 35, 59, 56, 49, 18, 29, 11,
                                               63, 52, 6,  26, 37, 40, 33, 47, 61, 45, 43, 21, 23, 58, 17, 10,
                                               51, 25, 36, 32, 60, 20, 57, 16, 50, 31, 19, 15, 30, 14, 13, 12};
  const auto v = static_cast<unsigned long>(word);
  return kPlace[(v & (~v + 1)) * 0x022FDD63CC95386D >> 58];
}
}

namespace {

using namespace sdr::offload;

long system_call(long number, long a0 = 0, long a1 = 0, long a2 = 0, long a3 = 0, long a4 = 0, long a5 = 0) {
  register long r0 asm("a0") = a0;
  register long r1 asm("a1") = a1;
  register long r2 asm("a2") = a2;
  register long r3 asm("a3") = a3;
  register long r4 asm("a4") = a4;
  register long r5 asm("a5") = a5;
  register long r7 asm("a7") = number;
  asm volatile("ecall" : "+r"(r0) : "r"(r1), "r"(r2), "r"(r3), "r"(r4), "r"(r5), "r"(r7) : "memory");
  return r0;
}

constexpr long kExit = 93;
constexpr long kExitGroup = 94;
constexpr long kNanosleep = 101;
constexpr long kSchedYield = 124;
constexpr long kGetParent = 173;
constexpr long kClone = 220;
constexpr long kMap = 222;

// Where the windows are mapped; the counting plugin of the emulator tells them apart by these (bits 36 and up).
constexpr std::uintptr_t kDeviceAddress = 0x10'0000'0000;
constexpr std::uintptr_t kHostAddress = 0x20'0000'0000;

constexpr std::uint32_t kPatience = 500;  // rounds without work before a worker sleeps

long g_parent = 0;

[[noreturn]] void end_process(long code) {
  for (;;) system_call(kExitGroup, code);
}

struct RiscvPlatform {
  using Orders = sdr::offload::Orders;
  // An idle device gives the core to whoever has something to do, and ends when its host is gone.
  void relax(std::uint32_t times) {
    if (times < kPatience) {
      system_call(kSchedYield);
    } else {
      const long pause[2] = {0, 20'000};  // seconds, nanoseconds
      system_call(kNanosleep, reinterpret_cast<long>(pause));
    }
    if (++idle % 64 == 0 && system_call(kGetParent) != g_parent) end_process(3);
  }
  // Hints that the instruction set leaves to custom use, and no more than that elsewhere.
  static void begin_batch() { asm volatile("slti x0, x0, 1" ::: "memory"); }
  static void keep_batch() { asm volatile("slti x0, x0, 2" ::: "memory"); }
  static void drop_batch() { asm volatile("slti x0, x0, 3" ::: "memory"); }
  std::uint32_t idle = 0;
};

void work(const Windows& windows, std::uint32_t index) {
  DeviceWorker<RiscvPlatform> worker(windows, index, {});
  worker.run();
}

std::byte* map_window(std::uintptr_t at, std::size_t bytes, long descriptor) {
  constexpr long kReadWrite = 3;
  constexpr long kSharedFixed = 0x01 | 0x10;
  const long mapped =
      system_call(kMap, static_cast<long>(at), static_cast<long>(bytes), kReadWrite, kSharedFixed, descriptor, 0);
  if (mapped != static_cast<long>(at)) end_process(2);
  return reinterpret_cast<std::byte*>(at);
}

// A thread that starts with `windows` in hand. The child leaves the system call on its own, empty stack, so it may
// touch nothing of this frame: it takes what it needs from there.
void start_thread(const Windows& windows, std::uint32_t index) {
  constexpr long kFlags = 0x100 | 0x200 | 0x400 | 0x800 | 0x10000 | 0x40000;  // VM FS FILES SIGHAND THREAD SYSVSEM
  auto* top = reinterpret_cast<std::uintptr_t*>(windows.stack_top(index)) - 4;
  top[0] = reinterpret_cast<std::uintptr_t>(&windows);
  top[1] = index;
  top[2] = reinterpret_cast<std::uintptr_t>(&work);
  register long r0 asm("a0") = kFlags;
  register std::uintptr_t r1 asm("a1") = reinterpret_cast<std::uintptr_t>(top);
  register long r2 asm("a2") = 0;
  register long r3 asm("a3") = 0;
  register long r4 asm("a4") = 0;
  register long r7 asm("a7") = kClone;
  asm volatile(
      "ecall\n"
      "bnez a0, 1f\n"
      "ld a0, 0(sp)\n"
      "ld a1, 8(sp)\n"
      "ld a5, 16(sp)\n"
      "jalr a5\n"
      "li a7, 93\n"
      "li a0, 0\n"
      "ecall\n"
      "1:\n"
      : "+r"(r0)
      : "r"(r1), "r"(r2), "r"(r3), "r"(r4), "r"(r7)
      : "memory", "a5");
  if (r0 < 0) end_process(4);
}

std::uint64_t number(const char* text) {
  std::uint64_t value = 0;
  for (; *text >= '0' && *text <= '9'; ++text) value = value * 10 + static_cast<std::uint64_t>(*text - '0');
  return value;
}

}  // namespace

// `stack` is what the process starts with: the count of arguments, then the arguments.
extern "C" [[noreturn]] void start_device(const std::uint64_t* stack) {
  if (stack[0] != 6) end_process(1);
  const auto argument = [stack](int index) {
    return number(reinterpret_cast<const char*>(static_cast<std::uintptr_t>(stack[1 + index])));
  };
  g_parent = static_cast<long>(argument(5));
  std::byte* device = map_window(kDeviceAddress, argument(2), static_cast<long>(argument(1)));
  std::byte* host = map_window(kHostAddress, argument(4), static_cast<long>(argument(3)));
  const auto& header = *reinterpret_cast<const Header*>(device);
  if (header.version != kVersion) end_process(5);
  const Windows windows(header.shape, device, host);
  if (windows.device_bytes() > argument(2) || windows.host_bytes() > argument(4)) end_process(6);
  for (std::uint32_t w = 1; w < windows.shape().workers; ++w) start_thread(windows, w);
  work(windows, 0);
  // The others stop by the same word; the process ends with all of them.
  end_process(0);
}

asm(".globl _start\n"
    "_start:\n"
    ".option push\n"
    ".option norelax\n"
    "la gp, __global_pointer$\n"
    ".option pop\n"
    "mv a0, sp\n"
    "andi sp, sp, -16\n"
    "j start_device\n");

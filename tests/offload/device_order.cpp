// Not a test of the suite: a program that device_order_test.cpp builds with -fsanitize=thread and runs once for each
// memory order. It is the device's own code, on threads, with the orders of offload/orders.hpp or with one of them
// weakened. A NIC writes payloads and completions, two workers make chunk bits of them, a reader waits for the chunk
// bits and reads the payloads, and the host completes and posts the slot again, each time for another length.
#include <atomic>
#include <cstdint>
#include <string_view>
#include <thread>
#include <vector>

#include "offload/device_worker.hpp"

namespace {

using namespace sdr;
using namespace sdr::offload;

constexpr std::uint32_t kPackets = 256;
constexpr std::uint32_t kRounds = 24;
constexpr std::memory_order kRelaxed = std::memory_order_relaxed;

struct WeakEntryPublish : Orders {
  static constexpr std::memory_order entry_publish = kRelaxed;
};
struct WeakEntryTake : Orders {
  static constexpr std::memory_order entry_take = kRelaxed;
};
struct WeakRingConsumed : Orders {
  static constexpr std::memory_order ring_consumed = kRelaxed;
};
struct WeakRingReuse : Orders {
  static constexpr std::memory_order ring_reuse = kRelaxed;
};
struct WeakDoorbellRing : Orders {
  static constexpr std::memory_order doorbell_ring = kRelaxed;
};
struct WeakDoorbellSee : Orders {
  static constexpr std::memory_order doorbell_see = kRelaxed;
};
template <typename O>
struct ThreadPlatform {
  using Orders = O;
  static void relax(std::uint32_t) { std::this_thread::yield(); }
  static void begin_batch() {}
  static void keep_batch() {}
  static void drop_batch() {}
};

template <typename O>
int run() {
  Shape shape;
  shape.geometry = {.layout = {}, .slots = 1, .packets_per_slot = kPackets, .log_packets_per_chunk = 4};
  shape.channels = 2;
  shape.workers = 2;
  shape.log_ring_entries = 4;
  const Windows sizes(shape, nullptr, nullptr);
  std::vector<std::uint64_t> device(sizes.device_bytes() / 8 + 16);
  std::vector<std::uint64_t> host(sizes.host_bytes() / 8 + 16);
  const auto aligned = [](std::vector<std::uint64_t>& bytes) {
    return reinterpret_cast<std::byte*>((reinterpret_cast<std::uintptr_t>(bytes.data()) + 63) & ~std::uintptr_t{63});
  };
  const Windows windows(shape, aligned(device), aligned(host));
  windows.lay_out();

  std::vector<std::thread> threads;
  for (std::uint32_t w = 0; w < 2; ++w)
    threads.emplace_back([&, w] { DeviceWorker<ThreadPlatform<O>>(windows, w, {}).run(); });

  std::vector<std::uint32_t> payload(kPackets);
  Doorbell<O> doorbell = windows.doorbell<O>();
  std::vector<RingProducer<O>> rings{windows.producer<O>(0), windows.producer<O>(1)};
  const core::MessageTable table = windows.table();
  std::uint32_t wrong = 0;
  for (std::uint32_t round = 0; round < kRounds; ++round) {
    const std::uint32_t packets = kPackets - 16 * (round % 4);
    const std::uint64_t posted =
        doorbell.ring({round == 0 ? Operation::Post : Operation::Repost, 0, round % 8, packets});
    while (doorbell.done() < posted) std::this_thread::yield();
    std::thread nic([&] {
      for (std::uint32_t p = 0; p < packets; ++p) {
        payload[p] = p + round;
        const core::Completion completion{
            .immediate = shape.geometry.layout.encode(core::SlotIndex(0), core::PacketOffset(p), 0),
            .length = 4096,
            .generation = static_cast<std::uint8_t>(round % 8)};
        while (!rings[p % 2].push(completion)) std::this_thread::yield();
      }
    });
    for (std::uint32_t chunk = 0; chunk < packets / 16; ++chunk) {
      const core::BitmapWord& word = table.chunk_bits(core::SlotIndex(0))[0];
      while ((word.load(std::memory_order_acquire) >> chunk & 1) == 0) std::this_thread::yield();
      for (std::uint32_t p = chunk * 16; p < (chunk + 1) * 16; ++p) wrong += payload[p] == p + round ? 0 : 1;
    }
    nic.join();
  }
  windows.header().stop.store(1, kRelaxed);
  for (std::thread& thread : threads) thread.join();
  return wrong == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view which = argc > 1 ? argv[1] : "";
  if (which == "nothing") return 0;
  if (which == "product") return run<Orders>();
  if (which == "weak-entry-publish") return run<WeakEntryPublish>();
  if (which == "weak-entry-take") return run<WeakEntryTake>();
  if (which == "weak-ring-consumed") return run<WeakRingConsumed>();
  if (which == "weak-ring-reuse") return run<WeakRingReuse>();
  if (which == "weak-doorbell-ring") return run<WeakDoorbellRing>();
  if (which == "weak-doorbell-see") return run<WeakDoorbellSee>();
  return 2;
}

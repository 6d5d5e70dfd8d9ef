// How many packets a second the threads of the `host` offload device take, by chunk size and by threads (figures 15 and
// 16 of the paper): the device's worker alone. The rings are full before the threads start, and the time is from their
// start to when the last of them has nothing left; making the traffic is not in it. Every chunk bit is looked at
// afterwards. Prints one JSON object a cell; bench/offload_figures.py makes the picture.
//   offload_rate [ROUNDS]
#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>
#include <vector>

#include "offload/device_worker.hpp"

namespace {

using namespace sdr;
using namespace sdr::offload;
using Clock = std::chrono::steady_clock;

constexpr std::uint32_t kLogPackets = 20;
constexpr std::uint32_t kPacketsPerSlot = 2048;
constexpr std::uint32_t kBurst = 16;  // packets that stay on one channel in a row
constexpr std::uint32_t kMtu = 4096;

struct Platform {
  using Orders = offload::Orders;
  void relax(std::uint32_t times) const {
    if (times == 1) ended->store(Clock::now().time_since_epoch().count(), std::memory_order_relaxed);
    std::this_thread::yield();
  }
  static void begin_batch() {}
  static void keep_batch() {}
  static void drop_batch() {}
  std::atomic<std::int64_t>* ended;
};

class Memory {
 public:
  explicit Memory(std::size_t bytes) : words_(bytes / 8 + 16) {}
  std::byte* at() {
    void* begin = words_.data();
    std::size_t room = words_.size() * 8;
    return static_cast<std::byte*>(std::align(64, room - 64, begin, room));
  }

 private:
  std::vector<std::uint64_t> words_;
};

// Million packets a second; 0 when a chunk was missing.
double measure(std::uint32_t log_chunk, std::uint32_t threads) {
  Shape shape;
  shape.geometry = {.layout = {},
                    .slots = (1U << kLogPackets) / kPacketsPerSlot,
                    .packets_per_slot = kPacketsPerSlot,
                    .log_packets_per_chunk = static_cast<std::uint8_t>(log_chunk)};
  shape.mtu = kMtu;
  shape.channels = threads;
  shape.workers = threads;
  shape.log_ring_entries = kLogPackets - static_cast<std::uint32_t>(std::countr_zero(threads));
  const Windows sizes(shape, nullptr, nullptr);
  Memory device(sizes.device_bytes());
  Memory host(sizes.host_bytes());
  const Windows windows(shape, device.at(), host.at());
  windows.lay_out();
  const core::MessageTable table = windows.table();
  for (std::uint32_t s = 0; s < shape.geometry.slots; ++s)
    table.post(core::SlotIndex(s), core::Generation(1), kPacketsPerSlot);
  std::vector<RingProducer<>> rings;
  for (std::uint32_t c = 0; c < threads; ++c) rings.push_back(windows.producer<Orders>(c));
  for (std::uint32_t p = 0; p < 1U << kLogPackets; ++p) {
    const core::SlotIndex slot(p / kPacketsPerSlot);
    rings[p / kBurst % threads].push(
        {.immediate = shape.geometry.layout.encode(slot, core::PacketOffset(p % kPacketsPerSlot), 0x12345678),
         .length = kMtu,
         .generation = 1});
  }

  std::vector<std::atomic<std::int64_t>> ended(threads);
  std::atomic<bool> go{false};
  std::atomic<std::uint32_t> there{0};
  const bool crowded = threads > std::thread::hardware_concurrency();
  std::vector<std::thread> workers;
  for (std::uint32_t w = 0; w < threads; ++w) {
    workers.emplace_back([&, w] {
      DeviceWorker<Platform> worker(windows, w, {&ended[w]});
      there.fetch_add(1);
      while (!go.load(std::memory_order_acquire))
        if (crowded) std::this_thread::yield();
      worker.run();
    });
  }
  while (there.load() < threads) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  const std::int64_t begun = Clock::now().time_since_epoch().count();
  go.store(true, std::memory_order_release);
  const auto all = [&](auto&& done) { return std::all_of(rings.begin(), rings.end(), done); };
  while (!all([](const RingProducer<>& ring) { return ring.consumed() == ring.produced(); }))
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  windows.header().stop.store(1, std::memory_order_relaxed);
  for (std::thread& worker : workers) worker.join();

  for (std::uint32_t s = 0; s < shape.geometry.slots; ++s) {
    for (std::uint32_t chunk = 0; chunk < shape.geometry.chunks_per_slot(); ++chunk) {
      const core::BitmapWord& word = table.chunk_bits(core::SlotIndex(s))[chunk / 64];
      if ((word.load(std::memory_order_acquire) >> (chunk % 64) & 1) == 0) return 0;
    }
  }
  std::int64_t last = begun + 1;
  for (const auto& end : ended) last = std::max(last, end.load());
  const auto took = std::chrono::duration<double>(Clock::duration(last - begun)).count();
  return (1U << kLogPackets) / took / 1e6;
}

}  // namespace

int main(int argc, char** argv) {
  const long rounds = argc > 1 ? std::max(1L, std::strtol(argv[1], nullptr, 10)) : 9;
  struct Cell {
    std::uint32_t log_chunk;
    std::uint32_t threads;
    std::vector<double> seen{};
  };
  std::vector<Cell> cells;
  for (const std::uint32_t log_chunk : {0U, 1U, 2U, 3U, 4U, 5U, 6U}) cells.push_back({log_chunk, 1});
  for (const std::uint32_t log_chunk : {0U, 4U, 6U})
    for (const std::uint32_t threads : {2U, 4U}) cells.push_back({log_chunk, threads});
  for (long round = 0; round < rounds; ++round) {
    for (Cell& cell : cells) {
      cell.seen.push_back(measure(cell.log_chunk, cell.threads));
      if (cell.seen.back() == 0) {
        std::fprintf(stderr, "offload_rate: a chunk of %u packets was missing\n", 1U << cell.log_chunk);
        return 1;
      }
    }
  }
  for (Cell& cell : cells) {
    std::sort(cell.seen.begin(), cell.seen.end());
    std::printf("{\"chunk_packets\": %u, \"threads\": %u, \"mpps\": %.2f, \"least\": %.2f, \"most\": %.2f}\n",
                1U << cell.log_chunk, cell.threads, cell.seen[cell.seen.size() / 2], cell.seen.front(),
                cell.seen.back());
  }
}

// Not a test of the suite: a program that shared_table_test.cpp builds with -fsanitize=thread and runs once for each
// memory order. Two workers fill chunks of 64 packets, even and odd ones, while a reader waits for the chunk bits and
// reads the payloads. With "worker" the product's own code publishes; the others are copies of its way of publishing,
// faithful or with one order weakened.
#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <thread>
#include <vector>

#include "core/receive_worker.hpp"
#include "tests/core/table.hpp"

namespace {

using namespace sdr::core;

constexpr std::uint32_t kChunks = 64;
constexpr std::uint32_t kPackets = kChunks * 64;

// `publish(packet)` is called by both workers, after they have written the packet's payload.
template <typename Publish>
int fill_and_read(const std::atomic<std::uint64_t>& chunk_bits, const Publish& publish) {
  std::vector<std::uint32_t> payload(kPackets, 0);
  const auto worker = [&](std::uint32_t parity) {
    for (std::uint32_t p = parity; p < kPackets; p += 2) {
      payload[p] = p + 1;
      publish(p, parity);
    }
  };
  std::uint32_t wrong = 0;
  std::thread even(worker, 0);
  std::thread odd(worker, 1);
  for (std::uint32_t chunk = 0; chunk < kChunks; ++chunk) {
    while ((chunk_bits.load(std::memory_order_acquire) >> chunk & 1) == 0) std::this_thread::yield();
    for (std::uint32_t p = chunk * 64; p < (chunk + 1) * 64; ++p) wrong += payload[p] == p + 1 ? 0 : 1;
  }
  even.join();
  odd.join();
  return wrong == 0 ? 0 : 1;
}

int with_worker() {
  TestTable t(TestTable::geometry(kPackets, 6, 1));
  t.table.post(SlotIndex(0), Generation(0), kPackets);
  std::array<ReceiveWorker, 2> workers{ReceiveWorker(t.table, kTestMtu), ReceiveWorker(t.table, kTestMtu)};
  return fill_and_read(t.chunk_bits[0], [&](std::uint32_t p, std::uint32_t worker) {
    const Completion completion = t.packet(0, p);
    workers[worker].process({&completion, 1});
  });
}

int with_copy(std::memory_order packet_order, std::memory_order chunk_order) {
  std::array<std::atomic<std::uint64_t>, kChunks> packet_bits{};
  std::atomic<std::uint64_t> chunk_bits{0};
  return fill_and_read(chunk_bits, [&](std::uint32_t p, std::uint32_t) {
    const std::uint64_t bit = std::uint64_t{1} << (p % 64);
    const std::uint64_t before = packet_bits[p / 64].fetch_or(bit, packet_order);
    if ((before | bit) == ~std::uint64_t{0}) chunk_bits.fetch_or(std::uint64_t{1} << (p / 64), chunk_order);
  });
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view which = argc > 1 ? argv[1] : "";
  if (which == "nothing") return 0;
  if (which == "worker") return with_worker();
  if (which == "copy") return with_copy(std::memory_order_seq_cst, std::memory_order_release);
  if (which == "weak-chunk-bit") return with_copy(std::memory_order_seq_cst, std::memory_order_relaxed);
  if (which == "weak-packet-bits") return with_copy(std::memory_order_relaxed, std::memory_order_release);
  return 2;
}

// DeviceWorker: what one thread of the device runs. The same source on every device; the packet path in it is
// core::ReceiveWorker.
//
// Model: worker w serves the rings of channels w, w + workers, ...: up to 128 completions a batch into the message
// table, whose packet bits lie in device memory and whose chunk bits lie in the host's window. Worker 0 also serves the
// doorbell between batches. A worker that finds nothing to do asks its platform to relax.
//
// Platform: `Orders`; relax() gives way for a moment; begin_batch(), keep_batch() and drop_batch() are marks that a
// counting emulator looks for, empty elsewhere.
//
// Threads: one object a thread. What a slot is shut against is an open batch: each batch is enclosed by two stores to
// the worker's epoch, as in sdk/quiescence.hpp, and with the same argument.
//
// Freestanding: the device program.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "core/receive_worker.hpp"
#include "offload/windows.hpp"

namespace sdr::offload {

template <typename Platform>
class DeviceWorker {
 public:
  using O = typename Platform::Orders;

  DeviceWorker(const Windows& windows, std::uint32_t index, Platform platform)
      : windows_(windows),
        index_(index),
        platform_(platform),
        table_(windows.table()),
        receive_(table_, windows.shape().mtu),
        doorbell_(windows.doorbell<O>()) {
    for (std::uint32_t channel = index; channel < windows.shape().channels; channel += windows.shape().workers)
      rings_[count_++] = windows.consumer<O>(channel);
  }
  DeviceWorker(const DeviceWorker&) = delete;
  DeviceWorker& operator=(const DeviceWorker&) = delete;

  // Until the host says stop.
  void run() {
    while (!stopping()) {
      bool idle = true;
      for (std::uint32_t ring = 0; ring < count_; ++ring) idle = !serve(rings_[ring]) && idle;
      if (index_ == 0) idle = !doorbell_.serve([this](const Command& command) { execute(command); }) && idle;
      add(record().alive, 1);
      if (idle) platform_.relax();
    }
  }

 private:
  static constexpr std::uint32_t kBatch = 128;

  [[nodiscard]] WorkerRecord& record() const { return windows_.worker(index_); }
  [[nodiscard]] bool stopping() const { return windows_.header().stop.load(std::memory_order_relaxed) != 0; }

  // One writer, so no read-modify-write.
  static void add(std::atomic<std::uint64_t>& counter, std::uint64_t n) {
    counter.store(counter.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  }

  bool serve(RingConsumer<O>& ring) {
    platform_.begin_batch();
    if (!ring.ready()) {
      platform_.drop_batch();
      return false;
    }
    WorkerRecord& record = windows_.worker(index_);
    const std::uint64_t epoch = record.epoch.load(std::memory_order_relaxed);
    record.epoch.store(epoch + 1, std::memory_order_seq_cst);
    typename RingConsumer<O>::Take take(ring, kBatch);
    receive_.process_with([&](core::ReceiveBatch& batch) { take.into(batch, windows_.shape().geometry.layout); });
    record.epoch.store(epoch + 2, O::batch_end);
    tell(record);
    const std::uint32_t errors = ring.finish(take);
    if (errors != 0) add(record.errors, errors);
    platform_.keep_batch();
    return true;
  }

  // Before the entries are given back, so that who sees them given back sees them counted.
  void tell(WorkerRecord& record) const {
    const core::WorkerCounters& counters = receive_.counters();
    add(record.batches, 1);
    record.packets.store(counters.packets.get(), std::memory_order_relaxed);
    record.duplicates.store(counters.duplicates.get(), std::memory_order_relaxed);
    record.late.store(counters.late.get(), std::memory_order_relaxed);
    record.out_of_range.store(counters.out_of_range.get(), std::memory_order_relaxed);
  }

  void execute(const Command& command) {
    const core::SlotIndex slot(command.slot);
    if (command.operation != Operation::Post) {
      table_.close(slot);
      wait_for_batches();
      table_.clean(slot);
    }
    if (command.operation != Operation::Complete)
      table_.post(slot, core::Generation(static_cast<std::uint8_t>(command.generation)), command.packets);
  }

  // Returns when every batch of another worker that was running at the call has ended; of its own there is none.
  void wait_for_batches() {
    for (std::uint32_t other = 1; other < windows_.shape().workers; ++other) {
      const std::atomic<std::uint64_t>& epoch = windows_.worker(other).epoch;
      const std::uint64_t seen = epoch.load(std::memory_order_seq_cst);
      if (seen % 2 == 0) continue;
      while (epoch.load(O::batch_seen_end) == seen && !stopping()) platform_.relax();
    }
  }

  const Windows windows_;
  const std::uint32_t index_;
  Platform platform_;
  const core::MessageTable table_;
  core::ReceiveWorker receive_;
  Doorbell<O> doorbell_;
  std::array<RingConsumer<O>, kMaxChannels> rings_;
  std::uint32_t count_ = 0;
};

}  // namespace sdr::offload

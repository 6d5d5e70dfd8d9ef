// DeviceWorker: what one thread of the device runs. The same source on every device; the packet path in it is
// core::ReceiveWorker.
//
// Model: worker w serves the rings of channels w, w + workers, ...: up to 512 completions a batch into the message
// table, whose packet bits lie in device memory and whose chunk bits lie in the host's window. Worker 0 also serves the
// doorbell between batches. Each makes the packets to be sent on its channels (send_worker.hpp). A worker that finds
// nothing to do asks its platform to relax.
//
// Platform: `Orders`; relax(n) gives way for a moment, for the n-th time in a row; begin_batch(), keep_batch() and
// drop_batch() are marks that a counting emulator looks for, empty elsewhere.
//
// Threads: one object a thread. What a slot is shut against is an open batch: each batch is enclosed by two additions
// to the worker's epoch, and who shuts a slot looks at the epoch by an addition, too (of nothing). The additions to one
// epoch have an order: one that begins a batch either comes before the look, which then waits, or after it, and then
// the batch has acquired that the slot is shut. No order between different words is asked for, as it is where the look
// is a load (sdk/quiescence.hpp).
//
// Freestanding: the device program.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "core/receive_worker.hpp"
#include "offload/entry_gather.hpp"
#include "offload/send_worker.hpp"
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
        gather_(windows.shape().geometry.layout, windows.shape().mtu),
        doorbell_(windows.doorbell<O>()),
        send_(windows, index) {
    for (std::uint32_t channel = index; channel < windows.shape().channels; channel += windows.shape().workers)
      rings_[count_++] = windows.consumer<O>(channel);
    if (count_ != 0) share_ = kBatch / count_ < kLeast ? kLeast : kBatch / count_;
  }
  DeviceWorker(const DeviceWorker&) = delete;
  DeviceWorker& operator=(const DeviceWorker&) = delete;

  // Until the host says stop.
  void run() {
    std::uint32_t idle_rounds = 0;
    while (!stopping()) {
      bool idle = !serve();
      idle = !send_.serve() && idle;
      if (index_ == 0) idle = !doorbell_.serve([this](const Command& command) { execute(command); }) && idle;
      add(record().alive, 1);
      idle_rounds = idle ? idle_rounds + 1 : 0;
      if (idle) platform_.relax(idle_rounds);
    }
  }

 private:
  static constexpr std::uint32_t kBatch = 512;  // of all rings
  static constexpr std::uint32_t kLeast = 32;   // of a ring, at most, however many there are

  [[nodiscard]] WorkerRecord& record() const { return windows_.worker(index_); }
  [[nodiscard]] bool stopping() const { return windows_.header().stop.load(std::memory_order_relaxed) != 0; }

  // One writer, so no read-modify-write.
  static void add(std::atomic<std::uint64_t>& counter, std::uint64_t n) {
    counter.store(counter.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  }

  // One batch of what lies in the rings. All of them together, since packets of one word come in on all channels.
  bool serve() {
    platform_.begin_batch();
    std::uint32_t found = 0;
    for (std::uint32_t ring = 0; ring < count_; ++ring) {
      const ReadyEntries entries = rings_[ring].ready(share_);
      if (!entries.empty()) ready_[found++] = {entries, &rings_[ring]};
    }
    if (found == 0) {
      platform_.drop_batch();
      return false;
    }
    WorkerRecord& record = windows_.worker(index_);
    record.epoch.fetch_add(1, O::batch_begin);
    std::uint32_t errors = 0;
    receive_.process_with([&](core::ReceiveBatch& batch) {
      for (std::uint32_t i = 0; i < found; ++i) errors += gather_.take(ready_[i].entries, batch);
      gather_.finish(batch);
    });
    record.epoch.fetch_add(1, O::batch_end);
    tell(record);
    if (errors != 0) add(record.errors, errors);
    for (std::uint32_t i = 0; i < found; ++i) ready_[i].ring->give_back(ready_[i].entries);
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
    if (command.operation == Operation::End) return core::apply_end(table_, slot, command.packets);
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
      std::atomic<std::uint64_t>& epoch = windows_.worker(other).epoch;
      const std::uint64_t seen = epoch.fetch_add(0, O::batch_look);
      if (seen % 2 == 0) continue;
      while (epoch.load(O::batch_seen_end) == seen && !stopping()) platform_.relax(1);
    }
  }

  const Windows windows_;
  const std::uint32_t index_;
  Platform platform_;
  const core::MessageTable table_;
  core::ReceiveWorker receive_;
  EntryGather gather_;
  Doorbell<O> doorbell_;
  SendWorker<O> send_;
  std::array<RingConsumer<O>, kMaxChannels> rings_;
  std::uint32_t count_ = 0;
  std::uint32_t share_ = 0;  // of a ring in a batch
  struct Ready {
    ReadyEntries entries;
    RingConsumer<O>* ring;
  };
  std::array<Ready, kMaxChannels> ready_;
};

}  // namespace sdr::offload

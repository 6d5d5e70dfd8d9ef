// Quiescence: lets recv_complete wait until no worker holds a slot, without a lock on the packet path.
//
// Model: each channel has an epoch, odd while its worker is inside a batch. The completing thread first shuts the slot
// (generation, transport), then calls wait(): a worker found inside a batch may have seen the old state, so wait until
// its epoch moves on; a worker found outside will see the new state when it enters. That "will see" is the store-load
// order on both sides: shutting, the epoch's two ends of the look, and the workers' load of the state are all seq_cst.
//
// Cost: two atomic additions a batch of packets for workers; a load a channel for the completing thread.
// Not chosen: a flag in the slot (a worker may be between its check and its store), a lock (on the packet path).
// Source: design notes on recv_complete against a packet in flight; epoch-based reclamation.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <thread>

namespace sdr::sdk {

class Quiescence {
 public:
  static constexpr std::size_t kBytesPerChannel = 64;

  explicit Quiescence(std::uint8_t channels) : epochs_(std::make_unique<Epoch[]>(channels)), channels_(channels) {}

  // A worker's stay inside one batch of one channel.
  class Batch {
   public:
    Batch(Quiescence& quiescence, std::uint8_t channel) : epoch_(quiescence.epochs_[channel].value) {
      epoch_.fetch_add(1, std::memory_order_seq_cst);
    }
    ~Batch() { epoch_.fetch_add(1, std::memory_order_release); }
    Batch(const Batch&) = delete;
    Batch& operator=(const Batch&) = delete;

   private:
    std::atomic<std::uint64_t>& epoch_;
  };

  // Returns when every batch that was running at the call has ended. Batches are short and bounded.
  void wait() const {
    for (const Epoch& epoch : std::span(epochs_.get(), channels_)) {
      const std::uint64_t seen = epoch.value.load(std::memory_order_seq_cst);
      if (seen % 2 == 0) continue;
      while (epoch.value.load(std::memory_order_acquire) == seen) std::this_thread::yield();
    }
  }

 private:
  struct alignas(kBytesPerChannel) Epoch {
    std::atomic<std::uint64_t> value{0};
  };
  std::unique_ptr<Epoch[]> epochs_;
  std::uint8_t channels_;
};

}  // namespace sdr::sdk

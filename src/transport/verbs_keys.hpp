// VerbsReceiveKeys: what makes the buffer of a posted receive reachable for packets, and no longer reachable.
//
// Model: every posted receive has an rkey of its own, which the CTS announces as part of the aim. take() makes it, and
// from drop() on it is dead: the NIC drops late packets by itself, whatever the memory is used for by then. Two ways:
//
//   region   the buffer is registered for this one receive and deregistered at its end. Any device.
//   window   a type-1 memory window is bound to the buffer within memory that the application has registered, and bound
//            to nothing at the end. Much cheaper than a registration on a NIC. A buffer that lies in no registered
//            memory gets a region.
//
// Deregistration returns when no packet can reach the memory any more. So does the completion of a bind, which
// VerbsWindowBinder waits for: a few microseconds.
//
// Not chosen: one rkey for all with a root key over it and a null region behind (the paper's way): needs the indirect
// keys of one vendor, which could not be tried here.
//
// Threads: the one that drives the endpoint. Source: paper section 3.3; InfiniBand specification 10.6.7.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "transport/verbs_memory.hpp"
#include "transport/verbs_queue_pair.hpp"
#include "transport/verbs_wire.hpp"

namespace sdr::transport {

// Binds windows, one at a time, through a queue pair of its own that is connected to itself and sends nothing.
class VerbsWindowBinder {
 public:
  static Result<std::unique_ptr<VerbsWindowBinder>> make(const VerbsPort& port, const VerbsGid& own);
  // Binds `window` to `length` bytes at `address` of `region`; to nothing when `length` is 0. The old rkey is dead.
  Result<void> bind(ibv_mw& window, ibv_mr& region, std::uint64_t address, std::uint64_t length);

 private:
  VerbsWindowBinder() = default;
  std::string device_;
  verbs::CompletionQueue completions_;
  std::unique_ptr<UcQueuePair> queue_pair_;
  std::uint64_t binds_ = 0;
};

class VerbsReceiveKeys {
 public:
  static Result<std::unique_ptr<VerbsReceiveKeys>> make(std::shared_ptr<VerbsPort> port,
                                                        std::shared_ptr<VerbsMemory> memory, std::uint32_t slots,
                                                        VerbsKeys keys, const VerbsGid& own);

  // The target without its tag. The slot must have been dropped before.
  Result<verbs_wire::Target> take(core::SlotIndex slot, std::span<std::byte> buffer);
  void drop(core::SlotIndex slot);
  [[nodiscard]] VerbsKeys keys() const { return binder_ ? VerbsKeys::Window : VerbsKeys::Region; }

 private:
  struct Key {
    VerbsRegion region;          // its own, when no window is bound
    verbs::MemoryWindow window;  // in window mode, for ever
    ibv_mr* bound_to = nullptr;
  };
  VerbsReceiveKeys(std::shared_ptr<VerbsPort> port, std::shared_ptr<VerbsMemory> memory, std::uint32_t slots)
      : port_(std::move(port)), memory_(std::move(memory)), keys_(slots) {}
  Result<void> allocate_window(Key& key) const;

  std::shared_ptr<VerbsPort> port_;
  std::shared_ptr<VerbsMemory> memory_;
  std::unique_ptr<VerbsWindowBinder> binder_;  // in window mode
  std::vector<Key> keys_;                      // by slot
};

}  // namespace sdr::transport

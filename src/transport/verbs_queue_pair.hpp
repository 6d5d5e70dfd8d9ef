// VerbsPath and UcQueuePair: the way to the peer's port, and one unreliable connected queue pair on it.
//
// A UcQueuePair is INIT when made and RTS once connected, with a full receive queue of work requests without memory: a
// Write with immediate brings its own address, the request only makes room for the completion. connect() may be called
// again, after an error: the number stays, the peer need not know (an unreliable connection takes up with any first
// packet, InfiniBand specification 9.8.3.2.2).
//
// Threads: connect() and refill() one at a time; fail() and failed() any.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>

#include "transport/verbs_gid.hpp"
#include "transport/verbs_objects.hpp"
#include "transport/verbs_port.hpp"

namespace sdr::transport {

struct VerbsPath {
  VerbsGid own;  // with its index as of now
  VerbsGid peer;
  ibv_mtu mtu = IBV_MTU_1024;

  [[nodiscard]] ibv_ah_attr address(const VerbsPort& port) const;
};

class UcQueuePair {
 public:
  struct Depths {
    std::uint32_t sends = 1;
    std::uint32_t receives = 1;
    std::uint32_t inline_bytes = 0;
    std::atomic<bool>* alarm = nullptr;  // set when the queue pair fails
  };
  static Result<std::unique_ptr<UcQueuePair>> make(const VerbsPort& port, ibv_cq* send, ibv_cq* receive,
                                                   const Depths& depths);

  Result<void> connect(const VerbsPort& port, const VerbsPath& path, std::uint32_t peer_qpn);

  [[nodiscard]] ibv_qp* get() const { return qp_.get(); }
  [[nodiscard]] std::uint32_t number() const { return qp_->qp_num; }
  [[nodiscard]] std::uint32_t inline_bytes() const { return depths_.inline_bytes; }

  // A receive request of wr_id `life` has been used up; false when it is of an earlier life, and counts for nothing.
  bool used(std::uint64_t life) {
    if (life != life_) return false;
    ++missing_;
    return true;
  }
  // Tops the receive queue up in batches, once a batch is missing.
  void refill();

  void fail(ibv_wc_status why);
  [[nodiscard]] bool failed() const { return failure_.load(std::memory_order_acquire) != IBV_WC_SUCCESS; }
  [[nodiscard]] ibv_wc_status failure() const {
    return static_cast<ibv_wc_status>(failure_.load(std::memory_order_acquire));
  }

  static constexpr std::uint32_t kRefill = 64;

 private:
  UcQueuePair() = default;
  Result<void> to_init(const VerbsPort& port);
  void post_receives(std::uint32_t count);

  verbs::QueuePair qp_;
  Depths depths_;
  std::uint64_t life_ = 0;     // how often connected
  std::uint32_t missing_ = 0;  // requests used up since the last refill
  bool fresh_ = true;          // INIT, as made
  std::atomic<int> failure_{IBV_WC_SUCCESS};
};

}  // namespace sdr::transport

// What the opaque types of sdr.h and sdr_mr.h are.
//
// Ownership: the application owns contexts, QPs and regions; a context is closed last, which sdr_context_destroy()
// checks. Handles belong to their QP, one for each message that may be in flight: number n has the place n mod slots,
// as its message has in the QueuePair, and is taken over by message n + slots.
//
// Threads: the handles' fields are read and written under the QP's turn (DrivenQueuePair::use).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "capi/driven_queue_pair.hpp"
#include "capi/environment.hpp"
#include "capi/memory_regions.hpp"
#include "runtime/worker_pool.hpp"
#include "sdr/queue_pair.hpp"
#include "sdr/sdr.h"
#include "sdr/sdr_mr.h"

struct sdr_context {
  sdr_context(sdr::DevicePtr opened, const sdr_dev_attr& given, unsigned threads)
      : device(std::move(opened)),
        attributes(given),
        workers(std::make_shared<sdr::runtime::WorkerPool>(threads)),
        regions(device) {}

  sdr::DevicePtr device;
  sdr_dev_attr attributes;
  std::shared_ptr<sdr::runtime::WorkerPool> workers;
  sdr::capi::MemoryRegions regions;
  std::atomic<std::uint32_t> open_queue_pairs{0};
};

struct sdr_mr {
  sdr_context* context = nullptr;
  std::uint32_t lkey = 0;
};

struct sdr_recv_handle {
  sdr_qp* qp = nullptr;
  sdr::RecvHandle receive;
  std::uint32_t max_length = 0;
};

struct sdr_send_handle {
  sdr_qp* qp = nullptr;
  sdr::SendHandle send;
};

struct sdr_qp {
  sdr_qp(sdr_context& owner, const sdr_qp_attr& given, const sdr::capi::Environment& from_environment,
         std::unique_ptr<sdr::QueuePair> queue_pair)
      : context(&owner),
        attributes(given),
        environment(from_environment),
        geometry(queue_pair->geometry()),
        receives(geometry.slots, sdr_recv_handle{.qp = this}),
        sends(geometry.slots, sdr_send_handle{.qp = this}),
        driven(owner.workers, std::move(queue_pair)) {}

  sdr_context* context;
  sdr_qp_attr attributes;
  sdr::capi::Environment environment;
  sdr::QueuePairGeometry geometry;
  std::vector<sdr_recv_handle> receives;
  std::vector<sdr_send_handle> sends;
  sdr::capi::DrivenQueuePair driven;  // last: it stops before the rest goes
};

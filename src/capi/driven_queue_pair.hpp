// DrivenQueuePair: a QueuePair that moves by itself, driven by the threads of a WorkerPool.
//
// Model: one control agent a QueuePair runs progress() (timers, control datagrams, injection), one agent a channel runs
// poll_channel(). A call that gives the QueuePair something to do wakes the control agent; so do packets on a path
// within this machine, where the sender waits for reports of what has left the socket. Idle agents sleep on the
// descriptors. A transport without descriptors for its channels has them polled by progress().
//
// Threads: use() from any thread; the calls and progress() take turns under a lock that serves in order. poll_channel()
// takes no lock: the path of a packet never waits for a caller. The destructor may run with messages in flight; when it
// returns no worker touches a buffer. It must not run on a worker of the pool, nor beside a use().
//
// Invariant: what a use_and_wake() did is seen by a progress() that begins after it.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "capi/turn_lock.hpp"
#include "runtime/worker_pool.hpp"
#include "sdr/queue_pair.hpp"
#include "sdr/result.hpp"

namespace sdr::capi {

class DrivenQueuePair {
 public:
  DrivenQueuePair(std::shared_ptr<runtime::WorkerPool> pool, std::unique_ptr<QueuePair> queue_pair);
  ~DrivenQueuePair();
  DrivenQueuePair(const DrivenQueuePair&) = delete;
  DrivenQueuePair& operator=(const DrivenQueuePair&) = delete;

  // Runs `call(QueuePair&)` while nobody else calls into it.
  template <typename Call>
  auto use(Call&& call) {
    const std::lock_guard turn(lock_);
    return std::forward<Call>(call)(*queue_pair_);
  }
  // The same for a call that may give the QueuePair something to do.
  template <typename Call>
  auto use_and_wake(Call&& call) {
    auto result = use(std::forward<Call>(call));
    wake();
    return result;
  }

  // Connects, and starts to drive. InvalidArgument when it is connected already; otherwise as QueuePair::connect().
  Result<void> connect(std::span<const std::byte> remote_info);

 private:
  class ControlAgent;
  class ChannelAgent;

  void start();
  void wake();

  std::shared_ptr<runtime::WorkerPool> pool_;
  TurnLock lock_;
  std::unique_ptr<QueuePair> queue_pair_;
  std::shared_ptr<ControlAgent> control_;
  std::vector<std::shared_ptr<ChannelAgent>> channels_;
  bool connected_ = false;               // guarded by lock_
  std::atomic<bool> driven_{false};      // the control agent is with the pool
  std::atomic<bool> wake_asked_{false};  // and will be called: no second wake-up is needed
};

}  // namespace sdr::capi

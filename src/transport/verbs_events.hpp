// VerbsEvents and WakingQueue: a descriptor that becomes readable when one of some completion queues has something.
//
// Model: a queue is armed, and then makes one event at its next completion. Whoever finds it empty calls
// take() and arm(): they take the events that have come and arm the queue if it is not; true means that it must be
// looked at once more, because a completion may have slipped in between. So a thread that has seen poll() empty may
// sleep on fd().
//
// Threads: one.
#pragma once

#include <memory>

#include "transport/verbs_objects.hpp"
#include "transport/verbs_port.hpp"

namespace sdr::transport {

class VerbsEvents {
 public:
  static Result<VerbsEvents> make(const VerbsPort& port);
  [[nodiscard]] int fd() const { return channel_->fd; }
  [[nodiscard]] ibv_comp_channel* get() const { return channel_.get(); }
  // Takes the events that have come; their queues are no longer armed.
  void take();

 private:
  explicit VerbsEvents(verbs::CompletionChannel channel) : channel_(std::move(channel)) {}
  verbs::CompletionChannel channel_;
};

class WakingQueue {
 public:
  static Result<std::unique_ptr<WakingQueue>> make(const VerbsPort& port, VerbsEvents& events, std::uint32_t depth);
  WakingQueue(const WakingQueue&) = delete;
  WakingQueue& operator=(const WakingQueue&) = delete;

  [[nodiscard]] ibv_cq* get() const { return queue_.get(); }
  // See above; the events must have been taken.
  bool arm();

 private:
  friend class VerbsEvents;
  WakingQueue() = default;
  verbs::CompletionQueue queue_;
  bool armed_ = false;
};

}  // namespace sdr::transport

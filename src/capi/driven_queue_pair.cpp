#include "capi/driven_queue_pair.hpp"

#include <cstdint>
#include <memory>

namespace sdr::capi {
namespace {

// Batches of one channel before other agents of the worker get their turn.
constexpr int kBatchesPerTurn = 8;

}  // namespace

class DrivenQueuePair::ControlAgent final : public runtime::Agent {
 public:
  explicit ControlAgent(DrivenQueuePair& owner) : owner_(owner), fd_(owner.queue_pair_->control_fd()) {}

  TimePoint do_work(TimePoint now) override {
    // Before the lock: whoever asks from here on gets a progress() of its own.
    owner_.wake_asked_.exchange(false, std::memory_order_acq_rel);
    const std::lock_guard turn(owner_.lock_);
    const TimePoint next = owner_.queue_pair_->progress(now);
    // Nobody here reads datagrams of a layer above; left where it is, one would keep those behind it from being read.
    return owner_.queue_pair_->receive_control() ? now : next;
  }
  void watch(runtime::Sleeper& sleeper) override { sleeper.watch(fd_); }
  void unwatch(runtime::Sleeper& sleeper) override { sleeper.unwatch(fd_); }

 private:
  DrivenQueuePair& owner_;
  int fd_;
};

class DrivenQueuePair::ChannelAgent final : public runtime::Agent {
 public:
  ChannelAgent(DrivenQueuePair& owner, std::uint8_t channel)
      : owner_(owner),
        queue_pair_(*owner.queue_pair_),
        channel_(channel),
        fd_(queue_pair_.channel_fd(channel)),
        wakes_control_(queue_pair_.wants_progress_after_poll()) {}

  TimePoint do_work(TimePoint now) override {
    std::size_t total = 0;
    std::size_t batch = 1;
    for (int i = 0; i < kBatchesPerTurn && batch != 0; ++i) {
      batch = queue_pair_.poll_channel(channel_, now);
      total += batch;
      // Before the next ones are read: the sender may be waiting to hear of this batch.
      if (batch != 0 && wakes_control_) owner_.wake();
    }
    return total != 0 ? now : kNever;
  }
  void watch(runtime::Sleeper& sleeper) override { sleeper.watch(fd_); }
  void unwatch(runtime::Sleeper& sleeper) override { sleeper.unwatch(fd_); }

 private:
  DrivenQueuePair& owner_;
  QueuePair& queue_pair_;
  std::uint8_t channel_;
  int fd_;
  bool wakes_control_;
};

DrivenQueuePair::DrivenQueuePair(std::shared_ptr<runtime::WorkerPool> pool, std::unique_ptr<QueuePair> queue_pair)
    : pool_(std::move(pool)), queue_pair_(std::move(queue_pair)) {}

DrivenQueuePair::~DrivenQueuePair() {
  // The channels first: they wake the control agent.
  for (const auto& channel : channels_) pool_->remove(*channel);
  if (control_ != nullptr) pool_->remove(*control_);
}

Result<void> DrivenQueuePair::connect(std::span<const std::byte> remote_info) {
  return use([&](QueuePair& queue_pair) -> Result<void> {
    if (connected_)
      return Error{ErrorCode::InvalidArgument, "this QP is connected already, to " + queue_pair.peer_name()};
    if (Result<void> connected = queue_pair.connect(remote_info); !connected) return connected;
    connected_ = true;
    start();
    return {};
  });
}

void DrivenQueuePair::start() {
  const std::uint8_t channels = queue_pair_->geometry().channels;
  bool have_descriptors = true;
  for (std::uint8_t c = 0; c < channels; ++c) have_descriptors = have_descriptors && queue_pair_->channel_fd(c) >= 0;
  queue_pair_->own_channels(!have_descriptors);
  control_ = std::make_shared<ControlAgent>(*this);
  for (std::uint8_t c = 0; have_descriptors && c < channels; ++c) {
    channels_.push_back(std::make_shared<ChannelAgent>(*this, c));
  }
  pool_->add(control_);
  driven_.store(true, std::memory_order_release);
  for (const auto& channel : channels_) pool_->add(channel);
}

void DrivenQueuePair::wake() {
  if (!driven_.load(std::memory_order_acquire)) return;  // start() runs progress() for what was posted before
  if (!wake_asked_.exchange(true, std::memory_order_acq_rel)) pool_->wake(*control_);
}

}  // namespace sdr::capi

#include "transport/verbs_events.hpp"

#include <fcntl.h>
#include <fmt/core.h>

#include <cerrno>

namespace sdr::transport {

Result<VerbsEvents> VerbsEvents::make(const VerbsPort& port) {
  verbs::CompletionChannel channel(ibv_create_comp_channel(port.context()));
  if (!channel) {
    return verbs::verbs_error(fmt::format("no completion channel on RDMA device {}", port.name()), errno);
  }
  const int flags = ::fcntl(channel->fd, F_GETFL);
  if (flags < 0 || ::fcntl(channel->fd, F_SETFL, flags | O_NONBLOCK) != 0) {
    return verbs::verbs_error("a completion channel cannot be made non-blocking", errno);
  }
  return VerbsEvents(std::move(channel));
}

void VerbsEvents::take() {
  ibv_cq* queue = nullptr;
  void* context = nullptr;
  while (ibv_get_cq_event(channel_.get(), &queue, &context) == 0) {
    ibv_ack_cq_events(queue, 1);
    static_cast<WakingQueue*>(context)->armed_ = false;
  }
}

Result<std::unique_ptr<WakingQueue>> WakingQueue::make(const VerbsPort& port, VerbsEvents& events,
                                                       std::uint32_t depth) {
  std::unique_ptr<WakingQueue> made(new WakingQueue);
  made->queue_.reset(ibv_create_cq(port.context(), static_cast<int>(depth), made.get(), events.get(), 0));
  if (made->queue_) return made;
  return verbs::verbs_error(fmt::format("no completion queue of {} entries on RDMA device {} (it has at most {})",
                                        depth, port.name(), port.attributes().max_cqe),
                            errno);
}

bool WakingQueue::arm() {
  if (armed_) return false;
  armed_ = ibv_req_notify_cq(get(), 0) == 0;
  return armed_;
}

}  // namespace sdr::transport

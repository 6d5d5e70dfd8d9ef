#include "transport/verbs_channel.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <utility>

namespace sdr::transport {
namespace {

constexpr std::uint32_t kWantedDepth = 1024;
constexpr std::uint32_t kLeastDepth = 4 * UcQueuePair::kRefill;
// Looks at the queue in one poll(), so that a flood of completions that come to nothing cannot hold the thread.
constexpr int kMostLooks = 32;
constexpr std::size_t kBatch = 64;
// Looks at an empty queue that has just had something, some microseconds in all, before an event is asked for: events
// and the wake-ups that they make cost both ends more.
constexpr int kPatience = 100;

}  // namespace

std::uint32_t VerbsChannel::receive_depth(const VerbsPort& port, std::uint8_t generations) {
  const auto& device = port.attributes();
  const std::uint32_t share = static_cast<std::uint32_t>(std::max(device.max_cqe, 1)) / (generations + 1U);
  const std::uint32_t most = std::min(share, static_cast<std::uint32_t>(std::max(device.max_qp_wr, 1)));
  return std::clamp(most, kLeastDepth, kWantedDepth);
}

Result<std::unique_ptr<VerbsChannel>> VerbsChannel::make(const VerbsPort& port, const EndpointOptions& options,
                                                         std::uint8_t channel, ibv_cq* send,
                                                         const UcQueuePair::Depths& depths,
                                                         const VerbsExposures& exposures) {
  auto events = VerbsEvents::make(port);
  if (!events) return events.error();
  std::unique_ptr<VerbsChannel> made(new VerbsChannel(std::move(events).value(), options, channel, exposures));
  // One share more than there are queue pairs, for what is left in it of one that failed and was connected again.
  auto completions = WakingQueue::make(port, made->events_, depths.receives * (options.generations + 1U));
  if (!completions) return completions.error();
  made->completions_ = std::move(completions).value();
  for (std::uint8_t g = 0; g < options.generations; ++g) {
    auto queue_pair = UcQueuePair::make(port, send, made->completions_->get(), depths);
    if (!queue_pair) return queue_pair.error();
    made->by_number_.emplace_back((*queue_pair)->number(), g);
    made->queue_pairs_.push_back(std::move(queue_pair).value());
  }
  std::sort(made->by_number_.begin(), made->by_number_.end());
  return made;
}

Result<void> VerbsChannel::connect(const VerbsPort& port, const VerbsPath& path, core::Generation generation,
                                   std::uint32_t peer_qpn) {
  const std::lock_guard lock(mutex_);
  return queue_pair(generation).connect(port, path, peer_qpn);
}

std::uint8_t VerbsChannel::generation_of(std::uint32_t qpn) const {
  // All completions are of queue pairs of ours.
  return std::lower_bound(by_number_.begin(), by_number_.end(), std::pair(qpn, std::uint8_t{0}))->second;
}

bool VerbsChannel::accept(const ibv_wc& from, core::Completion& out) {
  const core::Generation generation(generation_of(from.qp_num));
  UcQueuePair& queue_pair = *queue_pairs_[generation.value];
  const bool of_this_life = queue_pair.used(from.wr_id);
  if (from.status != IBV_WC_SUCCESS) {
    if (of_this_life) queue_pair.fail(from.status);
    return false;
  }
  if (from.opcode != IBV_WC_RECV_RDMA_WITH_IMM || from.byte_len > options_.payload) {
    malformed_.add(1);
    return false;
  }
  const std::uint32_t immediate = ntohl(from.imm_data);
  const core::Immediate where = options_.layout.decode(immediate);
  switch (
      exposures_.judge(where.slot, generation, std::uint64_t{where.offset.value} * options_.payload, from.byte_len)) {
    case VerbsExposures::Verdict::OutOfRange:
      out_of_range_.add(1);
      return false;
    case VerbsExposures::Verdict::NotExposed:
      not_exposed_.add(1);
      return false;
    case VerbsExposures::Verdict::Good:
      break;
  }
  out = {.immediate = immediate,
         .length = static_cast<std::uint16_t>(from.byte_len),
         .generation = generation.value,
         .channel = channel_};
  received_.add(1);
  bytes_.add(from.byte_len);
  return true;
}

std::size_t VerbsChannel::poll(std::span<core::Completion> out) {
  const std::lock_guard lock(mutex_);
  std::array<ibv_wc, kBatch> batch;
  std::size_t filled = 0;
  int patience = std::exchange(busy_, false) ? kPatience : 0;
  for (int look = 0; look < kMostLooks && out.size() - filled >= batch.size();) {
    const int got = ibv_poll_cq(completions_->get(), static_cast<int>(batch.size()), batch.data());
    for (int i = 0; i < got; ++i) {
      if (accept(batch[static_cast<std::size_t>(i)], out[filled])) ++filled;
    }
    if (got > 0) {
      ++look;
      busy_ = true;
      for (const auto& queue_pair : queue_pairs_) queue_pair->refill();
    } else if (filled != 0) {
      break;
    } else if (patience > 0) {
      --patience;
    } else {
      event_looks_.add(1);
      events_.take();
      if (!completions_->arm()) break;
    }
  }
  return filled;
}

void VerbsChannel::add_counters(EndpointCounters& sum) const {
  sum.packets_received += received_.get();
  sum.bytes_received += bytes_.get();
  sum.dropped_malformed += malformed_.get();
  sum.dropped_out_of_range += out_of_range_.get();
  sum.dropped_not_exposed += not_exposed_.get();
  sum.receive_calls += event_looks_.get();
}

}  // namespace sdr::transport

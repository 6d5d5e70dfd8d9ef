#include "sdr/probe_way.hpp"

#include <algorithm>
#include <cstring>

namespace sdr::cli {
namespace {

constexpr Duration kRetry = std::chrono::microseconds(50);

}  // namespace

ProbeWay::ProbeWay(ProbeSockets& sockets, const std::optional<simulation::LinkSpec>& spec,
                   simulation::Direction direction, std::uint32_t largest, std::uint32_t overhead)
    : sockets_(sockets), overhead_(overhead), pool_(largest) {
  if (spec) model_.emplace(*spec, direction);
}

std::size_t ProbeWay::send(std::size_t socket, const transport::SegmentBatch& batch, TimePoint now) {
  if (!model_) return sockets_.send(socket, batch);
  advance(now);
  for (std::size_t i = 0; i < batch.count; ++i) {
    if (pool_.bytes_in_use() >= kMostWaiting) return i;
    const auto packet = batch.bytes.subspan(i * batch.segment, batch.segment);
    const simulation::Fate fate = model_->carry(static_cast<std::uint32_t>(packet.size()) + overhead_, now);
    for (std::size_t copy = 0; copy < fate.copies; ++copy) {
      const Item item{.buffer = pool_.take(),
                      .length = static_cast<std::uint32_t>(packet.size()),
                      .socket = static_cast<std::uint32_t>(socket)};
      std::memcpy(pool_.data(item.buffer), packet.data(), packet.size());
      if (fate.late || copy > 0) {
        queue_.push_late(fate.arrival[copy], item);
      } else {
        queue_.push(fate.arrival[copy], item);
      }
    }
  }
  return batch.count;
}

void ProbeWay::advance(TimePoint now) {
  if (now < retry_at_) return;
  while (const Item* item = queue_.due(now)) {
    const std::span<std::byte> bytes(pool_.data(item->buffer), item->length);
    if (sockets_.send(item->socket, {.bytes = bytes, .segment = bytes.size(), .count = 1}) == 0) {
      retry_at_ = now + kRetry;
      return;
    }
    pool_.give_back(item->buffer);
    queue_.pop();
  }
}

TimePoint ProbeWay::next_event() const {
  return queue_.empty() ? kNever : std::max(queue_.next(), retry_at_);
}

}  // namespace sdr::cli

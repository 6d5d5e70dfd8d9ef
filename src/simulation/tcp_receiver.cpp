#include "simulation/tcp_receiver.hpp"

#include <algorithm>

namespace sdr::simulation {

std::optional<TcpAck> TcpReceiver::handle(const TcpData& data, bool marked, TimePoint now) {
  marks_ += marked ? 1U : 0U;
  const bool in_order = data.number == next_;
  const bool gaps = !beyond_.empty();
  if (in_order) {
    ++next_;
    if (const auto closed = beyond_.around(next_)) next_ = closed->end;
    beyond_.drop_below(next_);
  } else if (data.number > next_) {
    beyond_.add(data.number);
    recent_.insert(recent_.begin(), data.number);
  }
  if (unacknowledged_++ == 0) delayed_until_ = now + kDelay;
  if (in_order && !gaps && !marked && unacknowledged_ < 2) return std::nullopt;
  return acknowledge();
}

std::optional<TcpAck> TcpReceiver::expire(TimePoint now) {
  if (now < next_timeout()) return std::nullopt;
  return acknowledge();
}

TcpAck TcpReceiver::acknowledge() {
  unacknowledged_ = 0;
  TcpAck ack{.next = next_, .marks = marks_};
  std::vector<std::uint64_t> shown;
  for (const std::uint64_t number : recent_) {
    if (ack.block_count == TcpAck::kBlocks) break;
    const auto range = beyond_.around(number);
    if (!range) continue;
    const auto same = [&](const TcpRange& other) { return other.begin == range->begin; };
    if (std::any_of(ack.blocks.begin(), ack.blocks.begin() + ack.block_count, same)) continue;
    ack.blocks[ack.block_count++] = *range;
    shown.push_back(number);
  }
  recent_ = std::move(shown);
  return ack;
}

}  // namespace sdr::simulation

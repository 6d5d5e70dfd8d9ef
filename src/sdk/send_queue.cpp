#include "sdk/send_queue.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace sdr::sdk {
namespace {

// Extents that may wait beside one a slot: streams put several small ones in flight.
constexpr std::size_t kExtraExtents = 192;

Error closed(SendHandle handle) {
  return {ErrorCode::Closed,
          fmt::format("send {} is not open: it has been ended, or never was started", handle.number)};
}

}  // namespace

SendQueue::SendQueue(const SendGeometry& geometry, OffloadEngine* engine)
    : geometry_(geometry), engine_(engine), sends_(geometry.slots), extents_(geometry.slots + kExtraExtents) {}

SendQueue::Send* SendQueue::find(SendHandle handle) {
  Send& send = sends_[handle.number % geometry_.slots];
  return send.used && send.number == handle.number ? &send : nullptr;
}
const SendQueue::Send* SendQueue::find(SendHandle handle) const {
  const Send& send = sends_[handle.number % geometry_.slots];
  return send.used && send.number == handle.number ? &send : nullptr;
}

bool SendQueue::next_slot_free(const transport::Endpoint& endpoint) const {
  const Send& send = sends_[next_ % geometry_.slots];
  return !send.used || (!send.open && send.extents == 0 && released(send, endpoint));
}

bool SendQueue::released(const Send& send, const transport::Endpoint& endpoint) {
  return endpoint.facts().copies_on_write || endpoint.writes_finished() >= send.last_packet_id;
}

Result<SendHandle> SendQueue::start(std::optional<std::uint32_t> user_immediate, const Announcement& grant,
                                    const transport::Endpoint& endpoint) {
  if (user_immediate && geometry_.layout.user_bits == 0)
    return Error{ErrorCode::InvalidArgument, "a user immediate needs user bits in the immediate; this QP has 0"};
  if (!next_slot_free(endpoint))
    return Error{ErrorCode::Retry, fmt::format("send {} still occupies the slot", next_ - geometry_.slots)};
  sends_[next_ % geometry_.slots] = Send{.number = next_,
                                         .user_immediate = user_immediate.value_or(0),
                                         .aim = grant.aim,
                                         .has_immediate = user_immediate.has_value(),
                                         .open = true,
                                         .used = true};
  return SendHandle{next_++};
}

Result<void> SendQueue::push(Send& send, std::uint32_t first, std::span<const std::byte> data, std::uint32_t trailing) {
  if (!has_room()) return Error{ErrorCode::Retry, fmt::format("all {} send extents are waiting", extents_.size())};
  extents_[(head_ + count_) % extents_.size()] = {
      .data = data.data(), .bytes = data.size(), .number = send.number, .next_packet = first, .trailing = trailing};
  ++count_;
  ++send.extents;
  backlog_ += data.size();
  return {};
}

Result<void> SendQueue::extend(SendHandle handle, std::uint32_t first, std::span<const std::byte> data,
                               bool end_marker) {
  Send* send = find(handle);
  if (send == nullptr || !send->open) return closed(handle);
  const auto packets = static_cast<std::uint32_t>((data.size() + geometry_.mtu - 1) / geometry_.mtu);
  const std::uint32_t end = first + packets;
  const bool short_packet_ends = data.size() % geometry_.mtu != 0;
  const bool chunk_is_full = end % geometry_.packets_per_chunk == 0 && !data.empty();
  const bool marked = end_marker && !short_packet_ends && !chunk_is_full && !is_past_the_slot(end);
  const std::uint32_t trailing = marked ? 1 : 0;
  if (packets + trailing == 0) return {};
  Result<void> pushed = push(*send, first, data, trailing);
  if (!pushed) return pushed;
  send->packets_reached = std::max(send->packets_reached, end);
  note_fragments(*send, first, packets + trailing);
  return {};
}

Result<void> SendQueue::end(SendHandle handle) {
  Send* send = find(handle);
  if (send == nullptr || !send->open) return closed(handle);
  const std::uint32_t missing = send->has_immediate ? missing_tail(*send) : 0;
  if (missing != 0) {
    Result<void> pushed = push(*send, send->packets_reached, {}, missing);
    if (!pushed) return pushed;
  }
  send->open = false;
  return {};
}

void SendQueue::note_fragments(Send& send, std::uint32_t first, std::uint32_t packets) const {
  const std::uint32_t fragments = geometry_.layout.fragments();
  for (std::uint32_t i = 0; i < std::min(packets, fragments); ++i)
    send.fragments_carried |= 1U << ((first + i) % fragments);
}

std::uint32_t SendQueue::missing_tail(const Send& send) const {
  const std::uint32_t fragments = geometry_.layout.fragments();
  // Only a message that reaches the last address of its slot has no offsets behind it.
  const std::uint32_t room = geometry_.layout.max_packets() - send.packets_reached;
  std::uint32_t tail = 0;
  for (std::uint32_t i = 0; i < std::min(fragments, room); ++i)
    if ((send.fragments_carried >> ((send.packets_reached + i) % fragments) & 1) == 0) tail = i + 1;
  return tail;
}

bool SendQueue::finished(SendHandle handle, const transport::Endpoint& endpoint) const {
  const Send* send = find(handle);
  if (send == nullptr) return true;  // its slot has been taken by a later send
  return send->extents == 0 && released(*send, endpoint);
}

core::SlotIndex SendQueue::slot_of(const Extent& extent) const {
  return core::SlotIndex(static_cast<std::uint32_t>(extent.number % geometry_.slots));
}

core::Generation SendQueue::generation_of(const Extent& extent) const {
  return core::Generation(static_cast<std::uint8_t>(extent.number / geometry_.slots % geometry_.generations));
}

std::size_t SendQueue::cut(std::span<transport::Packet> batch, std::uint64_t paced, std::uint64_t window,
                           std::uint64_t overhead) const {
  std::size_t n = 0;
  std::uint64_t payload = 0;
  std::uint8_t channel = next_channel_;
  std::uint64_t left_of_burst = burst_;
  // Bound by both, each with its own cost of a packet; the last packet may overdraw either.
  const auto open = [&] { return payload + n * overhead < paced && payload + n * kPacketCost < window; };
  for (std::size_t e = 0; e < count_ && n < batch.size() && open(); ++e) {
    const Extent& extent = extents_[(head_ + e) % extents_.size()];
    const Send& send = sends_[extent.number % geometry_.slots];
    const core::SlotIndex slot = slot_of(extent);
    const core::Generation generation = generation_of(extent);
    std::uint64_t left = extent.bytes;
    std::uint32_t trailing = extent.trailing;
    const std::byte* data = extent.data;
    for (std::uint32_t offset = extent.next_packet; (left > 0 || trailing > 0) && n < batch.size() && open();
         ++offset) {
      const auto length = static_cast<std::uint16_t>(std::min<std::uint64_t>(left, geometry_.mtu));
      if (left == 0) --trailing;
      // Field by field: made elsewhere and then copied, it would be read back before its fields have left the core.
      transport::Packet& packet = batch[n];
      packet.local = data;
      packet.immediate = geometry_.layout.encode(slot, core::PacketOffset(offset), send.user_immediate);
      packet.length = length;
      packet.generation = generation;
      packet.channel = core::ChannelIndex(channel);
      packet.aim = &send.aim;
      packet.memory_key = {};
      ++n;
      if (--left_of_burst == 0) {
        left_of_burst = burst_;
        channel = channel_after(channel);
      }
      data += length;
      left -= length;
      payload += length;
    }
  }
  return n;
}

void SendQueue::submit() {
  for (; submitted_ < count_; ++submitted_) {
    const Extent& extent = extents_[(head_ + submitted_) % extents_.size()];
    const SendExtent order{.data = extent.data,
                           .bytes = extent.bytes,
                           .slot = slot_of(extent),
                           .generation = generation_of(extent),
                           .first = extent.next_packet,
                           .trailing = extent.trailing,
                           .user_immediate = sends_[extent.number % geometry_.slots].user_immediate};
    if (!engine_->submit(order)) return;
  }
}

std::size_t SendQueue::fetch(std::span<transport::Packet> batch, std::uint64_t paced, std::uint64_t window,
                             std::uint64_t overhead) {
  submit();
  core::Scratch<SendWork, kBatch> scratch;
  const std::span<SendWork> made = scratch.values();
  const std::size_t most = engine_->made(made.first(batch.size()));
  std::uint64_t payload = 0;
  std::size_t n = 0;
  for (; n < most && payload + n * overhead < paced && payload + n * kPacketCost < window; ++n) {
    const SendWork& work = made[n];
    batch[n] = {.local = work.data,
                .immediate = work.immediate,
                .length = work.length,
                .generation = work.generation,
                .channel = work.channel,
                .aim = &sends_[geometry_.layout.decode(work.immediate).slot.value % geometry_.slots].aim};
    payload += work.length;
  }
  return n;
}

std::uint64_t SendQueue::take(std::span<const transport::Packet> packets) {
  std::uint64_t payload = 0;
  while (!packets.empty()) {
    Extent& extent = extents_[head_];
    std::uint64_t bytes = 0;
    std::uint32_t trailing = 0;
    std::size_t n = 0;
    for (; n < packets.size() && (bytes < extent.bytes || trailing < extent.trailing); ++n) {
      bytes += packets[n].length;
      if (packets[n].length == 0) ++trailing;
    }
    extent.next_packet += static_cast<std::uint32_t>(n);
    extent.bytes -= bytes;
    extent.data += bytes;
    extent.trailing -= trailing;
    payload += bytes;
    packets_sent_ += n;
    Send& send = sends_[extent.number % geometry_.slots];
    send.last_packet_id = packets_sent_;
    packets = packets.subspan(n);
    if (extent.bytes != 0 || extent.trailing != 0) continue;
    --send.extents;
    head_ = (head_ + 1) % extents_.size();
    --count_;
    if (submitted_ != 0) --submitted_;
  }
  backlog_ -= payload;
  bytes_sent_ += payload;
  return payload;
}

bool SendQueue::pump(transport::Endpoint& endpoint, Pacer& pacer, LandingWindow& window,
                     std::uint64_t overhead_per_packet, TimePoint now) {
  burst_ = std::max<std::uint64_t>(1, endpoint.facts().burst);
  core::Scratch<transport::Packet, kBatch> scratch;
  const std::span<transport::Packet> batch = scratch.values();
  while (count_ > 0) {
    const std::uint64_t paced = pacer.allowance(now);
    if (paced == 0 || window.allowance() == 0 || limited()) return false;
    const std::span<transport::Packet> whole =
        batch.first(static_cast<std::size_t>(std::min(packets_at_once(burst_), limit_ - packets_sent_)));
    const bool offloaded = engine_ != nullptr && engine_->sends();
    const std::size_t wanted = offloaded ? fetch(whole, paced, window.allowance(), overhead_per_packet)
                                         : cut(whole, paced, window.allowance(), overhead_per_packet);
    if (wanted == 0) return true;  // the device is at it
    const std::size_t taken = endpoint.write(batch.first(wanted), now);
    const std::uint64_t payload = take(batch.first(taken));
    if (taken > 0) next_channel_ = channel_after(batch[taken - 1].channel.value);
    pacer.spend(payload + taken * overhead_per_packet);
    window.spend(payload + taken * kPacketCost);
    if (offloaded) engine_->sent(taken);
    if (taken < wanted) return true;
  }
  return false;
}

}  // namespace sdr::sdk

#include "sdk/receive_queue.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <new>

namespace sdr::sdk {
namespace {

core::BitmapWord* zeroed_words(std::size_t count) {
  static_assert(sizeof(core::BitmapWord) == sizeof(std::uint64_t) && std::atomic<std::uint64_t>::is_always_lock_free);
  auto* words = static_cast<core::BitmapWord*>(std::calloc(count == 0 ? 1 : count, sizeof(core::BitmapWord)));
  if (words == nullptr) throw std::bad_alloc();
  return words;  // all-zero bytes are zero words on every platform libsdr builds for
}

}  // namespace

void ReceiveQueue::Free::operator()(core::BitmapWord* words) const {
  std::free(words);
}

ReceiveQueue::ReceiveQueue(const core::TableGeometry& geometry, std::uint32_t mtu, std::uint8_t generations,
                           OffloadEngine* engine)
    : geometry_(geometry),
      engine_(engine),
      mtu_(mtu),
      generations_(generations),
      slots_(engine == nullptr ? geometry.slots : 0),
      packet_bits_(zeroed_words(engine == nullptr ? std::size_t{geometry.slots} * geometry.packet_words() : 0)),
      chunk_bits_(zeroed_words(engine == nullptr ? std::size_t{geometry.slots} * geometry.chunk_words() : 0)),
      table_(engine != nullptr
                 ? engine->table()
                 : core::MessageTable(geometry, slots_,
                                      {packet_bits_.get(), std::size_t{geometry.slots} * geometry.packet_words()},
                                      {chunk_bits_.get(), std::size_t{geometry.slots} * geometry.chunk_words()})),
      entries_(geometry.slots) {}

std::uint64_t ReceiveQueue::bitmap_bytes() const {
  return std::uint64_t{geometry_.slots} * (geometry_.packet_words() + geometry_.chunk_words()) * 8;
}

std::uint64_t ReceiveQueue::state_bytes() const {
  return sizeof(*this) + slots_.size() * sizeof(core::Slot) + entries_.size() * sizeof(Entry);
}

core::SlotIndex ReceiveQueue::slot_of(std::uint64_t number) const {
  return core::SlotIndex(static_cast<std::uint32_t>(number % geometry_.slots));
}

core::Generation ReceiveQueue::generation_of(std::uint64_t number) const {
  return core::Generation(static_cast<std::uint8_t>(number / geometry_.slots % generations_));
}

const ReceiveQueue::Entry* ReceiveQueue::find(RecvHandle handle) const {
  const Entry& entry = entries_[handle.number % geometry_.slots];
  return entry.open && entry.number == handle.number ? &entry : nullptr;
}

Error ReceiveQueue::closed(RecvHandle handle) {
  return {ErrorCode::Closed,
          fmt::format("receive {} is not posted: it has been completed, or never was", handle.number)};
}

Result<ReceiveQueue::Posted> ReceiveQueue::post(std::span<std::byte> buffer, transport::Endpoint& endpoint) {
  const std::uint64_t max = std::uint64_t{geometry_.packets_per_slot} * mtu_;
  if (buffer.size() > max)
    return Error{ErrorCode::InvalidArgument,
                 fmt::format("a receive of {} bytes is larger than the largest message, {} bytes", buffer.size(), max)};
  Entry& entry = entries_[posted_ % geometry_.slots];
  if (entry.open)
    return Error{ErrorCode::Retry,
                 fmt::format("receive {} still occupies the next of {} slots", entry.number, geometry_.slots)};
  const core::SlotIndex slot = slot_of(posted_);
  const auto packets = static_cast<std::uint32_t>((buffer.size() + mtu_ - 1) / mtu_);
  if (engine_ == nullptr)
    table_.post(slot, generation_of(posted_), packets);
  else
    engine_->post(slot, generation_of(posted_), packets);
  const Result<transport::Aim> aim = endpoint.expose(slot, generation_of(posted_), buffer);
  if (!aim) {
    // Nothing was announced, so nothing of this use is under way.
    if (engine_ == nullptr) table_.close(slot);
    clear(slot);
    return aim.error();
  }
  entry = {.number = posted_, .length = buffer.size(), .open = true};
  return Posted{RecvHandle{posted_++}, *aim};
}

void ReceiveQueue::clear(core::SlotIndex slot) {
  if (engine_ == nullptr)
    table_.clean(slot);
  else
    engine_->complete(slot);
}

Result<void> ReceiveQueue::complete(RecvHandle handle, transport::Endpoint& endpoint, const Quiescence& quiescence) {
  if (find(handle) == nullptr) return closed(handle);
  const core::SlotIndex slot = slot_of(handle.number);
  if (engine_ == nullptr) table_.close(slot);
  endpoint.retract(slot);
  quiescence.wait();
  clear(slot);
  entries_[slot.value].open = false;
  return {};
}

Result<ChunkBitmap> ReceiveQueue::chunk_bitmap(RecvHandle handle) const {
  const Entry* entry = find(handle);
  if (entry == nullptr) return closed(handle);
  const std::uint64_t chunk_bytes = std::uint64_t{mtu_} << geometry_.log_packets_per_chunk;
  const std::uint64_t chunks = (entry->length + chunk_bytes - 1) / chunk_bytes;
  return ChunkBitmap(table_.chunk_bits(slot_of(handle.number)).first((chunks + core::kWordBits - 1) / core::kWordBits));
}

Result<std::uint64_t> ReceiveQueue::chunk_packets(RecvHandle handle, std::uint32_t chunk, std::uint32_t from) const {
  const Entry* entry = find(handle);
  if (entry == nullptr) return closed(handle);
  const std::uint32_t log = geometry_.log_packets_per_chunk;
  const std::uint32_t per_chunk = 1U << log;
  const std::uint64_t chunk_bytes = std::uint64_t{mtu_} << log;
  const std::uint64_t chunks = (entry->length + chunk_bytes - 1) / chunk_bytes;
  if (chunk >= chunks || from >= per_chunk)
    return Error{ErrorCode::InvalidArgument,
                 fmt::format("chunk {} packet {} is outside a receive of {} chunks of {} packets", chunk, from, chunks,
                             per_chunk)};
  const auto words = table_.packet_bits(slot_of(handle.number));
  const std::uint64_t first = (std::uint64_t{chunk} << log) + from;
  std::uint64_t bits = words[first / 64].load(std::memory_order_acquire) >> (first % 64);
  if (first % 64 != 0 && first / 64 + 1 < words.size())
    bits |= words[first / 64 + 1].load(std::memory_order_acquire) << (64 - first % 64);
  return bits & core::bit_range(0, per_chunk - from);
}

Result<std::uint32_t> ReceiveQueue::user_immediate(RecvHandle handle) const {
  if (find(handle) == nullptr) return closed(handle);
  const std::uint32_t fragments = geometry_.layout.fragments();
  if (fragments == 0)
    return Error{ErrorCode::InvalidArgument, "a user immediate needs user bits in the immediate; this QP has 0"};
  const core::Slot& slot = table_.slot(slot_of(handle.number));
  const std::uint64_t all = (std::uint64_t{1} << fragments) - 1;
  if (slot.fragments_seen.load(std::memory_order_acquire) != all)
    return Error{ErrorCode::Retry, "the user immediate has not arrived completely"};
  return slot.user_immediate.load(std::memory_order_relaxed);
}

Result<void> ReceiveQueue::set_length(RecvHandle handle, Bytes length) {
  const Entry* entry = find(handle);
  if (entry == nullptr) return closed(handle);
  if (length.count > entry->length)
    return Error{
        ErrorCode::InvalidArgument,
        fmt::format("a message of {} bytes does not fit the posted receive of {} bytes", length.count, entry->length)};
  const auto packets = static_cast<std::uint32_t>((length.count + mtu_ - 1) / mtu_);
  if (engine_ == nullptr)
    core::ReceiveWorker::apply_end(table_, slot_of(handle.number), packets);
  else
    engine_->end(slot_of(handle.number), packets);
  return {};
}

bool ReceiveQueue::touched(RecvHandle handle) const {
  return find(handle) != nullptr && table_.slot(slot_of(handle.number)).arrived.load(std::memory_order_relaxed);
}

}  // namespace sdr::sdk

#include "offload/trial_message.hpp"

#include <algorithm>
#include <numeric>

namespace sdr::offload {
namespace {

constexpr std::uint64_t kWindow = 64;  // no packet is further from its turn, when shuffled

}  // namespace

TrialMessage::TrialMessage(const core::TableGeometry& geometry, const Options& options, core::SlotIndex slot,
                           core::Generation generation, std::mt19937_64& random)
    : geometry_(geometry),
      mtu_(options.mtu),
      slot_(slot),
      generation_(generation),
      packets_(geometry.packets_per_slot),
      user_(static_cast<std::uint32_t>(random())),
      last_length_(static_cast<std::uint16_t>(options.mtu)) {
  const bool clean = options.clean;
  if (!clean && random() % 8 == 0) packets_ = 1 + static_cast<std::uint32_t>(random() % packets_);
  if (!clean && random() % 4 == 0) last_length_ = static_cast<std::uint16_t>(1 + random() % (mtu_ - 1));
  order_.resize(packets_);
  std::iota(order_.begin(), order_.end(), 0U);
  if (options.shuffled) {
    std::vector<std::uint64_t> turns(packets_);
    for (std::uint32_t p = 0; p < packets_; ++p) turns[p] = p + random() % kWindow;
    std::stable_sort(order_.begin(), order_.end(), [&](auto a, auto b) { return turns[a] < turns[b]; });
  }
  if (!clean && random() % 8 == 0) order_.erase(order_.begin() + static_cast<std::ptrdiff_t>(random() % order_.size()));
  // A packet that says generation g is late for the next 7 uses of its slot, and no longer. So that none flies longer,
  // every fourth use is drained, never cut; stale packets say at most three uses before.
  if (!clean && generation.value % 4 != 0 && random() % 6 == 0)
    cut_at_ = order_.size() / 4 + random() % (order_.size() / 2 + 1);
  const std::uint32_t log = geometry.log_packets_per_chunk;
  for (std::uint32_t first = 0; first < packets_; first += 1U << log)
    left_of_chunk_.push_back(std::min(1U << log, packets_ - first));
}

core::Completion TrialMessage::packet(std::uint32_t offset, core::Generation generation) const {
  return {.immediate = geometry_.layout.encode(slot_, core::PacketOffset(offset), user_),
          .length = offset + 1 == packets_ ? last_length_ : static_cast<std::uint16_t>(mtu_),
          .generation = generation.value};
}

core::Completion TrialMessage::take() {
  const std::uint32_t offset = order_[next_++];
  --left_of_chunk_[offset >> geometry_.log_packets_per_chunk];
  fragments_ |= 1U << (offset % geometry_.layout.fragments());
  return packet(offset, generation_);
}

core::Completion TrialMessage::repeat(std::mt19937_64& random) const {
  return packet(order_[random() % next_], generation_);
}

core::Completion TrialMessage::stale(std::mt19937_64& random) const {
  const std::uint64_t back = 1 + random() % 3;
  const auto earlier = static_cast<std::uint8_t>((generation_.value + kTrialGenerations - back) % kTrialGenerations);
  return packet(static_cast<std::uint32_t>(random() % packets_), core::Generation(earlier));
}

core::Completion TrialMessage::past_the_end(std::mt19937_64& random) const {
  const std::uint32_t room = geometry_.layout.max_packets() - packets_;
  return packet(packets_ + static_cast<std::uint32_t>(random() % room), generation_);
}

std::vector<std::uint64_t> TrialMessage::expected() const {
  std::vector<std::uint64_t> words(geometry_.chunk_words());
  for (std::size_t chunk = 0; chunk < left_of_chunk_.size(); ++chunk)
    if (left_of_chunk_[chunk] == 0) words[chunk / core::kWordBits] |= std::uint64_t{1} << (chunk % core::kWordBits);
  return words;
}

bool TrialMessage::allows(std::span<const core::BitmapWord> bits) const {
  const std::vector<std::uint64_t> whole = expected();
  for (std::size_t w = 0; w < whole.size(); ++w)
    if ((bits[w].load(std::memory_order_acquire) & ~whole[w]) != 0) return false;
  return true;
}

bool TrialMessage::matches(std::span<const core::BitmapWord> bits, const UserImmediate& immediate) const {
  const std::vector<std::uint64_t> whole = expected();
  for (std::size_t w = 0; w < whole.size(); ++w)
    if (bits[w].load(std::memory_order_acquire) != whole[w]) return false;
  std::uint32_t carried = 0;
  const std::uint32_t bits_each = geometry_.layout.user_bits;
  for (std::uint32_t f = 0; f < geometry_.layout.fragments(); ++f)
    if ((fragments_ >> f & 1) != 0) carried |= user_ & ((1U << bits_each) - 1) << (f * bits_each);
  return immediate.fragments_seen == fragments_ && immediate.value == carried;
}

std::uint64_t TrialMessage::whole_chunks() const {
  return static_cast<std::uint64_t>(std::count(left_of_chunk_.begin(), left_of_chunk_.end(), 0U));
}

}  // namespace sdr::offload

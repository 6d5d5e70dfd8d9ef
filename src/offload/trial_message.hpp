// TrialMessage: one use of a slot in a trial: which completions are to come, in which order, and what the device must
// have made of those that did.
//
// Model: a message of `packets` packets, one of which may be withheld (its chunk must stay open), in order or shuffled
// within a window. What has been pushed is kept in a bitmap of its own, which the chunk bits are held against.
//
// One thread.
#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <span>
#include <vector>

#include "core/completion.hpp"
#include "offload/device.hpp"

namespace sdr::offload {

class TrialMessage {
 public:
  struct Options {
    std::uint32_t mtu = 4096;
    bool shuffled = false;
    bool clean = false;  // full packets, none withheld, not cut
  };

  TrialMessage(const core::TableGeometry& geometry, const Options& options, core::SlotIndex slot,
               core::Generation generation, std::mt19937_64& random);

  [[nodiscard]] core::Generation generation() const { return generation_; }
  [[nodiscard]] std::uint32_t packets() const { return packets_; }
  [[nodiscard]] bool emitted() const { return next_ == order_.size(); }
  // Given up with its packets still flying, at this point of it.
  [[nodiscard]] bool to_be_cut() const { return cut_at_ && next_ >= *cut_at_; }
  [[nodiscard]] bool is_cut() const { return cut_at_.has_value(); }

  // The next packet. It counts as pushed.
  core::Completion take();
  // A copy of one that was pushed; there must be one.
  [[nodiscard]] core::Completion repeat(std::mt19937_64& random) const;
  [[nodiscard]] bool any() const { return next_ > 0; }
  // A packet of an earlier use of the slot.
  [[nodiscard]] core::Completion stale(std::mt19937_64& random) const;
  // A packet past the end of the posted buffer.
  [[nodiscard]] core::Completion past_the_end(std::mt19937_64& random) const;

  // Whether `bits` hold no chunk that is not whole.
  [[nodiscard]] bool allows(std::span<const core::BitmapWord> bits) const;
  // Whether they hold exactly the whole chunks, and the user immediate is what the pushed packets carried.
  [[nodiscard]] bool matches(std::span<const core::BitmapWord> bits, const UserImmediate& immediate) const;
  [[nodiscard]] std::uint64_t whole_chunks() const;

 private:
  [[nodiscard]] core::Completion packet(std::uint32_t offset, core::Generation generation) const;
  [[nodiscard]] std::vector<std::uint64_t> expected() const;

  core::TableGeometry geometry_;
  std::uint32_t mtu_;
  core::SlotIndex slot_;
  core::Generation generation_;
  std::uint32_t packets_;
  std::uint32_t user_;
  std::uint16_t last_length_;
  std::vector<std::uint32_t> order_;
  std::size_t next_ = 0;
  std::optional<std::size_t> cut_at_;
  std::vector<std::uint32_t> left_of_chunk_;  // packets not yet pushed
  std::uint32_t fragments_ = 0;
};

inline constexpr std::uint32_t kTrialGenerations = 8;

}  // namespace sdr::offload

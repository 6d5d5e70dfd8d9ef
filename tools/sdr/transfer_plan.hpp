// StepCursor: the order in which the bytes of a transfer travel; both ends walk the same steps.
//
// Files in the order of the manifest, of each what is missing from the front on, cut into blocks. A step with bytes is
// one Write, and as the n-th Write fills the n-th receive, nothing but the plan needs to be said about where it goes. A
// file of which nothing is missing has one step without bytes. Directories have none.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>

#include "sdr/file_manifest.hpp"
#include "sdr/transfer_ranges.hpp"

namespace sdr::cli {

// The longest Write: large enough to cost nothing beside its bytes, small enough to be hashed and retired underway.
inline constexpr std::uint64_t kBlock = std::uint64_t{4} << 20;

struct Step {
  std::uint32_t file = 0;
  Range range;
  bool last = false;  // of its file
};

class StepCursor {
 public:
  // `missing` has the files of which something is there; of the others everything is missing. Both must outlive this.
  StepCursor(std::span<const FileEntry> entries, const std::map<std::uint32_t, Ranges>& missing)
      : entries_(entries), missing_(missing) {
    enter();
  }

  [[nodiscard]] std::optional<Step> peek() const {
    if (file_ == entries_.size()) return std::nullopt;
    Step step{.file = static_cast<std::uint32_t>(file_), .range = {}, .last = true};
    if (part_ == ranges_.size()) return step;
    const Range whole = *(ranges_.begin() + static_cast<std::ptrdiff_t>(part_));
    const std::uint64_t end = std::min(whole.end(), (at_ / kBlock + 1) * kBlock);
    step.range = {at_, end - at_};
    step.last = end == whole.end() && part_ + 1 == ranges_.size();
    return step;
  }

  void pop() {
    const std::optional<Step> step = peek();
    if (!step) return;
    if (step->last) {
      ++file_;
      enter();
      return;
    }
    at_ = step->range.end();
    if (at_ == (ranges_.begin() + static_cast<std::ptrdiff_t>(part_))->end()) {
      ++part_;
      at_ = (ranges_.begin() + static_cast<std::ptrdiff_t>(part_))->offset;
    }
  }

 private:
  void enter() {
    while (file_ < entries_.size() && entries_[file_].directory) ++file_;
    part_ = 0;
    at_ = 0;
    ranges_ = {};
    if (file_ == entries_.size()) return;
    const auto known = missing_.find(static_cast<std::uint32_t>(file_));
    ranges_ = known == missing_.end() ? Ranges::whole(entries_[file_].size) : known->second;
    if (!ranges_.empty()) at_ = ranges_.begin()->offset;
  }

  std::span<const FileEntry> entries_;
  const std::map<std::uint32_t, Ranges>& missing_;
  std::size_t file_ = 0;
  std::size_t part_ = 0;  // range of the file
  std::uint64_t at_ = 0;  // in that range
  Ranges ranges_;
};

}  // namespace sdr::cli

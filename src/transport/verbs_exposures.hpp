// VerbsExposures: which slots are exposed, under which generation; what completions are held against.
//
// The NIC's keys keep late payloads out of memory (verbs_keys.hpp). A packet without payload has no key to check, and a
// completion may lie in its queue while the slot is retracted: those are told apart here.
//
// Threads: expose() and retract() one at a time; looked at by the threads that poll. `state` is sequentially
// consistent, so that who retracts may look next at whether a poll() is under way: either that one sees the slot gone,
// or the caller sees that one.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "core/indices.hpp"

namespace sdr::transport {

class VerbsExposures {
 public:
  explicit VerbsExposures(std::uint32_t slots) : entries_(std::make_unique<Entry[]>(slots)), slots_(slots) {}

  void expose(core::SlotIndex slot, core::Generation generation, std::uint64_t length) {
    entries_[slot.value].length = length;
    entries_[slot.value].state.store(kActive | generation.value, std::memory_order_seq_cst);
  }
  void retract(core::SlotIndex slot) { entries_[slot.value].state.store(0, std::memory_order_seq_cst); }

  enum class Verdict : std::uint8_t { Good, OutOfRange, NotExposed };
  // Of `length` bytes at byte `begin` of a slot; without payload any place will do.
  [[nodiscard]] Verdict judge(core::SlotIndex slot, core::Generation generation, std::uint64_t begin,
                              std::uint64_t length) const {
    if (slot.value >= slots_) return Verdict::OutOfRange;
    const Entry& entry = entries_[slot.value];
    if (entry.state.load(std::memory_order_seq_cst) != (kActive | generation.value)) return Verdict::NotExposed;
    return length == 0 || begin + length <= entry.length ? Verdict::Good : Verdict::OutOfRange;
  }

 private:
  static constexpr std::uint32_t kActive = 0x100;
  struct Entry {
    std::uint64_t length = 0;
    std::atomic<std::uint32_t> state{0};  // kActive | generation, or 0
  };
  std::unique_ptr<Entry[]> entries_;
  std::uint32_t slots_;
};

}  // namespace sdr::transport

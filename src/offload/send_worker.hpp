// SendWorker: what one thread of the device does for sending (work_entry.hpp): cuts the extents it is commanded into
// the packets of its own channels.
//
// Threads: one object a thread, none shares a channel with another.
//
// Freestanding: the device program.
#pragma once

#include <array>
#include <cstdint>

#include "offload/windows.hpp"

namespace sdr::offload {

template <typename O>
class SendWorker {
 public:
  SendWorker(const Windows& windows, std::uint32_t index) : windows_(windows), index_(index) {
    for (std::uint32_t channel = index; channel < windows.shape().channels; channel += windows.shape().workers)
      rings_[channel] = windows.work_producer<O>(channel);
  }

  // Some of what lies ready. False when there was nothing to do, or no room.
  bool serve() {
    if (windows_.shape().burst == 0 || windows_.send_bell().rung.load(O::doorbell_see) == done_) return false;
    const SendCommand command = windows_.send_commands()[done_ % kSendCommands];
    const std::uint32_t mtu = windows_.shape().mtu;
    const std::uint64_t packets = (command.bytes + mtu - 1) / mtu + command.trailing;
    const std::uint64_t before = made_;
    bool room = true;
    while (room && next_ < packets && made_ - before < kMost) {
      const std::uint64_t burst = (begun_ + next_) / windows_.shape().burst;
      const std::uint64_t burst_end = (burst + 1) * windows_.shape().burst - begun_;
      const std::uint64_t end = burst_end < packets ? burst_end : packets;
      const auto channel = static_cast<std::uint32_t>(burst % windows_.shape().channels);
      if (channel % windows_.shape().workers != index_)
        next_ = end;
      else
        room = make(command, channel, end);
    }
    windows_.send_record(index_).made.store(made_, std::memory_order_relaxed);
    if (!room) return made_ != before;
    if (next_ == packets) {
      begun_ += packets;
      next_ = 0;
      windows_.send_record(index_).commands.store(++done_, O::ring_consumed);
    }
    return true;
  }

 private:
  static constexpr std::uint64_t kMost = 256;  // packets in a turn, and the rest of a burst

  // Packets up to `end` of the command. False: the ring is full.
  bool make(const SendCommand& command, std::uint32_t channel, std::uint64_t end) {
    const core::ImmediateLayout& layout = windows_.shape().geometry.layout;
    const std::uint32_t mtu = windows_.shape().mtu;
    for (; next_ < end; ++next_) {
      if (!rings_[channel].has_room()) return false;
      const std::uint64_t at = next_ * mtu < command.bytes ? next_ * mtu : command.bytes;
      const std::uint64_t left = command.bytes - at;
      const core::PacketOffset offset(command.first + static_cast<std::uint32_t>(next_));
      rings_[channel].make(command.address + at,
                           layout.encode(core::SlotIndex(command.slot), offset, command.user_immediate),
                           static_cast<std::uint32_t>(left < mtu ? left : mtu), command.generation, channel);
      ++made_;
    }
    return true;
  }

  const Windows windows_;
  const std::uint32_t index_;
  std::uint64_t done_ = 0;   // commands
  std::uint64_t begun_ = 0;  // packets of those
  std::uint64_t next_ = 0;   // packet of the command that is under way
  std::uint64_t made_ = 0;
  std::array<WorkProducer<O>, kMaxChannels> rings_;
};

}  // namespace sdr::offload

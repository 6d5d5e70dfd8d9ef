// Engine: a Device as the offload engine of a QueuePair (sdk/offload.hpp), and what is done when the device fails.
//
// Model: completions go into the rings of the device, slots are posted and completed through its doorbell, and the
// QueuePair reads the table that the device keeps. take_over() ends the device for good and goes on here: what it had
// set of packet bits is folded into chunk bits once more, what lay in its rings is processed, and from then on this
// host's own worker processes completions, on the same table. A completion that the device had processed without giving
// it back counts as a duplicate.
//
// What lies in memory that the device writes is taken for true only within bounds that this host knows by itself: of
// slots, what was posted (Use); of packets made for sending, exactly those that were commanded. A device that makes
// others is taken over from. Bits that it sets wrongly are believed.
//
// Threads: as sdk/offload.hpp says. A channel's mutex is held while its ring is filled, and by take_over(), so nothing
// gets into a ring that has been left; lock_ guards the device's state and the table after the take-over.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "core/receive_worker.hpp"
#include "offload/device.hpp"
#include "sdk/offload.hpp"

namespace sdr::offload {

class Engine final : public sdk::OffloadEngine {
 public:
  struct Halves {
    bool receive = true;
    bool send = true;
  };
  Engine(std::unique_ptr<Device> device, DeviceKind kind, Halves halves);

  [[nodiscard]] bool receives() const override { return halves_.receive; }
  [[nodiscard]] bool sends() const override { return halves_.send && !failed(); }
  [[nodiscard]] const core::MessageTable& table() const override { return device_->table(); }
  void post(core::SlotIndex slot, core::Generation generation, std::uint32_t packets) override;
  void complete(core::SlotIndex slot) override;
  void end(core::SlotIndex slot, std::uint32_t packets) override;
  void take(core::ChannelIndex channel, std::span<const core::Completion> completions) override;
  [[nodiscard]] bool pending() const override;
  bool submit(const sdk::SendExtent& extent) override;
  std::size_t made(std::span<sdk::SendWork> out) override;
  void sent(std::size_t packets) override;
  void look(TimePoint now) override;
  [[nodiscard]] std::optional<Error> failure() const override;
  [[nodiscard]] sdk::OffloadCounts counts() const override;
  [[nodiscard]] std::string_view device() const override { return offload::to_string(kind_); }
  // Of the process that runs the device, 0 where it has none.
  [[nodiscard]] int process_id() const { return device_->process_id(); }

 private:
  struct alignas(64) Channel {
    std::mutex filling;
    std::atomic<std::uint64_t> given{0};  // to the ring
  };
  // A slot as this host has posted it.
  struct Use {
    bool open = false;
    core::Generation generation;
    std::uint32_t packets = 0;
    std::optional<std::uint32_t> end;  // the length that was told later
  };
  // The next packet of what the device was commanded to make.
  class Expected {
   public:
    Expected(const std::deque<sdk::SendExtent>& extents, std::uint64_t packet, const Shape& shape)
        : extents_(extents), packet_(packet), shape_(shape) {}
    // Nothing when no more were commanded.
    std::optional<sdk::SendWork> next();

   private:
    const std::deque<sdk::SendExtent>& extents_;
    std::size_t extent_ = 0;
    std::uint64_t packet_;  // of that extent
    const Shape& shape_;
  };
  [[nodiscard]] bool failed() const { return failed_.load(std::memory_order_acquire); }
  [[nodiscard]] core::ChannelIndex channel_of(std::uint64_t packet) const;
  // Of all of an extent.
  static std::uint64_t packets_of(const sdk::SendExtent& extent, const Shape& shape);
  // Waits until the device is done with what has been given to it so far. False: there is no device any more.
  bool drained();
  // With lock_ held and no device any more.
  void take_up(core::SlotIndex slot);
  // Rings the doorbell with a command and waits until it is carried out. False: there is no device any more.
  template <typename Ring>
  bool carried_out(const Ring& ring, bool wait);
  // True while the device works; if it does not, it has been taken over from when this returns.
  bool works();
  void take_over(const Error& why);

  const DeviceKind kind_;
  const Halves halves_;
  std::unique_ptr<Device> device_;
  std::vector<Channel> channels_;
  std::deque<core::ReceiveWorker> workers_;  // one a channel; never moved
  mutable std::mutex lock_;
  std::vector<Use> uses_;  // by slot
  std::optional<Error> failure_;
  std::atomic<bool> failed_{false};
  TimePoint looked_at_{};
  std::uint64_t packets_sent_ = 0;
  std::deque<sdk::SendExtent> commanded_;  // and not all sent yet
  std::uint64_t sent_of_first_ = 0;        // packets of the first of them
};

}  // namespace sdr::offload

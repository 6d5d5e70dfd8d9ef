// EmulatedLinkEndpoint: an endpoint whose packets and control datagrams pass an emulated link on the way out.
//
// write() and send_control() ask the link model, copy what survives into pooled buffers and queue it by its arrival.
// advance() hands what is due to the inner endpoint, in batches; so do write() and send_control() on the way, and
// receive_control(). What the inner endpoint does not take stays first in line. The receiving side is the inner
// endpoint's own.
//
// Memory: write() takes no more once what is under way reaches all that the link can hold (rate times the longest
// delay, plus kSlack; 256 MiB without a rate), or 1 GiB of buffers. A queue that overflows before that drops, as links
// do.
//
// Threads: as the contract; poll() goes straight to the inner endpoint and never sends, because only the driving thread
// may write. Who ends must drive the endpoint until next_event() is kNever, or what is under way is lost with it.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "simulation/arrival_queue.hpp"
#include "simulation/buffer_pool.hpp"
#include "simulation/link_model.hpp"
#include "transport/transport.hpp"

namespace sdr::transport {

class EmulatedLinkEndpoint final : public Endpoint {
 public:
  EmulatedLinkEndpoint(std::unique_ptr<Endpoint> inner, const simulation::LinkModel& model, std::uint16_t payload);

  [[nodiscard]] const EndpointFacts& facts() const override { return facts_; }
  [[nodiscard]] EndpointCounters counters() const override;
  [[nodiscard]] std::vector<std::byte> info() const override { return inner_->info(); }
  Result<void> connect(std::span<const std::byte> remote_info) override;
  [[nodiscard]] std::string peer_name() const override { return inner_->peer_name(); }

  Result<Aim> expose(core::SlotIndex slot, core::Generation generation, std::span<std::byte> buffer) override {
    return inner_->expose(slot, generation, buffer);
  }
  void retract(core::SlotIndex slot) override { inner_->retract(slot); }
  std::size_t poll(core::ChannelIndex channel, std::span<core::Completion> out, TimePoint now) override {
    return inner_->poll(channel, out, now);
  }

  std::size_t write(std::span<const Packet> packets, TimePoint now) override;
  [[nodiscard]] std::uint64_t writes_finished() const override { return taken_.load(std::memory_order_relaxed); }
  bool send_control(std::span<const std::byte> datagram, TimePoint now) override;
  std::optional<std::size_t> receive_control(std::span<std::byte> into, TimePoint now) override;

  void advance(TimePoint now) override;
  [[nodiscard]] int channel_fd(core::ChannelIndex channel) const override { return inner_->channel_fd(channel); }
  [[nodiscard]] int control_fd() const override { return inner_->control_fd(); }
  [[nodiscard]] TimePoint next_event() const override;

  [[nodiscard]] const simulation::LinkCounts& link_counts() const { return model_.counts(); }

 private:
  using Handle = simulation::BufferPool::Handle;
  static constexpr std::size_t kBatch = 64;

  // A packet or a datagram under way. Its buffer starts with the aim, where the inner endpoint's aims are not empty.
  struct Item {
    std::uint32_t immediate;
    Handle buffer;
    std::uint16_t length;
    std::uint8_t generation;
    std::uint8_t channel;
    bool control;
    bool aimed;
  };

  void carry(Item item, const std::byte* bytes, const Aim* aim, TimePoint now);
  void enqueue(Item item, const std::byte* bytes, const Aim* aim, TimePoint at, bool late);
  [[nodiscard]] bool full() const;

  // Hands over what is due, as far as the inner endpoint takes it.
  void flush(TimePoint now);
  void refill(TimePoint now);
  std::size_t hand_over_packets(TimePoint now);
  void hand_over_control(TimePoint now);
  void leave(const Item& item);
  void reclaim();

  std::unique_ptr<Endpoint> inner_;
  simulation::LinkModel model_;
  EndpointFacts facts_;
  std::size_t aim_room_;  // at the start of each buffer
  std::uint64_t capacity_;
  bool connected_ = false;

  simulation::BufferPool pool_;
  simulation::ArrivalQueue<Item> queue_;
  std::array<Item, kBatch> batch_;  // due, not yet taken by the inner endpoint: from batch_begin_ to batch_end_
  std::size_t batch_begin_ = 0;
  std::size_t batch_end_ = 0;
  TimePoint retry_at_{};          // after the inner endpoint has refused
  std::uint64_t wire_bytes_ = 0;  // under way, headers included

  // Buffers that a zero-copy inner endpoint still reads, oldest first (all queued at the same time: a plain FIFO).
  simulation::ArrivalQueue<Handle> being_read_;
  std::uint64_t reclaimed_ = 0;

  std::atomic<std::uint64_t> taken_{0};
  std::atomic<std::uint64_t> dropped_by_link_{0};
  std::atomic<std::uint64_t> dropped_by_host_{0};
};

}  // namespace sdr::transport

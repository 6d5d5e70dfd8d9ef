// VerbsSender: the sending side of an endpoint: one RDMA Write with immediate a packet, over all its UC queue pairs.
//
// Model: packets taken are numbered. Each takes the next place in a ring, which is as deep as one queue pair's send
// queue, so that no queue pair can overflow. Packets for one queue pair in a row are posted as one chain, of which the
// last is signalled; its completion finishes all before it on that queue pair. finished() counts from the front of the
// ring. Payload is read where it lies if that is registered memory; small ones go inline with the request; others are
// copied into the place's own registered buffer first.
//
// A packet that its aim is not for, or that would reach past the buffer, is lost here: some NICs would place it.
//
// Threads: the one that drives the endpoint.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "transport/transport.hpp"
#include "transport/verbs_memory.hpp"
#include "transport/verbs_queue_pair.hpp"
#include "transport/verbs_wire.hpp"

namespace sdr::transport {

class VerbsSender {
 public:
  // Packets in flight: more than a receive queue takes, so that on a path within one machine the landing window is full
  // before this is, and nobody has to ask again and again.
  static constexpr std::uint32_t kDepth = 1024;
  static constexpr std::uint32_t kChain = 64;    // packets posted at a time
  static constexpr std::uint32_t kInline = 128;  // bytes that ride in the request, where the device can

  static Result<std::unique_ptr<VerbsSender>> make(const VerbsPort& port, std::shared_ptr<VerbsMemory> memory,
                                                   const EndpointOptions& options, ibv_cq* completions);

  // Queue pairs by channel and generation, in that order; all of them before the first write().
  void add(UcQueuePair& queue_pair) { lines_.push_back({.queue_pair = &queue_pair}); }

  std::size_t write(std::span<const Packet> packets);
  // Looks at the completions; how many there were.
  std::size_t reap();
  // Queue pair `line` has been reset: nothing of it is in flight any more.
  void forget(std::size_t line);

  [[nodiscard]] bool idle() const { return head_ == next_; }
  [[nodiscard]] std::uint64_t finished() const { return head_; }
  void add_counters(EndpointCounters& sum) const;

 private:
  static constexpr std::uint64_t kNone = ~std::uint64_t{0};

  // A queue pair, and its packets in flight: a list through the ring.
  struct Line {
    UcQueuePair* queue_pair = nullptr;
    std::uint64_t first = kNone;
    std::uint64_t last = kNone;
  };
  struct Place {
    std::uint64_t next_of_line = kNone;
    std::uint32_t line = 0;
    bool finished = true;
  };
  // What of the packets in one write() stays the same from one to the next.
  struct Batch {
    VerbsMemory::View memory;
    const Aim* aim = nullptr;
    verbs_wire::Target target;
  };
  // A number with one writer, read from any thread.
  using Count = std::atomic<std::uint64_t>;
  static void add(Count& count, std::uint64_t n) {
    count.store(count.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  }

  VerbsSender(std::shared_ptr<VerbsMemory> memory, const EndpointOptions& options, ibv_cq* completions)
      : memory_(std::move(memory)), options_(options), completions_(completions), ring_(kDepth) {}
  Place& place(std::uint64_t number) { return ring_[number % kDepth]; }
  [[nodiscard]] std::size_t line_of(const Packet& packet) const {
    return std::size_t{packet.channel.value} * options_.generations + packet.generation.value;
  }
  std::size_t post_run(std::span<const Packet> packets, Batch& batch);
  bool aimed(const Packet& packet, Batch& batch);
  void fill(ibv_send_wr& request, ibv_sge& part, const Packet& packet, std::uint32_t inline_bytes, Batch& batch);
  void append(std::size_t line, std::uint64_t number);
  void finish_up_to(Line& line, std::uint64_t number);
  void advance_head();

  std::shared_ptr<VerbsMemory> memory_;
  EndpointOptions options_;
  ibv_cq* completions_;
  std::vector<std::byte> copies_;  // a payload for each place
  VerbsRegion copies_region_;
  std::vector<Line> lines_;
  std::vector<Place> ring_;
  std::uint64_t head_ = 0;  // all before it are finished
  std::uint64_t next_ = 0;
  Count sent_{0}, lost_{0}, out_of_range_{0}, not_exposed_{0}, posts_{0};
};

}  // namespace sdr::transport

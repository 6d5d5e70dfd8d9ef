// VerbsChannel: the receiving side of one channel: a UC queue pair for each generation, all completing into one queue.
//
// The generation of a packet is which queue pair it came in on (paper section 3.2.2). Completions are polled in
// batches, held against the exposures, and handed on as core::Completion; used-up receive requests are replaced in
// batches.
//
// Threads: poll() one at a time, beside reconnect() on another. The mutex between them is taken once a batch, and is
// contended only while a failed queue pair is being connected again.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "core/completion.hpp"
#include "transport/verbs_events.hpp"
#include "transport/verbs_exposures.hpp"
#include "transport/verbs_queue_pair.hpp"

namespace sdr::transport {

class VerbsChannel {
 public:
  // Receives that may be waiting on one queue pair before packets are dropped, and entries of the completion queue,
  // within what the device has.
  static std::uint32_t receive_depth(const VerbsPort& port, std::uint8_t generations);

  static Result<std::unique_ptr<VerbsChannel>> make(const VerbsPort& port, const EndpointOptions& options,
                                                    std::uint8_t channel, ibv_cq* send,
                                                    const UcQueuePair::Depths& depths, const VerbsExposures& exposures);

  [[nodiscard]] int fd() const { return events_.fd(); }
  [[nodiscard]] UcQueuePair& queue_pair(core::Generation generation) { return *queue_pairs_[generation.value]; }
  Result<void> connect(const VerbsPort& port, const VerbsPath& path, core::Generation generation,
                       std::uint32_t peer_qpn);

  std::size_t poll(std::span<core::Completion> out);
  void add_counters(EndpointCounters& sum) const;

 private:
  // A number with one writer, who needs no atomic addition.
  class Count {
   public:
    void add(std::uint64_t n) { value_.store(get() + n, std::memory_order_relaxed); }
    [[nodiscard]] std::uint64_t get() const { return value_.load(std::memory_order_relaxed); }

   private:
    std::atomic<std::uint64_t> value_{0};
  };

  VerbsChannel(VerbsEvents events, const EndpointOptions& options, std::uint8_t channel,
               const VerbsExposures& exposures)
      : events_(std::move(events)), options_(options), channel_(channel), exposures_(exposures) {}
  [[nodiscard]] std::uint8_t generation_of(std::uint32_t qpn) const;
  bool accept(const ibv_wc& from, core::Completion& out);

  VerbsEvents events_;
  EndpointOptions options_;
  std::uint8_t channel_;
  const VerbsExposures& exposures_;
  bool busy_ = false;  // the last poll() found something
  std::mutex mutex_;   // guards the receive side of the queue pairs
  std::unique_ptr<WakingQueue> completions_;
  std::vector<std::unique_ptr<UcQueuePair>> queue_pairs_;                          // by generation
  std::vector<std::pair<std::uint32_t, std::uint8_t>> by_number_;                  // sorted: QPN, generation
  Count received_, bytes_, malformed_, out_of_range_, not_exposed_, event_looks_;  // written by the thread that polls
};

}  // namespace sdr::transport

// ProbeWay: the way out of one end of `sdr probe`: its sockets, or an emulated link before them.
//
// With a link, each packet is handed to one LinkModel, whichever flow it is of: the flows share the link. What survives
// is copied and sent when it is due; advance() does that. The emulator is the wire, so a link's packet is taken even
// when it will be lost, and one that the host has no room for when it is due waits. Memory: kMostWaiting; beyond that
// nothing is taken.
//
// Threads: one. Time comes in as an argument.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "sdr/probe_sockets.hpp"
#include "simulation/arrival_queue.hpp"
#include "simulation/buffer_pool.hpp"
#include "simulation/link_model.hpp"

namespace sdr::cli {

class ProbeWay {
 public:
  static constexpr std::size_t kMostWaiting = std::size_t{512} << 20;

  // No link: `spec` is empty. `largest` is that of a datagram, `overhead` what IP and UDP add to one.
  ProbeWay(ProbeSockets& sockets, const std::optional<simulation::LinkSpec>& spec, simulation::Direction direction,
           std::uint32_t largest, std::uint32_t overhead);

  // How many packets of the front of the batch were taken.
  std::size_t send(std::size_t socket, const transport::SegmentBatch& batch, TimePoint now);
  void advance(TimePoint now);
  // When advance() has something to do; kNever without a link.
  [[nodiscard]] TimePoint next_event() const;

 private:
  struct Item {
    simulation::BufferPool::Handle buffer;
    std::uint32_t length;
    std::uint32_t socket;
  };

  ProbeSockets& sockets_;
  std::optional<simulation::LinkModel> model_;
  std::uint32_t overhead_;
  simulation::BufferPool pool_;
  simulation::ArrivalQueue<Item> queue_;
  TimePoint retry_at_{};  // after the host had no room
};

}  // namespace sdr::cli

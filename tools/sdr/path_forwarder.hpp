// PathForwarder: carries packets between two TUN devices as two PathModels say, in real time. The thin shell around
// src/simulation/path_model.hpp.
//
// A packet's time of arrival is when it is read here. It is written to the other end at the time that the model says,
// or as soon after that as this program gets to it: that lateness is measured for every packet, since it is what makes
// the emulated path another one than was asked for. Nothing is ever early.
//
// What the kernel hands over in one piece is cut into packets at once, and each has its own fate; those that are due at
// the same look, neighbours in one flow, are handed to the other end as one piece, as a NIC with receive offload does.
// That is less work for both ends' kernels, and changes no packet's fate or time.
//
// Memory: one buffer of an MTU a packet under way, at most kMostBuffered bytes; what comes beyond that is dropped and
// counted. No allocation in the steady state. One thread.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "runtime/sleeper.hpp"
#include "sdr/emulate_ends.hpp"
#include "sdr/segment_offload.hpp"
#include "sdr/units.hpp"
#include "simulation/buffer_pool.hpp"
#include "simulation/path_model.hpp"

namespace sdr::cli {

// How late packets were written.
struct Lateness {
  Duration limit{0};
  Duration most{0};
  Duration sum{0};
  std::uint64_t packets = 0;
  std::uint64_t beyond_limit = 0;
};

struct ForwardCounts {
  simulation::PathCounts path;
  Lateness late;
  std::uint64_t not_routable = 0;  // link-local and multicast
  std::uint64_t no_memory = 0;
  std::uint64_t refused = 0;  // by the receiving end's kernel
};

class PathForwarder {
 public:
  static constexpr std::size_t kMostBuffered = std::size_t{1} << 30;

  // The ends outlive it. `late_limit`: what is later counts as beyond_limit.
  PathForwarder(EmulatedEnds& ends, const simulation::PathSpec& spec, Duration late_limit, TimePoint start);

  enum class Worked : std::uint8_t {
    Nothing,
    Some,  // all that there was
    More,  // a turn's worth; there is more
  };
  // Carries what there is to carry, a turn of each end.
  Worked work();
  // When there will be something by itself.
  [[nodiscard]] TimePoint next() const;

  // Of what `from` sends.
  [[nodiscard]] ForwardCounts counts(std::size_t from) const;

 private:
  struct Way {
    Way(const simulation::PathSpec& spec, simulation::Direction direction, TimePoint start)
        : model(spec, direction, start) {}
    simulation::PathModel model;
    ForwardCounts counts;
  };

  Worked read_from(std::size_t end);
  Worked write_to_peer_of(std::size_t end);
  void accept(Way& way, simulation::BufferPool::Handle handle, std::size_t bytes, TimePoint now);
  void send(Way& way, TunDevice& tun);
  // A buffer: where the checksum is to be filled in, then the packet.
  [[nodiscard]] std::span<std::byte> packet_room(simulation::BufferPool::Handle handle) {
    return {buffers_.data(handle) + sizeof(PartialChecksum), mtu_};
  }

  EmulatedEnds& ends_;
  std::size_t mtu_;
  simulation::BufferPool buffers_;
  std::vector<std::byte> piece_;  // as it is read
  Train train_;
  std::vector<simulation::BufferPool::Handle> in_train_;  // to be given back when it has been sent
  std::array<Way, 2> ways_;
};

}  // namespace sdr::cli

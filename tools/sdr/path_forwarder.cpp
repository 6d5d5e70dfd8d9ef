#include "sdr/path_forwarder.hpp"

#include <algorithm>

#include "runtime/clock.hpp"
#include "sdr/ip_packet.hpp"

namespace sdr::cli {
namespace {

using simulation::BufferPool;
using simulation::Direction;
using simulation::PathModel;

// Packets of one end before the other has its turn.
constexpr int kTurn = 32;

}  // namespace

PathForwarder::PathForwarder(EmulatedEnds& ends, const simulation::PathSpec& spec, Duration late_limit, TimePoint start)
    : ends_(ends),
      buffer_bytes_((std::size_t{spec.link.mtu} + 63) / 64 * 64),
      buffers_(buffer_bytes_),
      ways_{Way(spec, Direction::Forward, start), Way(spec, Direction::Backward, start)} {
  for (Way& way : ways_) way.counts.late.limit = late_limit;
}

PathForwarder::Worked PathForwarder::work() {
  Worked worked = Worked::Nothing;
  for (const std::size_t end : {EmulatedEnds::kLeft, EmulatedEnds::kRight}) {
    worked = std::max(worked, read_from(end));
    worked = std::max(worked, write_to_peer_of(end));
  }
  return worked;
}

TimePoint PathForwarder::next() const {
  return std::min(ways_[0].model.next(), ways_[1].model.next());
}

ForwardCounts PathForwarder::counts(std::size_t from) const {
  ForwardCounts counts = ways_[from].counts;
  counts.path = ways_[from].model.counts();
  return counts;
}

PathForwarder::Worked PathForwarder::read_from(std::size_t end) {
  Way& way = ways_[end];
  for (int i = 0; i < kTurn; ++i) {
    const BufferPool::Handle handle = buffers_.take();
    const std::size_t bytes = ends_.end[end].tun.read({buffers_.data(handle), buffer_bytes_});
    if (bytes == 0) {
      buffers_.give_back(handle);
      return i > 0 ? Worked::Some : Worked::Nothing;
    }
    // After it was read: a time from before would be too early if this thread lost its core in between.
    accept(way, handle, bytes, runtime::now());
  }
  return Worked::More;
}

void PathForwarder::accept(Way& way, BufferPool::Handle handle, std::size_t bytes, TimePoint now) {
  const IpPacket packet({buffers_.data(handle), bytes});
  bool accepted = false;
  if (!packet.routable()) {
    ++way.counts.not_routable;
  } else if (buffers_.bytes_in_use() > kMostBuffered) {
    ++way.counts.no_memory;
  } else {
    accepted = way.model.offer(handle, static_cast<std::uint32_t>(bytes), packet.ecn_capable(), now);
  }
  if (!accepted) buffers_.give_back(handle);
}

PathForwarder::Worked PathForwarder::write_to_peer_of(std::size_t end) {
  Way& way = ways_[end];
  TunDevice& tun = ends_.end[1 - end].tun;
  int written = 0;
  for (; written < kTurn; ++written) {
    const TimePoint now = runtime::now();
    const PathModel::Arrival* arrival = way.model.due(now);
    if (arrival == nullptr) break;
    const std::span<std::byte> bytes(buffers_.data(arrival->handle), arrival->bytes);
    if (arrival->marked) IpPacket(bytes).mark();
    if (!tun.write(bytes)) ++way.counts.refused;
    Lateness& late = way.counts.late;
    const Duration by = now - arrival->at;
    late.most = std::max(late.most, by);
    late.sum += by;
    ++late.packets;
    if (by > late.limit) ++late.beyond_limit;
    if (arrival->last) buffers_.give_back(arrival->handle);
    way.model.pop();
  }
  for (const std::uint32_t handle : way.model.dropped()) buffers_.give_back(handle);
  way.model.clear_dropped();
  if (written == kTurn) return Worked::More;
  return written > 0 ? Worked::Some : Worked::Nothing;
}

}  // namespace sdr::cli

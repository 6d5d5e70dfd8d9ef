#include "sdr/path_forwarder.hpp"

#include <algorithm>
#include <cstring>

#include "runtime/clock.hpp"
#include "sdr/ip_packet.hpp"

namespace sdr::cli {
namespace {

using simulation::BufferPool;
using simulation::Direction;
using simulation::PathModel;

// Packets of one end before the other has its turn.
constexpr int kTurn = 64;

}  // namespace

PathForwarder::PathForwarder(EmulatedEnds& ends, const simulation::PathSpec& spec, Duration late_limit, TimePoint start)
    : ends_(ends),
      mtu_(spec.link.mtu),
      buffers_((sizeof(PartialChecksum) + mtu_ + 63) / 64 * 64),
      piece_(TunDevice::kMostBytes),
      ways_{Way(spec, Direction::Forward, start), Way(spec, Direction::Backward, start)} {
  for (Way& way : ways_) way.counts.late.limit = late_limit;
  in_train_.reserve(Train::kMostPackets);
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
    VirtioHeader header;
    const std::size_t bytes = ends_.end[end].tun.read(header, piece_);
    if (bytes == 0) return i > 0 ? Worked::Some : Worked::Nothing;
    // After it was read: a time from before would be too early if this thread lost its core in between.
    const TimePoint now = runtime::now();
    SegmentCutter cutter(header, std::span(piece_).first(bytes));
    for (;;) {
      const BufferPool::Handle handle = buffers_.take();
      const std::size_t length = cutter.next(packet_room(handle));
      if (length == 0) {
        buffers_.give_back(handle);
        break;
      }
      const PartialChecksum checksum = cutter.checksum();
      std::memcpy(buffers_.data(handle), &checksum, sizeof checksum);
      accept(way, handle, length, now);
    }
  }
  return Worked::More;
}

void PathForwarder::accept(Way& way, BufferPool::Handle handle, std::size_t bytes, TimePoint now) {
  const IpPacket packet(packet_room(handle).first(bytes));
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
  const TimePoint now = runtime::now();
  for (; written < kTurn; ++written) {
    const PathModel::Arrival* arrival = way.model.due(now);
    if (arrival == nullptr) break;
    const std::span<std::byte> bytes = packet_room(arrival->handle).first(arrival->bytes);
    if (arrival->marked) IpPacket(bytes).mark();
    PartialChecksum checksum;
    std::memcpy(&checksum, buffers_.data(arrival->handle), sizeof checksum);
    if (!train_.add(bytes, checksum)) {
      send(way, tun);
      (void)train_.add(bytes, checksum);
    }
    Lateness& late = way.counts.late;
    const Duration by = now - arrival->at;
    late.most = std::max(late.most, by);
    late.sum += by;
    ++late.packets;
    if (by > late.limit) ++late.beyond_limit;
    if (arrival->last) in_train_.push_back(arrival->handle);
    way.model.pop();
  }
  send(way, tun);
  for (const std::uint32_t handle : way.model.dropped()) buffers_.give_back(handle);
  way.model.clear_dropped();
  if (written == kTurn) return Worked::More;
  return written > 0 ? Worked::Some : Worked::Nothing;
}

void PathForwarder::send(Way& way, TunDevice& tun) {
  if (train_.empty()) return;
  if (!tun.write(train_.parts())) way.counts.refused += train_.count();
  train_.clear();
  for (const BufferPool::Handle handle : in_train_) buffers_.give_back(handle);
  in_train_.clear();
}

}  // namespace sdr::cli

#include "transport/verbs_sender.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace sdr::transport {

Result<std::unique_ptr<VerbsSender>> VerbsSender::make(const VerbsPort& port, std::shared_ptr<VerbsMemory> memory,
                                                       const EndpointOptions& options, ibv_cq* completions) {
  std::unique_ptr<VerbsSender> made(new VerbsSender(std::move(memory), options, completions));
  made->copies_.resize(std::size_t{kDepth} * options.payload);
  auto region = VerbsRegion::make(port, made->copies_, IBV_ACCESS_LOCAL_WRITE);
  if (!region) return region.error();
  made->copies_region_ = std::move(region).value();
  return made;
}

std::size_t VerbsSender::write(std::span<const Packet> packets) {
  if (lines_.empty()) return 0;
  Batch batch{.memory = VerbsMemory::View(*memory_)};
  std::size_t taken = 0;
  while (taken < packets.size()) {
    if (next_ - head_ == kDepth && (reap() == 0 || next_ - head_ == kDepth)) break;
    taken += post_run(packets.subspan(taken), batch);
  }
  advance_head();
  return taken;
}

// Posts the packets at the front that go over one queue pair; how many.
std::size_t VerbsSender::post_run(std::span<const Packet> packets, Batch& batch) {
  const std::size_t line = line_of(packets.front());
  UcQueuePair& queue_pair = *lines_[line].queue_pair;
  std::array<ibv_send_wr, kChain> requests;
  std::array<ibv_sge, kChain> parts;
  std::size_t taken = 0;
  std::size_t posted = 0;
  while (taken < packets.size() && posted < kChain && next_ - head_ < kDepth) {
    const Packet& packet = packets[taken];
    if (line_of(packet) != line) break;
    place(next_) = {.line = static_cast<std::uint32_t>(line)};
    if (queue_pair.failed()) {
      add(lost_, 1);
    } else if (aimed(packet, batch)) {
      fill(requests[posted], parts[posted], packet, queue_pair.inline_bytes(), batch);
      if (posted > 0) requests[posted - 1].next = &requests[posted];
      ++posted;
    }
    ++taken;
    ++next_;
  }
  if (posted == 0) return taken;
  requests[posted - 1].send_flags |= IBV_SEND_SIGNALED;
  ibv_send_wr* refused = nullptr;
  add(posts_, 1);
  const bool whole = ibv_post_send(queue_pair.get(), requests.data(), &refused) == 0;
  if (!whole) queue_pair.fail(IBV_WC_GENERAL_ERR);
  for (std::size_t i = 0; i < posted; ++i) {
    if (!whole && &requests[i] == refused) {
      add(lost_, posted - i);
      break;
    }
    append(line, requests[i].wr_id);
    add(sent_, 1);
  }
  return taken;
}

bool VerbsSender::aimed(const Packet& packet, Batch& batch) {
  if (packet.aim != batch.aim || batch.aim == nullptr) {
    batch.aim = packet.aim;
    batch.target = packet.aim == nullptr ? verbs_wire::Target{} : verbs_wire::decode_aim(*packet.aim);
  }
  const core::Immediate where = options_.layout.decode(packet.immediate);
  if (packet.aim == nullptr || batch.target.tag != verbs_wire::tag_of(where.slot, packet.generation)) {
    add(not_exposed_, 1);
    return false;
  }
  const std::uint64_t begin = std::uint64_t{where.offset.value} * options_.payload;
  if (packet.length == 0 || begin + packet.length <= batch.target.length) return true;
  add(out_of_range_, 1);
  return false;
}

void VerbsSender::fill(ibv_send_wr& request, ibv_sge& part, const Packet& packet, std::uint32_t inline_bytes,
                       Batch& batch) {
  request = {};
  request.wr_id = next_;
  request.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
  request.imm_data = htonl(packet.immediate);
  request.wr.rdma = {.remote_addr = batch.target.address, .rkey = batch.target.rkey};
  if (packet.length == 0) return;
  const core::Immediate where = options_.layout.decode(packet.immediate);
  request.wr.rdma.remote_addr += std::uint64_t{where.offset.value} * options_.payload;
  request.sg_list = &part;
  request.num_sge = 1;
  part.length = packet.length;
  if (packet.length <= inline_bytes) {
    request.send_flags = IBV_SEND_INLINE;
    part.addr = reinterpret_cast<std::uintptr_t>(packet.local);
    part.lkey = 0;
  } else if (const VerbsRegion* region = batch.memory.find(packet.local, packet.length)) {
    part.addr = region->address_of(packet.local);
    part.lkey = region->region->lkey;
  } else {
    std::byte* const copy = &copies_[next_ % kDepth * options_.payload];
    std::memcpy(copy, packet.local, packet.length);
    part.addr = copies_region_.address_of(copy);
    part.lkey = copies_region_.region->lkey;
  }
}

void VerbsSender::append(std::size_t line, std::uint64_t number) {
  place(number).finished = false;
  Line& to = lines_[line];
  if (to.first == kNone) {
    to.first = number;
  } else {
    place(to.last).next_of_line = number;
  }
  to.last = number;
}

std::size_t VerbsSender::reap() {
  std::array<ibv_wc, kChain> batch;
  std::size_t total = 0;
  for (int got = 0; (got = ibv_poll_cq(completions_, static_cast<int>(batch.size()), batch.data())) > 0;) {
    total += static_cast<std::size_t>(got);
    for (const ibv_wc& done : std::span(batch).first(static_cast<std::size_t>(got))) {
      // One that was forgotten meanwhile has given its place to another packet, or to none.
      if (done.wr_id < head_ || place(done.wr_id).finished) continue;
      Line& line = lines_[place(done.wr_id).line];
      if (done.status != IBV_WC_SUCCESS) {
        line.queue_pair->fail(done.status);
        add(lost_, 1);
      }
      finish_up_to(line, done.wr_id);
    }
  }
  advance_head();
  return total;
}

void VerbsSender::finish_up_to(Line& line, std::uint64_t number) {
  while (line.first != kNone && line.first <= number) {
    Place& done = place(line.first);
    done.finished = true;
    line.first = done.next_of_line;
  }
}

void VerbsSender::forget(std::size_t line) {
  finish_up_to(lines_[line], kNone - 1);
  advance_head();
}

void VerbsSender::advance_head() {
  while (head_ != next_ && place(head_).finished) ++head_;
}

void VerbsSender::add_counters(EndpointCounters& sum) const {
  const auto get = [](const Count& count) { return count.load(std::memory_order_relaxed); };
  sum.packets_sent += get(sent_);
  sum.dropped_by_host += get(lost_);
  sum.dropped_out_of_range += get(out_of_range_);
  sum.dropped_not_exposed += get(not_exposed_);
  sum.send_calls += get(posts_);
}

}  // namespace sdr::transport

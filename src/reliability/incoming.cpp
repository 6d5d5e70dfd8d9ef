#include "reliability/incoming.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace sdr::reliability {
namespace {

constexpr std::size_t kMaxEchoes = 16;
// Of larger chunks, and of more of them in one report, whole chunks are sent again.
constexpr std::uint32_t kMostHolePackets = 64;
constexpr std::size_t kMaxHoles = 512;
// Announced however large they are: one being filled, one behind it.
constexpr std::size_t kTransfersAheadAtLeast = 2;
// Final acknowledgements are repeated so often until the peer says that it has them; it may be gone.
constexpr int kConfirmations = 8;

}  // namespace

ReceiveHandle Incoming::post(std::span<std::byte> buffer) {
  receives_.push_back({.number = next_receive_, .buffer = buffer, .transfers = shape_.transfers_of(buffer.size())});
  return ReceiveHandle{next_receive_++};
}

std::optional<ReceiveCompletion> Incoming::poll() {
  if (completions_.empty()) return std::nullopt;
  ReceiveCompletion completion = std::move(completions_.front());
  completions_.pop_front();
  return completion;
}

bool Incoming::active() const {
  return std::any_of(receives_.begin(), receives_.end(),
                     [](const Receive& receive) { return receive.length.has_value(); });
}

Incoming::Receive* Incoming::find_receive(std::uint64_t number) {
  const auto at = std::lower_bound(receives_.begin(), receives_.end(), number,
                                   [](const Receive& receive, std::uint64_t n) { return receive.number < n; });
  return at != receives_.end() && at->number == number ? &*at : nullptr;
}

// --- announcing ---

Result<void> Incoming::announce() {
  Result<void> announced;
  while (announced) {
    if (parity_to_announce_) {
      announced = announce_parity();
      continue;
    }
    const auto next = std::find_if(receives_.begin(), receives_.end(),
                                   [](const Receive& receive) { return receive.announced < receive.transfers; });
    if (next == receives_.end()) return {};
    if (first_transfer_ + transfers_.size() >= peer_position_ + transfers_ahead_most_) return {};
    if (announced_bytes_ >= posted_ahead_ && transfers_.size() >= kTransfersAheadAtLeast) return {};
    announced = announce_data(*next);
  }
  // No slot: one comes free with the next completion.
  return announced.error().code == ErrorCode::Retry ? Result<void>() : announced;
}

std::span<std::byte> Incoming::part_of(const Receive& receive, std::uint64_t index) const {
  const std::uint64_t from = std::min<std::uint64_t>(index * shape_.transfer_bytes, receive.buffer.size());
  return receive.buffer.subspan(from, std::min(shape_.transfer_bytes, receive.buffer.size() - from));
}

Result<void> Incoming::announce_data(Receive& receive) {
  const std::span<std::byte> part = part_of(receive, receive.announced);
  const auto left = static_cast<std::uint64_t>(receive.buffer.data() + receive.buffer.size() - part.data());
  const Result<RecvHandle> posted = queue_pair_.post_receive(part, left);
  if (!posted) return posted.error();
  Transfer transfer;
  transfer.receive = receive.number;
  transfer.index = receive.announced++;
  transfer.receiver = std::make_unique<TransferReceiver>(first_transfer_ + transfers_.size(), part, shape_);
  transfer.data = *posted;
  transfers_.push_back(std::move(transfer));
  announced_bytes_ += part.size();
  parity_to_announce_ = shape_.rules.coded();
  if (!parity_to_announce_ && receive.length) pass_over(receive);
  return {};
}

Result<void> Incoming::announce_parity() {
  Transfer& transfer = transfers_.back();
  Receive& receive = *find_receive(transfer.receive);
  const std::uint64_t bytes = shape_.parity_bytes(part_of(receive, transfer.index).size());
  if (shape_.carries_payload && transfer.scratch.bytes < bytes) {
    const auto fit = std::find_if(free_scratch_.begin(), free_scratch_.end(),
                                  [bytes](const Scratch& scratch) { return scratch.bytes >= bytes; });
    if (fit != free_scratch_.end()) {
      transfer.scratch = std::move(*fit);
      free_scratch_.erase(fit);
    } else {
      transfer.scratch = {std::make_unique_for_overwrite<std::byte[]>(bytes), bytes};
    }
  }
  const Result<RecvHandle> posted = queue_pair_.post_receive({transfer.scratch.memory.get(), bytes});
  if (!posted) return posted.error();
  transfer.parity = *posted;
  parity_to_announce_ = false;
  if (receive.length) pass_over(receive);
  return {};
}

// The Write ends before these transfers: nothing will come into them.
void Incoming::pass_over(const Receive& receive) {
  const std::uint64_t used = shape_.transfers_of(*receive.length);
  for (Transfer& transfer : transfers_) {
    if (transfer.receive != receive.number || transfer.index < used || transfer.done) continue;
    if (parity_to_announce_ && &transfer == &transfers_.back()) continue;
    close_messages(transfer);
    finish(transfer);
  }
}

// --- what the peer says ---

ReceiverTiming Incoming::receiver_timing(const Timing& timing) const {
  return {.tolerance = timing.tolerance(),
          .rtt = timing.rtt.smoothed(),
          .sender_rate = peer_rate_,
          .drained = queue_pair_.drained()};
}

Result<void> Incoming::handle(OffersReader offers, const Timing& timing, TimePoint now) {
  if (offers.header.stamp > echo_newest_.stamp) {
    const QueuePairCounters counters = queue_pair_.counters();
    echo_newest_ = {offers.header.stamp, now, packets_landed(counters), counters.congestion_marks};
    if (echoes_.size() == kMaxEchoes) echoes_.pop_back();  // keep the oldest: it settles first
    echoes_.push_back(echo_newest_);
    echo_is_fresh_ = !queue_pair_.local_path();
  }
  answer_due_ = answer_due_ || offers.header.question;
  peer_settled_ = std::max(peer_settled_, offers.header.settled_below);
  peer_position_ = std::max(peer_position_, peer_settled_);
  if (peer_settled_ >= first_transfer_) confirm_at_ = kNever;
  peer_rate_ = {static_cast<double>(offers.header.rate_bits)};
  while (const std::optional<Offer> offer = offers.next())
    if (Result<void> taken = take_offer(*offer, receiver_timing(timing), now); !taken) return taken;
  return {};
}

Result<void> Incoming::take_offer(const Offer& offer, const ReceiverTiming& timing, TimePoint now) {
  if (offer.transfer < first_transfer_) {
    answer_due_ = true;
    return {};
  }
  if (offer.transfer - first_transfer_ >= transfers_.size()) return {};  // older than what it answers; comes again
  peer_position_ = std::max(peer_position_, offer.transfer + 1);
  Transfer& transfer = transfers_[offer.transfer - first_transfer_];
  Receive* receive = find_receive(transfer.receive);
  if (receive == nullptr || transfer.done) {
    if (transfer.receiver) transfer.receiver->report_after(Duration::zero(), now);
    return {};
  }
  const std::uint64_t used = shape_.transfers_of(offer.write_length);
  const bool fits = offer.write == receive->number && offer.write_length <= receive->buffer.size() &&
                    offer.offset == transfer.index * shape_.transfer_bytes && transfer.index < used &&
                    (!receive->length || *receive->length == offer.write_length);
  if (!fits)
    return Error{ErrorCode::Protocol,
                 fmt::format("the peer offers bytes {} on of Write {} ({} bytes) for transfer {}, which is part {} of "
                             "receive {} ({} bytes)",
                             offer.offset, offer.write, offer.write_length, offer.transfer, transfer.index,
                             receive->number, receive->buffer.size())};
  if (!receive->length) {
    receive->length = offer.write_length;
    receive->immediate = offer.immediate;
    pass_over(*receive);
  }
  const std::uint64_t length = std::min(shape_.transfer_bytes, offer.write_length - offer.offset);
  if (!transfer.receiver->is_offered() && transfer.data) (void)queue_pair_.set_length(*transfer.data, {length});
  return begin_transfer(transfer, offer, length, timing, now);
}

Result<void> Incoming::begin_transfer(Transfer& transfer, const Offer& offer, std::uint64_t length,
                                      const ReceiverTiming& timing, TimePoint now) {
  const std::uint32_t chunks = shape_.chunks_of(length);
  CodingLayout layout = CodingLayout::uncoded(chunks);
  std::optional<coding::ErasureCode> code;
  if (!shape_.rules.adaptive() && shape_.code != nullptr) {
    code = *shape_.code;
    layout = CodingLayout(chunks, code->shape());
  } else if (shape_.rules.adaptive() && offer.code && !transfer.receiver->is_offered()) {
    const TailCode& tail = *offer.code;
    const std::uint64_t coded = tail.first < chunks ? chunks - tail.first : 0;
    const std::uint64_t room =
        shape_.adaptive_parity_most(shape_.chunks_of(part_of(*find_receive(transfer.receive), transfer.index).size()));
    const bool possible = tail.submessages >= 1 && tail.submessages <= coded && tail.parity_each >= 1 &&
                          (coded + tail.submessages - 1) / tail.submessages + tail.parity_each <= coding::kMaxShards &&
                          std::uint64_t{tail.submessages} * tail.parity_each <= room;
    if (!possible)
      return Error{
          ErrorCode::Protocol,
          fmt::format("the peer codes {} chunks from number {} on of transfer {} ({} chunks) in {} submessages "
                      "with {} parity chunks each; there is room for {}, and submessages have up to {} shards",
                      coded, tail.first, offer.transfer, chunks, tail.submessages, tail.parity_each, room,
                      coding::kMaxShards)};
    layout = CodingLayout(chunks, tail.first, tail.submessages, tail.parity_each);
    code = codes_.find(layout.longest(), layout.parity_each);
    if (!code) return Error{ErrorCode::System, "no memory for the tables of the erasure code"};
  }
  const std::uint64_t behind = shape_.rules.adaptive() ? offer.write_length - offer.offset - length : 0;
  transfer.receiver->offered(length, behind, layout, code ? &*code : nullptr, offer.all_sent, now, timing);
  return {};
}

Result<void> Incoming::handle(RepairGroupsReader groups) {
  const RepairBlock& block = groups.header.block;
  const std::uint64_t number = groups.header.transfer;
  if (number < first_transfer_ || number - first_transfer_ >= transfers_.size()) return {};
  Transfer& transfer = transfers_[number - first_transfer_];
  // Before the offer, or after the end: it comes again, or is of no use.
  if (transfer.done || transfer.decoding || !transfer.receiver->is_offered()) return {};
  const std::uint64_t room =
      shape_.adaptive_parity_most(shape_.chunks_of(part_of(*find_receive(transfer.receive), transfer.index).size()));
  const bool possible = shape_.rules.adaptive() && block.data_each >= 1 && block.parity_each >= 1 &&
                        block.data_each + block.parity_each <= static_cast<int>(coding::kMaxShards) &&
                        block.groups >= 1 && block.parity_first % RepairBlock::kAlignment == 0 &&
                        block.parity_first >= transfer.receiver->tail_parity() && block.end() <= room;
  if (!possible)
    return Error{
        ErrorCode::Protocol,
        fmt::format("the peer codes repairs of transfer {} in {} groups of {} chunks with {} parity chunks each "
                    "from number {} on; there is room for {} behind the {} of the tail, and groups have up to "
                    "{} shards",
                    number, block.groups, block.data_each, block.parity_each, block.parity_first, room,
                    transfer.receiver->tail_parity(), coding::kMaxShards)};
  while (groups.next(group_)) {
    if (transfer.receiver->knows(block, group_.group)) continue;
    const std::optional<coding::ErasureCode> code = codes_.find(block.data_each, block.parity_each);
    if (!code) return Error{ErrorCode::System, "no memory for the tables of the erasure code"};
    if (Result<void> taken = transfer.receiver->named(block, group_, *code); !taken) return taken;
  }
  return {};
}

// --- completing ---

void Incoming::look(Transfer& transfer, const ReceiverTiming& timing, TimePoint now) {
  TransferReceiver& receiver = *transfer.receiver;
  if (!transfer.decoding) {
    const Result<ChunkBitmap> data = queue_pair_.chunk_bitmap(*transfer.data);
    ChunkBitmap parity;
    if (transfer.parity) parity = *queue_pair_.chunk_bitmap(*transfer.parity);
    receiver.look(*data, parity, now, timing);
    const bool parity_pending = parity_to_announce_ && &transfer == &transfers_.back();
    if (!receiver.has_all() || parity_pending) return;
    close_messages(transfer);
    if (receiver.needs_decoding()) receiver.decode({transfer.scratch.memory.get(), transfer.scratch.bytes}, executor_);
    transfer.decoding = true;
  }
  if (!receiver.decoded()) return;
  totals_.chunks_recovered += receiver.recovered();
  totals_.fallbacks += receiver.fell_back() ? 1U : 0U;
  finish(transfer);
  receiver.report_after(Duration::zero(), now);
}

void Incoming::close_messages(Transfer& transfer) {
  if (transfer.data) (void)queue_pair_.complete(*transfer.data);
  if (transfer.parity) (void)queue_pair_.complete(*transfer.parity);
  transfer.data.reset();
  transfer.parity.reset();
}

void Incoming::finish(Transfer& transfer) {
  transfer.done = true;
  if (transfer.scratch.memory) free_scratch_.push_back(std::move(transfer.scratch));
  if (Receive* receive = find_receive(transfer.receive)) {
    ++receive->done;
    announced_bytes_ -= part_of(*receive, transfer.index).size();
  }
}

void Incoming::retire(const Timing& timing, TimePoint now) {
  for (auto receive = receives_.begin(); receive != receives_.end() && receive->announced > 0;) {
    if (receive->done < receive->transfers) {
      ++receive;
      continue;
    }
    ++totals_.receives_completed;
    totals_.bytes_received += *receive->length;
    completions_.push_back(
        {.handle = {receive->number}, .length = *receive->length, .immediate = receive->immediate, .at = now});
    receive = receives_.erase(receive);
  }
  while (!transfers_.empty() && transfers_.front().done) {
    if (transfers_.front().receiver && transfers_.front().receiver->report_due() != kNever) answer_due_ = true;
    transfers_.pop_front();
    ++first_transfer_;
    confirmations_left_ = kConfirmations;
    repeats_left_ = timing.close_statements - 1;
    repeat_at_ = repeats_left_ > 0 ? now + timing.close_interval() : kNever;
    confirm_wait_ = std::clamp(timing.rtt.smoothed() * 5 / 4, timing.fastest_offer, kSlowestConfirmation);
    confirm_at_ = peer_settled_ < first_transfer_ ? now + confirm_wait_ : kNever;
  }
}

// Nobody asks for the last acknowledgement of all once it has come: it is repeated until the peer says so.
void Incoming::confirm(const Timing& timing, TimePoint now) {
  if (now >= repeat_at_) {
    answer_due_ = true;
    repeat_at_ = --repeats_left_ > 0 ? now + timing.close_interval() : kNever;
  }
  if (now < confirm_at_) return;
  answer_due_ = true;
  confirm_wait_ = std::min(confirm_wait_ * 2, kSlowestConfirmation);
  confirm_at_ = --confirmations_left_ > 0 ? now + confirm_wait_ : kNever;
}

Result<void> Incoming::drive(const Timing& timing, TimePoint now) {
  if (Result<void> announced = announce(); !announced) return announced;
  const ReceiverTiming times = receiver_timing(timing);
  for (Transfer& transfer : transfers_)
    if (!transfer.done && transfer.receiver->is_offered()) look(transfer, times, now);
  retire(timing, now);
  if (Result<void> announced = announce(); !announced) return announced;
  confirm(timing, now);
  return {};
}

// --- reporting ---

std::uint64_t Incoming::packets_landed(const QueuePairCounters& counters) {
  return counters.packets_received + counters.duplicate_packets + counters.late_packets + counters.out_of_range_packets;
}

bool Incoming::date_offers(TimePoint now) {
  if (!echo_is_fresh_) return false;
  echo_is_fresh_ = false;
  echo_newest_.arrived = now;  // not of echoes_: reports that name gaps are timed by when the offers were taken in
  return true;
}

void Incoming::settle_echo(Duration tolerance, TimePoint now) {
  if (!queue_pair_.drained()) return;  // what was sent before the offers may still wait to be taken
  while (!echoes_.empty() && echoes_.front().arrived + tolerance <= now) {
    echo_settled_ = echoes_.front().stamp;
    echoes_.pop_front();
  }
}

void Incoming::list_holes(const Transfer& transfer) {
  report_.holes.clear();
  const std::uint32_t packets = shape_.packets_per_chunk;
  if (packets == 1 || packets > kMostHolePackets || !transfer.data) return;
  const std::uint64_t all = ~std::uint64_t{0} >> (kMostHolePackets - packets);
  for (const ChunkRange& range : report_.missing)
    for (std::uint32_t chunk = range.first; chunk < range.first + range.count; ++chunk) {
      if (report_.holes.size() == kMaxHoles) return;
      const std::uint64_t here = queue_pair_.chunk_packets(*transfer.data, chunk).value() & all;
      if (here != 0 && here != all) report_.holes.push_back({chunk, all & ~here});
    }
}

bool Incoming::poll_reports(ByteWriter& writer, const Timing& timing, TimePoint now) {
  const bool due = std::any_of(transfers_.begin(), transfers_.end(), [now](const Transfer& transfer) {
    return transfer.receiver && transfer.receiver->report_due() <= now;
  });
  if (echo_is_fresh_ || (!due && !answer_due_)) return false;
  settle_echo(timing.tolerance(), now);
  write(writer, ReportsHeader{.echo = echo_settled_,
                              .echo_newest = echo_newest_.stamp,
                              .echo_held = static_cast<std::uint64_t>((now - echo_newest_.arrived).count()),
                              .completed_below = first_transfer_,
                              .packets_landed = echo_newest_.landed,
                              .arrival = to_stamp(echo_newest_.arrived),
                              .marks = echo_newest_.marks});
  answer_due_ = false;
  for (Transfer& transfer : transfers_) {
    if (!transfer.receiver || transfer.receiver->report_due() > now) continue;
    transfer.receiver->take_report(report_);
    if (transfer.done)
      report_ = {.transfer = transfer.receiver->transfer(),
                 .complete = true,
                 .lost = transfer.receiver->lost(),
                 .runs = transfer.receiver->loss_runs()};
    list_holes(transfer);
    const std::optional<std::uint32_t> horizon = append(writer, report_);
    if (!horizon) {
      transfer.receiver->report_after(Duration::zero(), now);  // the next datagram has room
      return true;
    }
    transfer.receiver->reported(*horizon, now);
  }
  return true;
}

TimePoint Incoming::next_timeout() const {
  TimePoint next = answer_due_ || echo_is_fresh_ ? TimePoint::min() : std::min(confirm_at_, repeat_at_);
  for (const Transfer& transfer : transfers_) {
    if (!transfer.receiver) continue;
    next = std::min(next, transfer.done ? transfer.receiver->report_due() : transfer.receiver->next_timeout());
    if (transfer.decoding && !transfer.done) next = TimePoint::min();  // look again: the executor does not wake us
  }
  return next;
}

void Incoming::fail(const Error& error, TimePoint now) {
  for (Transfer& transfer : transfers_) {
    close_messages(transfer);
    transfer.receiver.reset();  // waits for decoders that write user memory
  }
  transfers_.clear();
  for (const Receive& receive : receives_)
    completions_.push_back(
        {.handle = {receive.number}, .length = receive.length.value_or(0), .at = now, .error = error});
  receives_.clear();
}

std::optional<LandedPrefix> Incoming::landed_prefix() const {
  if (receives_.empty()) return std::nullopt;
  const Receive& oldest = receives_.front();
  LandedPrefix prefix{.handle = {oldest.number}};
  if (!oldest.length) return prefix;
  std::uint64_t whole = oldest.announced;  // transfers of it that are complete, if those before are
  for (const Transfer& transfer : transfers_)
    if (transfer.receive == oldest.number) whole = std::min(whole, transfer.index);
  for (const Transfer& transfer : transfers_) {
    if (transfer.receive != oldest.number || transfer.index != whole) continue;
    if (!transfer.done) {
      if (transfer.receiver && transfer.receiver->is_offered())
        prefix.bytes = transfer.receiver->bytes_landed_in_order();
      break;
    }
    ++whole;
  }
  prefix.bytes = std::min(prefix.bytes + whole * shape_.transfer_bytes, *oldest.length);
  return prefix;
}

std::uint64_t Incoming::bytes_landed() const {
  std::uint64_t bytes = totals_.bytes_received;
  for (const Receive& receive : receives_) {
    if (!receive.length) continue;
    // Transfers done count whole, the others as far as they have come. Those that have been retired are the first ones;
    // the last of a Write may be short.
    std::uint64_t retired = receive.announced;
    for (const Transfer& transfer : transfers_) {
      if (transfer.receive != receive.number) continue;
      --retired;
      const std::uint64_t from = std::min(transfer.index * shape_.transfer_bytes, *receive.length);
      if (transfer.done) bytes += std::min(shape_.transfer_bytes, *receive.length - from);
    }
    bytes += std::min(retired * shape_.transfer_bytes, *receive.length);
  }
  for (const Transfer& transfer : transfers_)
    if (transfer.receiver && !transfer.done && transfer.receiver->is_offered())
      bytes += transfer.receiver->bytes_landed();
  return bytes;
}

std::uint64_t Incoming::bytes_expected() const {
  std::uint64_t bytes = totals_.bytes_received;
  for (const Receive& receive : receives_) bytes += receive.length.value_or(0);
  return bytes;
}

void Incoming::add_to(ConnectionStatistics& statistics) const {
  statistics.receives_completed = totals_.receives_completed;
  statistics.bytes_received = totals_.bytes_received;
  statistics.chunks_recovered = totals_.chunks_recovered;
  statistics.fallbacks = totals_.fallbacks;
}

}  // namespace sdr::reliability

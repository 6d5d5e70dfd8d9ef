#include "reliability/outgoing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

namespace sdr::reliability {
WriteHandle Outgoing::post(std::span<const std::byte> data, std::optional<std::uint32_t> immediate) {
  writes_.push_back({.number = next_write_, .data = data, .immediate = immediate});
  bytes_to_cut_ += data.size();
  return WriteHandle{next_write_++};
}

std::optional<WriteCompletion> Outgoing::poll() {
  if (completions_.empty()) return std::nullopt;
  WriteCompletion completion = std::move(completions_.front());
  completions_.pop_front();
  return completion;
}

Outgoing::Write* Outgoing::find_write(std::uint64_t number) {
  const auto at = std::lower_bound(writes_.begin(), writes_.end(), number,
                                   [](const Write& write, std::uint64_t n) { return write.number < n; });
  return at != writes_.end() && at->number == number ? &*at : nullptr;
}

// --- starting transfers ---

Outgoing::Transfer* Outgoing::latest() {
  const bool open = latest_ >= first_transfer_ && latest_ - first_transfer_ < transfers_.size();
  return open ? &transfers_[latest_ - first_transfer_] : nullptr;
}

void Outgoing::start_transfers(const Timing& timing, TimePoint now) {
  for (;;) {
    const Transfer* const last = latest();
    const bool fresh_waits = last != nullptr && last->sender && last->sender->fresh_left() &&
                             !(last->sender->data_handed_out() && data_first(*last));
    if (parity_to_start_ || messages_to_pass_ > 0) {
      const Result<SendHandle> stream = queue_pair_.start_stream(std::nullopt);
      if (!stream) return;  // no CTS yet, or the slot is busy: it comes
      if (parity_to_start_) {
        latest()->parity = *stream;
        parity_to_start_ = false;
      } else {
        (void)queue_pair_.end_stream(*stream);
        if (--messages_to_pass_ % shape_.rules.messages_each() == 0) transfers_.push_back({.ended = true});
      }
      continue;
    }
    if (fresh_waits || !start_transfer(timing, now)) return;
  }
}

bool Outgoing::start_transfer(const Timing& timing, TimePoint now) {
  const auto next = std::find_if(writes_.begin(), writes_.end(), [](const Write& write) { return !write.cut; });
  if (next == writes_.end()) return false;
  const std::optional<Grant> grant = queue_pair_.next_grant();
  if (!grant) {
    queue_pair_.want_grant();
    return false;
  }
  Write& write = *next;
  if (write.started == 0 && write.data.size() > grant->tag) {
    refuse(next, grant->tag, now);
    return true;
  }
  const Result<SendHandle> stream = queue_pair_.start_stream(std::nullopt);
  if (!stream) return false;
  const std::uint64_t wanted = shape_.transfers_of(write.data.size());
  if (write.started == 0) {
    receive_transfers_ = shape_.transfers_of(grant->tag);
    write.receive = next_receive_++;
  }
  const std::uint64_t length = std::min<std::uint64_t>(shape_.transfer_bytes, write.data.size() - write.started);
  const TransferPlan plan{.transfer = first_transfer_ + transfers_.size(),
                          .write = write.receive,
                          .write_length = write.data.size(),
                          .offset = write.started,
                          .immediate = write.immediate,
                          .data = write.data.subspan(write.started, length),
                          .chunk_bytes = shape_.chunk_bytes,
                          .carries_payload = shape_.carries_payload};
  Transfer transfer;
  transfer.sender = make_sender(plan, write, timing);
  transfer.write = write.number;
  transfer.data = *stream;
  transfers_.push_back(std::move(transfer));
  latest_ = plan.transfer;
  parity_to_start_ = shape_.rules.coded();
  write.started += length;
  bytes_to_cut_ -= length;
  ++write.transfers_open;
  if (write.started == write.data.size()) {
    write.cut = true;
    const std::uint64_t passed = receive_transfers_ - wanted;
    messages_to_pass_ = passed * shape_.rules.messages_each();
  }
  return true;
}

std::unique_ptr<TransferSender> Outgoing::make_sender(TransferPlan plan, const Write& write, const Timing& timing) {
  if (!shape_.rules.adaptive()) {
    const std::uint32_t chunks = shape_.chunks_of(plan.data.size());
    plan.layout = shape_.code == nullptr ? CodingLayout::uncoded(chunks) : CodingLayout(chunks, shape_.code->shape());
    return std::make_unique<TransferSender>(plan, shape_.rules, shape_.code, executor_);
  }
  tail_.assume(link_.estimate(), path_rate(), timing);
  // What is lost of the last round trip is repaired while others' data goes.
  const bool alone = write.number + 1 == next_write_;
  const bool hidden = hides_repairs(write);
  // Between two ends on one machine there is nothing that loses at random, and parity takes the time of the copies.
  plan.layout = queue_pair_.local_path() || hidden
                    ? CodingLayout::uncoded(shape_.chunks_of(plan.data.size()))
                    : tail_.layout(shape_, plan.data.size(), plan.offset, write.data.size(), alone);
  std::optional<coding::ErasureCode> code;
  if (plan.layout.parity_each > 0) code = codes_.find(plan.layout.longest(), plan.layout.parity_each);
  if (!code) plan.layout = CodingLayout::uncoded(plan.layout.chunks());
  return std::make_unique<TransferSender>(plan, shape_.rules, code ? &*code : nullptr, executor_);
}

void Outgoing::refuse(const std::deque<Write>::iterator& refused, std::uint64_t capacity, TimePoint now) {
  const Write& write = *refused;
  completions_.push_back({.handle = {write.number},
                          .length = write.data.size(),
                          .at = now,
                          .error = Error{ErrorCode::InvalidArgument,
                                         fmt::format("Write {} of {} bytes does not fit the peer's receive of {} bytes",
                                                     write.number, write.data.size(), capacity)}});
  bytes_to_cut_ -= write.data.size();
  writes_.erase(refused);
}

// --- sending ---

// The receiver needs the last data of a Write sooner than parity that it can probably do without.
bool Outgoing::data_first(const Transfer& transfer) {
  if (!shape_.rules.adaptive()) return false;
  const Write* write = find_write(transfer.write);
  return write != nullptr && !write->cut;
}

Outgoing::Choice Outgoing::choose(std::uint32_t piece, TimePoint now) {
  const std::uint32_t most = std::max<std::uint32_t>(1, piece / shape_.chunk_bytes);
  for (Transfer& transfer : transfers_) {
    if (!transfer.sender || transfer.sender->done()) continue;
    if (const auto extent = transfer.sender->next_repair(most)) return {&transfer, *extent};
  }
  Choice parity;
  Choice repair_parity;
  for (Transfer& transfer : transfers_) {
    if (!transfer.sender || transfer.sender->done()) continue;
    const bool same_write = parity.transfer == nullptr || parity.transfer->write == transfer.write;
    if (!same_write) break;
    // Small, and of chunks that a round trip has passed for: before the parity of what was sent last.
    if (repair_parity.transfer == nullptr && transfer.parity)
      if (const auto code = transfer.sender->next_repair_parity(most)) repair_parity = {&transfer, *code};
    if (const auto fresh = transfer.sender->next_fresh(most)) {
      if (!fresh->parity()) return {&transfer, *fresh};
      if (!transfer.parity) continue;
      // Layer by layer through all transfers of a Write: with most of them it is done before the last one.
      const bool lower =
          parity.transfer == nullptr || transfer.sender->parity_layer() < parity.transfer->sender->parity_layer();
      if (lower) parity = {&transfer, *fresh};
      if (!shape_.rules.adaptive()) return parity;
    } else if (!transfer.sender->fresh_left() && parity.transfer == nullptr) {
      if (const auto cover = transfer.sender->next_cover(most, now)) return {&transfer, *cover};
    }
  }
  if (repair_parity.transfer != nullptr) return repair_parity;
  return parity;
}

bool Outgoing::hides_repairs(const Write& write) const {
  const std::uint64_t behind = bytes_to_cut_ - (write.data.size() - write.started);
  // A transfer that waits for a repair keeps its slots, and those behind it are taken to be alike.
  const std::uint64_t open = queue_pair_.geometry().slots / shape_.rules.messages_each();
  return tail_.hides_repairs(behind, open * std::min<std::uint64_t>(write.data.size(), shape_.transfer_bytes));
}

TransferSender::Covering Outgoing::covering(const Transfer& transfer, const Timing& timing) {
  if (!shape_.rules.adaptive()) return {};
  const Write* write = find_write(transfer.write);
  if (write == nullptr) return {};
  tail_.assume(link_.estimate(), path_rate(), timing);
  if (hides_repairs(*write)) return {};
  std::uint64_t left = write->data.size() - write->started;
  for (const Transfer& open : transfers_)
    if (open.sender && open.write == transfer.write) left += open.sender->fresh_bytes_left();
  const double lost = transfer.sender->lost_share();
  return tail_.covering(shape_, left, shape_.chunks_of(write->data.size()), lost);
}

bool Outgoing::data_left(std::uint64_t write) {
  const Transfer* const last = latest();  // no other has fresh data
  return last != nullptr && last->sender && last->write == write && !last->sender->data_handed_out();
}

void Outgoing::cover_repairs(const Timing& timing) {
  std::vector<std::pair<Transfer*, std::vector<std::uint32_t>>> exposed;
  std::size_t all = 0;
  for (Transfer& transfer : transfers_) {
    if (!transfer.sender) continue;
    if (transfer.sender->repairs_left()) return;  // together: those that go now are exposed, too
    if (!transfer.sender->exposed()) continue;
    const Write* write = find_write(transfer.write);
    if (write != nullptr && (!write->cut || data_left(transfer.write))) continue;
    exposed.emplace_back(&transfer, transfer.sender->exposed_repairs());
    all += exposed.back().second.size();
  }
  if (exposed.empty()) return;
  tail_.assume(link_.estimate(), path_rate(), timing);
  for (const auto& [transfer, repairs] : exposed) cover_repairs(*transfer, repairs, all);
}

void Outgoing::cover_repairs(const Transfer& transfer, const std::vector<std::uint32_t>& repairs, std::size_t all) {
  TransferSender& sender = *transfer.sender;
  const auto count = static_cast<std::uint32_t>(repairs.size());
  const std::uint64_t room = sender.chunks();  // never more than the receiver has for so many
  const std::uint64_t first = sender.next_block_first();
  const std::size_t most_named = most_of_a_repair_group(control_bytes_, sender.chunks());
  const coding::CoverPlan plan = tail_.cover_plan(
      shape_, {.count = count,
               .share = static_cast<double>(count) / static_cast<double>(std::max<std::size_t>(1, all)),
               .parity_most = static_cast<std::uint32_t>(transfer.parity ? room - std::min(room, first) : 0),
               .longest = static_cast<std::uint32_t>(std::min<std::size_t>(coding::kMaxShards - 1, most_named)),
               .lost = sender.lost_share()});
  std::optional<coding::ErasureCode> code;
  if (plan.code.submessages > 0)
    code = codes_.find((count + plan.code.submessages - 1) / plan.code.submessages, plan.code.parity_each);
  if (!code) return sender.cover_by_copies();
  sender.cover_by_code(repairs, plan.code.submessages, *code, tail_.statements(shape_, plan.code.submessages),
                       executor_);
}

bool Outgoing::send_holes(SendHandle stream, std::uint32_t first_packet, std::span<const std::byte> chunk,
                          std::uint64_t packets, bool ends) {
  const std::size_t packet_bytes = shape_.chunk_bytes / shape_.packets_per_chunk;
  const std::size_t last = (chunk.size() + packet_bytes - 1) / packet_bytes;
  for (std::size_t at = 0; at < last;) {
    const std::uint64_t rest = packets >> at;
    if (rest == 0) break;
    at += static_cast<std::size_t>(std::countr_zero(rest));
    const std::size_t end = std::min(last, at + static_cast<std::size_t>(std::countr_one(packets >> at)));
    if (at >= last) break;
    const std::span<const std::byte> bytes =
        chunk.subspan(at * packet_bytes, std::min(end * packet_bytes, chunk.size()) - at * packet_bytes);
    const bool ends_message = ends && end == last;
    if (!queue_pair_.send_packets(stream, first_packet + static_cast<std::uint32_t>(at), bytes, ends_message))
      return false;
    at = end;
  }
  return true;
}

bool Outgoing::hand_out(const Choice& choice, const Timing& timing, TimePoint now) {
  TransferSender& sender = *choice.transfer->sender;
  const TransferSender::Extent& extent = choice.extent;
  const SendHandle stream = extent.parity() ? *choice.transfer->parity : choice.transfer->data;
  const bool ends = extent.parity() || extent.first + extent.count == sender.chunks();
  const std::uint32_t first_packet = extent.first * shape_.packets_per_chunk;
  const std::uint64_t before = queue_pair_.backlog();
  if (extent.packets != 0 ? !send_holes(stream, first_packet, sender.bytes(extent), extent.packets, ends)
                          : !queue_pair_.send_packets(stream, first_packet, sender.bytes(extent), ends))
    return false;
  const std::uint64_t backlog = queue_pair_.backlog();
  const TimePoint leaves = now + queue_pair_.rate().time_for({backlog});
  departures_.handed_out(choice.transfer->sender->plan().transfer, extent, backlog - before, leaves);
  const bool repair = extent.kind == TransferSender::Kind::Repair;
  sender.sent(extent, leaves, timing.rto(), repair ? covering(*choice.transfer, timing) : TransferSender::Covering{});
  if (extent.parity())
    totals_.parity_chunks_sent += extent.count;
  else if (extent.again())
    totals_.chunks_retransmitted += extent.count;
  else
    totals_.chunks_sent += extent.count;
  // Offers behind a repair are what shows its loss.
  if (extent.again()) choice.transfer->offer_at = std::min(choice.transfer->offer_at, leaves + timing.behind_repair());
  return true;
}

void Outgoing::feed(std::uint64_t backlog, std::uint32_t piece, const Timing& timing, TimePoint now) {
  start_transfers(timing, now);
  while (queue_pair_.backlog() < backlog) {
    if (shape_.rules.adaptive()) cover_repairs(timing);
    const std::uint64_t most = piece != 0 ? piece : backlog - queue_pair_.backlog();
    const Choice choice = choose(static_cast<std::uint32_t>(most), now);
    if (choice.transfer == nullptr || !hand_out(choice, timing, now)) return;
    if (choice.extent.kind == TransferSender::Kind::Fresh ? choice.transfer->sender->data_handed_out()
                                                          : !choice.transfer->sender->fresh_left())
      start_transfers(timing, now);
  }
}

void Outgoing::postpone(Duration absence) {
  for (Transfer& transfer : transfers_)
    if (transfer.sender) transfer.sender->postpone(absence);
}

void Outgoing::expire(TimePoint now) {
  for (Transfer& transfer : transfers_)
    if (transfer.sender) transfer.sender->expire(now);
}

// --- what the peer says ---

Result<void> Outgoing::handle(const ReportsHeader& header) {
  // It may have closed what we are to pass over before we have.
  const std::uint64_t reached = first_transfer_ + transfers_.size() + messages_to_pass_;
  if (header.completed_below > reached)
    return Error{ErrorCode::Protocol, fmt::format("the peer claims to hold {} transfers, of which {} have been started",
                                                  header.completed_below, reached)};
  for (std::size_t i = 0; i < transfers_.size() && first_transfer_ + i < header.completed_below; ++i) {
    TransferSender* sender = transfers_[i].sender.get();
    if (sender == nullptr || sender->done()) continue;
    if (!sender->may_be_complete())
      return Error{
          ErrorCode::Protocol,
          fmt::format("the peer claims to hold all of transfer {}, which has not been sent", first_transfer_ + i)};
    sender->complete();
  }
  // With nothing open no offers go out: a peer that repeats its last word has not heard that it came.
  if (transfers_.empty()) news_for_peer_ = true;
  return {};
}

Result<void> Outgoing::handle(const Report& report, Stamp echo) {
  if (report.transfer < first_transfer_ || report.transfer - first_transfer_ >= transfers_.size()) return {};
  Transfer& transfer = transfers_[report.transfer - first_transfer_];
  if (report.complete && transfer.sender && !transfer.sender->done() && !congested_)
    link_.saw_runs(report.lost, report.runs);
  return transfer.sender ? transfer.sender->handle(report, echo) : Result<void>();
}

// --- booking ---

bool Outgoing::sent(const Transfer& transfer) const {
  return queue_pair_.sent(transfer.data) && (!transfer.parity || queue_pair_.sent(*transfer.parity));
}

void Outgoing::note_progress(TimePoint now) {
  for (Transfer& transfer : transfers_) {
    if (!transfer.sender || transfer.ended) continue;
    if (!transfer.data_out && transfer.sender->data_handed_out() && queue_pair_.sent(transfer.data)) {
      transfer.data_out = true;
      if (Write* write = find_write(transfer.write)) write->data_out = now;
    }
    if (!transfer.all_sent && !transfer.sender->fresh_left() && sent(transfer)) {
      transfer.all_sent = true;
      transfer.sender->left(now);
      transfer.offer_at = now;
    }
    const bool parity_pending = parity_to_start_ && &transfer == latest();
    if (transfer.sender->released() && sent(transfer) && !parity_pending) {
      (void)queue_pair_.end_stream(transfer.data);
      if (transfer.parity) (void)queue_pair_.end_stream(*transfer.parity);
      transfer.ended = true;
      if (Write* write = find_write(transfer.write)) --write->transfers_open;
      transfer.sender.reset();
    }
  }
  while (!transfers_.empty() && transfers_.front().ended) {
    transfers_.pop_front();
    ++first_transfer_;
    news_for_peer_ = true;
  }
}

void Outgoing::complete_writes(TimePoint now, Duration rtt) {
  for (auto write = writes_.begin(); write != writes_.end() && (write->cut || write->started > 0);) {
    if (!write->finished()) {
      ++write;
      continue;
    }
    ++totals_.writes_completed;
    totals_.bytes_written += write->data.size();
    if (write->data_out != TimePoint{}) totals_.time_lost += std::max(Duration::zero(), now - write->data_out - rtt);
    completions_.push_back({.handle = {write->number}, .length = write->data.size(), .at = now});
    write = writes_.erase(write);
  }
}

void Outgoing::note_departures(const Timing& timing, TimePoint now) {
  const auto sender_of = [this](const Departures::Entry& entry) {
    return entry.transfer < first_transfer_ ? nullptr : transfers_[entry.transfer - first_transfer_].sender.get();
  };
  departures_.look(
      queue_pair_.backlog(), now,
      [&](const Departures::Entry& left) {
        TransferSender* const sender = sender_of(left);
        if (sender == nullptr || sender->done()) return;
        sender->left_late(left.extent, timing.rto(), now);
        TimePoint& offer_at = transfers_[left.transfer - first_transfer_].offer_at;
        if (left.extent.again() && shape_.rules.resends_on_report())
          offer_at = std::min(offer_at, now + timing.behind_repair());
      },
      [&](const Departures::Entry& late) {
        TransferSender* const sender = sender_of(late);
        if (sender != nullptr && !sender->done()) sender->held_up(late.extent);
      });
}

void Outgoing::collect(const Timing& timing, TimePoint now) {
  note_departures(timing, now);
  note_progress(now);
  complete_writes(now, timing.rtt.smoothed());
}

std::optional<TailCode> Outgoing::tail_code_of(const TransferPlan& plan) const {
  if (!shape_.rules.adaptive() || plan.layout.parity_each == 0) return std::nullopt;
  return TailCode{plan.layout.first, plan.layout.submessages, static_cast<std::uint16_t>(plan.layout.parity_each)};
}

OffersHeader Outgoing::offers_header(TimePoint now) const {
  return {.stamp = to_stamp(now),
          .settled_below = first_transfer_,
          .rate_bits = static_cast<std::uint64_t>(path_rate().bits_per_second)};
}

void Outgoing::write_question(ByteWriter& writer, TimePoint now) const {
  OffersHeader header = offers_header(now);
  header.question = true;
  write(writer, header);
}

bool Outgoing::poll_offers(ByteWriter& writer, const Timing& timing, Duration silence, TimePoint now) {
  const auto open = [](const Transfer& transfer) { return transfer.sender && !transfer.sender->done(); };
  const bool due = std::any_of(transfers_.begin(), transfers_.end(),
                               [&](const Transfer& transfer) { return open(transfer) && transfer.offer_at <= now; });
  // A receiver that is passed over posts on only when it knows how far we are.
  const bool passing = messages_to_pass_ > 0 && passing_at_ <= now;
  if (!due && !news_for_peer_ && !passing) return false;
  if (!due && !passing && !transfers_.empty()) {  // nothing urgent: the next offers carry the news
    news_for_peer_ = false;
    return false;
  }
  write(writer, offers_header(now));
  news_for_peer_ = false;
  const Duration interval = timing.offer_interval(silence);
  passing_at_ = now + interval;
  for (Transfer& transfer : transfers_) {
    if (!open(transfer) || transfer.offer_at > now + interval / 2) continue;
    const TransferPlan& plan = transfer.sender->plan();
    if (!append(writer, Offer{plan.transfer, plan.write, plan.write_length, plan.offset, plan.immediate,
                              transfer.all_sent, tail_code_of(plan)}))
      return true;  // the others are still due
    // The first ones close together: without one of them the receiver can finish nothing.
    const bool early = ++transfer.early_offers < timing.close_statements;
    transfer.offer_at = now + (early ? std::min(timing.close_interval(), interval) : interval);
  }
  return true;
}

bool Outgoing::poll_repair_groups(ByteWriter& writer, const Timing& timing, TimePoint now) {
  for (std::size_t i = 0; i < transfers_.size(); ++i) {
    TransferSender* sender = transfers_[i].sender.get();
    if (sender != nullptr && !sender->done() &&
        sender->blocks().poll(writer, first_transfer_ + i, timing.close_interval(), now))
      return true;
  }
  return false;
}

TimePoint Outgoing::next_timeout(TimePoint now) const {
  TimePoint next = news_for_peer_ ? TimePoint::min() : messages_to_pass_ > 0 ? passing_at_ : kNever;
  for (const Transfer& transfer : transfers_)
    if (transfer.sender && !transfer.sender->done())
      next = std::min({next, transfer.offer_at, transfer.sender->next_timeout(), transfer.sender->next_cover_due(now),
                       transfer.sender->blocks().next_statement()});
  return next;
}

void Outgoing::fail(const Error& error, TimePoint now) {
  for (Transfer& transfer : transfers_) transfer.sender.reset();  // waits for encoders that read user memory
  transfers_.clear();
  departures_.clear();
  bytes_to_cut_ = 0;
  for (const Write& write : writes_)
    completions_.push_back({.handle = {write.number}, .length = write.data.size(), .at = now, .error = error});
  writes_.clear();
}

std::uint64_t Outgoing::bytes_held() const {
  std::uint64_t bytes = totals_.bytes_written;
  for (const Write& write : writes_) bytes += write.started;
  for (const Transfer& transfer : transfers_)
    if (transfer.sender) bytes -= transfer.sender->plan().data.size() - transfer.sender->bytes_held();
  return bytes;
}

std::uint64_t Outgoing::bytes_outstanding() const {
  std::uint64_t bytes = 0;
  for (const Write& write : writes_) bytes += write.data.size();
  return bytes + totals_.bytes_written - bytes_held();
}

void Outgoing::add_to(ConnectionStatistics& statistics) const {
  statistics.writes_completed = totals_.writes_completed;
  statistics.bytes_written = totals_.bytes_written;
  statistics.chunks_sent = totals_.chunks_sent;
  statistics.chunks_retransmitted = totals_.chunks_retransmitted;
  statistics.parity_chunks_sent = totals_.parity_chunks_sent;
  statistics.time_lost = totals_.time_lost;
}

}  // namespace sdr::reliability

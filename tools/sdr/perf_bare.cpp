// The two ends of a perf run over a QueuePair alone: what the transport and the SDK do by themselves, as in the
// authors' write-bandwidth benchmark. A message is finished when its bitmap is full, or given up (perf_run.hpp).
#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "sdr/driver.hpp"
#include "sdr/perf_control.hpp"
#include "sdr/perf_ends.hpp"
#include "sdr/perf_run.hpp"
#include "sdr/registered_memory.hpp"

namespace sdr::cli {
namespace {

constexpr Duration kNap = std::chrono::milliseconds(100);
// How often messages without progress are looked for.
constexpr Duration kStaleCheck = std::chrono::milliseconds(50);
// The sender asks after two RTTs of silence, but not more often than this.
constexpr Duration kFastestAsk = std::chrono::milliseconds(20);
constexpr std::uint64_t kRttSamples = 3;
// From one channel, before control and timers get their turn: the sender waits for word of what has landed.
constexpr std::uint64_t kBytesPerRound = 512 << 10;

// A slot a receive, an immediate whose packet offset reaches to the end of the message.
Result<QueuePairOptions> bare_options(const Path& path, const PerfPlan& plan) {
  QueuePairOptions options = path.queue_pair_options();
  const std::uint64_t chunk = std::uint64_t{path.mtu()} * path.chunk_packets();
  const std::uint64_t chunks = (plan.size.count + chunk - 1) / chunk;
  options.max_message = Bytes{chunks * chunk};
  options.slots = std::bit_ceil(plan.receives());
  const int offset_bits = std::max(18, static_cast<int>(std::bit_width(chunks * path.chunk_packets())));
  const int id_bits = 32 - offset_bits - options.user_bits;
  if (id_bits < 1 || options.slots > 1ULL << id_bits) {
    return Error{ErrorCode::InvalidArgument,
                 fmt::format("{} messages in flight of {} packets each do not fit the 32 bits of the immediate; take a "
                             "smaller --size or --inflight, or a larger --mtu",
                             options.slots, chunks * path.chunk_packets())};
  }
  options.packet_offset_bits = static_cast<std::uint8_t>(offset_bits);
  options.message_id_bits = static_cast<std::uint8_t>(id_bits);
  return options;
}

Result<std::unique_ptr<QueuePair>> make_queue_pair(const Path& path, const PerfPlan& plan, Session& session) {
  const auto options = bare_options(path, plan);
  auto queue_pair =
      options ? QueuePair::create(path.device(), *options) : Result<std::unique_ptr<QueuePair>>(options.error());
  if (!queue_pair) {
    session.send_error(queue_pair.error().message);
    return queue_pair.error();
  }
  if (Result<void> connected = connect_over(session, **queue_pair); !connected) return connected.error();
  return queue_pair;
}

class Sender {
 public:
  Sender(QueuePair& queue_pair, const PerfPlan& plan, const Payload& payload, Duration timeout)
      : queue_pair_(queue_pair), payload_(payload), timeout_(timeout), book_(plan) {}

  Result<void> work(TimePoint now) {
    if (heard_at_ == TimePoint{}) heard_at_ = now;
    while (const auto datagram = queue_pair_.receive_control()) {
      if (const auto report = parse_report(*datagram)) take(*report, now);
    }
    if (book_.warmed_up() && !at_warm_up_ && rtt_samples_ > 0) at_warm_up_ = queue_pair_.counters();
    if (rtt_samples_ >= kRttSamples) {
      if (Result<void> posted = post(now); !posted) return posted;
    }
    while (!in_flight_.empty() && queue_pair_.sent(in_flight_.front())) {
      in_flight_.pop_front();
      ++sent_;
    }
    if (now - heard_at_ > timeout_) {
      return Error{ErrorCode::PeerUnreachable,
                   fmt::format("{} was silent for {}, after {} messages", queue_pair_.peer_name(), to_string(timeout_),
                               book_.complete_count())};
    }
    if (now >= next_ask()) ask(now);
    return {};
  }

  [[nodiscard]] bool finished() const { return book_.finished(); }
  [[nodiscard]] Duration time_to_ask(TimePoint now) const { return std::clamp(next_ask() - now, Duration(0), kNap); }

  [[nodiscard]] SenderResult result() const {
    const QueuePairCounters now = queue_pair_.counters();
    const QueuePairCounters before = at_warm_up_.value_or(QueuePairCounters{});
    SenderResult result;
    book_.report(result);
    result.packets_sent = now.packets_sent - before.packets_sent;
    result.send_calls = now.send_calls - before.send_calls;
    result.rtt_min = rtt_min_;
    result.rtt_smoothed = rtt_smoothed_;
    result.chunk_bytes = queue_pair_.geometry().chunk_bytes;
    result.packet_overhead = queue_pair_.geometry().packet_overhead;
    if (const auto failure = queue_pair_.offload_failure()) result.offload_failure = failure->message;
    return result;
  }

 private:
  void take(const PerfReport& report, TimePoint now) {
    heard_at_ = now;
    for (; reported_ < std::min(report.base, book_.next()); ++reported_) book_.completed(reported_, now);
    for (std::size_t w = 0; w < report.finished.size(); ++w) {
      for (std::uint64_t bits = report.finished[w]; bits != 0; bits &= bits - 1) {
        book_.completed(report.base + 64 * w + static_cast<std::uint64_t>(std::countr_zero(bits)), now);
      }
    }
    if (report.stamp == 0 || report.stamp != asked_at_) return;
    const Duration rtt = now - TimePoint(Duration(static_cast<std::int64_t>(report.stamp)));
    asked_at_ = 0;
    rtt_min_ = rtt_samples_ == 0 ? rtt : std::min(rtt_min_, rtt);
    rtt_smoothed_ = rtt_samples_ == 0 ? rtt : (rtt_smoothed_ * 7 + rtt) / 8;
    queue_pair_.set_rtt(rtt_smoothed_);
    ++rtt_samples_;
  }

  Result<void> post(TimePoint now) {
    while (book_.may_post()) {
      if (!waiting_since_) waiting_since_ = now;
      const Result<SendHandle> sent = queue_pair_.post_send(payload_.of(book_.next()), std::nullopt);
      if (!sent && sent.error().code == ErrorCode::Retry) return {};
      if (!sent) return sent.error();
      in_flight_.push_back(*sent);
      // A Write that had to wait for its CTS has waited all the same.
      book_.posted(*waiting_since_);
      waiting_since_.reset();
    }
    return {};
  }

  // At once for the first measurements of the RTT, then when nothing is heard.
  [[nodiscard]] TimePoint next_ask() const {
    if (asked_at_ == 0 && rtt_samples_ < kRttSamples) return TimePoint::min();
    const TimePoint last = std::max(heard_at_, last_ask_);
    return last + std::max(2 * rtt_smoothed_, kFastestAsk);
  }

  void ask(TimePoint now) {
    PerfDatagram datagram;
    asked_at_ = static_cast<std::uint64_t>(now.time_since_epoch().count());
    last_ask_ = now;
    queue_pair_.send_control(encode(PerfAsk{.stamp = asked_at_, .sent = sent_}, datagram), now);
  }

  QueuePair& queue_pair_;
  const Payload& payload_;
  Duration timeout_;
  WriteBook book_;
  std::deque<SendHandle> in_flight_;
  std::uint64_t sent_ = 0;
  std::uint64_t reported_ = 0;
  std::optional<TimePoint> waiting_since_;
  std::optional<QueuePairCounters> at_warm_up_;
  TimePoint heard_at_{};
  TimePoint last_ask_{};
  std::uint64_t asked_at_ = 0;  // the stamp of the question that is out; 0: none
  std::uint64_t rtt_samples_ = 0;
  Duration rtt_min_{0};
  Duration rtt_smoothed_{0};
};

class Receiver {
 public:
  Receiver(QueuePair& queue_pair, const PerfPlan& plan, ReceiveBuffers& buffers)
      : queue_pair_(queue_pair),
        plan_(plan),
        buffers_(buffers),
        together_(std::max<std::uint32_t>(1, plan.inflight / 4)),
        finished_(PerfReport::kWords * 64) {
    const std::uint64_t chunk_bytes = queue_pair.geometry().chunk_bytes;
    chunks_ = (plan.size.count + chunk_bytes - 1) / chunk_bytes;
  }

  // `busy` when there was data, and may be more: while the sender has enough to do, what it is told and given waits
  // until it is worth a datagram.
  Result<void> work(TimePoint now, bool busy) {
    std::optional<std::uint64_t> asked;
    while (const auto datagram = queue_pair_.receive_control()) {
      const auto ask = parse_ask(*datagram);
      if (!ask) continue;
      asked = ask->stamp;
      started_below_ = std::max(started_below_, ask->sent);
    }
    look();
    for (Message& message : open_) {
      if (message.full && !message.finished) finish(message, false);
    }
    if (now >= next_stale_check_) {
      next_stale_check_ = now + kStaleCheck;
      give_up_stale(now);
    }
    while (!open_.empty() && open_.front().finished) open_.pop_front();
    if (buffers_.completed() >= plan_.warmup && !at_warm_up_) at_warm_up_ = queue_pair_.counters();
    const bool due = !busy || news_ >= together_;
    if (due) {
      if (Result<void> posted = post(); !posted) return posted;
    }
    if (asked || (due && news_ != 0)) report(asked.value_or(0), now);
    buffers_.verify_some();
    return {};
  }

  // What has landed is verified at once, while it is in the cache.
  void look() {
    for (Message& message : open_) {
      if (message.full || message.finished) continue;
      const std::size_t words_before = message.full_words;
      message.full = is_full(message);
      if (message.full_words != words_before) {
        buffers_.landed(message.number, 64 * message.full_words * queue_pair_.geometry().chunk_bytes);
      }
    }
  }

  [[nodiscard]] ReceiverResult result() const {
    const QueuePairCounters now = queue_pair_.counters();
    const QueuePairCounters before = at_warm_up_.value_or(QueuePairCounters{});
    ReceiverResult result;
    buffers_.report(result);
    add_received(result, now, before);
    if (const auto failure = queue_pair_.offload_failure()) result.offload_failure = failure->message;
    return result;
  }

 private:
  struct Message {
    RecvHandle handle;
    ChunkBitmap bitmap;
    std::uint64_t number = 0;
    std::size_t full_words = 0;      // of the bitmap, from the front
    std::uint64_t chunks_seen = 0;   // at the last look for stale messages
    TimePoint progress_at = kNever;  // kNever: not started
    bool full = false;
    bool finished = false;
  };

  bool is_full(Message& message) const {
    const std::uint64_t words = (chunks_ + 63) / 64;
    for (; message.full_words < words; ++message.full_words) {
      const std::uint64_t left = chunks_ - 64 * message.full_words;
      const std::uint64_t all = left >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << left) - 1;
      if ((message.bitmap[message.full_words].load(std::memory_order_acquire) & all) != all) return false;
    }
    return true;
  }

  void finish(Message& message, bool lost) {
    message.finished = true;
    finished_[message.number % finished_.size()] = true;
    while (base_ < buffers_.next() && finished_[base_ % finished_.size()])
      finished_[base_++ % finished_.size()] = false;
    if (!queue_pair_.complete(message.handle)) return;
    buffers_.complete(message.number, lost);
    ++news_;
  }

  // A message is started when it, or a later one, has been touched, or the sender says so: sends are in order.
  void give_up_stale(TimePoint now) {
    for (const Message& message : open_) {
      if (!message.finished && queue_pair_.touched(message.handle)) {
        started_below_ = std::max(started_below_, message.number + 1);
      }
    }
    for (Message& message : open_) {
      if (message.finished || message.number >= started_below_) continue;
      std::uint64_t seen = 0;
      for (const auto& word : message.bitmap) {
        seen += static_cast<std::uint64_t>(std::popcount(word.load(std::memory_order_relaxed)));
      }
      if (message.progress_at == kNever || seen != message.chunks_seen) message.progress_at = now;
      message.chunks_seen = seen;
      if (now - message.progress_at > kLostAfter) finish(message, true);
    }
  }

  Result<void> post() {
    // The report names no message beyond its window.
    while (buffers_.has_free() && buffers_.next() < base_ + finished_.size()) {
      const Result<RecvHandle> posted = queue_pair_.post_receive(buffers_.buffer(buffers_.next()));
      if (!posted && posted.error().code == ErrorCode::Retry) return {};
      if (!posted) return posted.error();
      const Result<ChunkBitmap> bitmap = queue_pair_.chunk_bitmap(*posted);
      if (!bitmap) return bitmap.error();
      open_.push_back({.handle = *posted, .bitmap = *bitmap, .number = buffers_.next()});
      buffers_.posted();
    }
    return {};
  }

  void report(std::uint64_t stamp, TimePoint now) {
    news_ = 0;
    PerfReport report{.stamp = stamp, .base = base_};
    for (std::uint64_t i = 0; i < finished_.size(); ++i) {
      if (finished_[(base_ + i) % finished_.size()]) report.finished[i / 64] |= std::uint64_t{1} << (i % 64);
    }
    PerfDatagram datagram;
    queue_pair_.send_control(encode(report, datagram), now);
  }

  QueuePair& queue_pair_;
  const PerfPlan& plan_;
  ReceiveBuffers& buffers_;
  std::uint64_t together_;  // messages that are reported, and receives that are posted, at a time
  std::uint64_t news_ = 0;  // messages finished since the last report
  std::uint64_t chunks_ = 0;
  std::deque<Message> open_;    // in order of number
  std::vector<bool> finished_;  // by number modulo the window, from base_ on
  std::uint64_t base_ = 0;      // not finished
  std::uint64_t started_below_ = 0;
  TimePoint next_stale_check_{};
  std::optional<QueuePairCounters> at_warm_up_;
};

}  // namespace

Result<SenderResult> send_bare(const Path& path, const PerfPlan& plan, const Payload& payload, Session& session) {
  // Before what sends from it or receives into it, so that it goes after.
  const auto registered = RegisteredMemory::make(path.device(), payload.memory());
  if (!registered) return registered.error();
  auto queue_pair = make_queue_pair(path, plan, session);
  if (!queue_pair) return queue_pair.error();
  Driver driver;
  driver.add(**queue_pair);
  driver.watch(session.fd());
  SessionWatch watch(session);
  Sender sender(**queue_pair, plan, payload, path.timeout());
  while (!sender.finished()) {
    if (watch.error()) return *watch.error();
    const TimePoint now = Driver::now();
    if (Result<void> worked = sender.work(now); !worked) return worked.error();
    driver.run_once(sender.time_to_ask(now));
    watch.look(now);
  }
  if (Result<void> sent = session.send({{"done", true}}); !sent) return sent.error();
  return sender.result();
}

Result<ReceiverResult> receive_bare(const Path& path, const PerfPlan& plan, ReceiveBuffers& buffers, Session& session) {
  // Before what sends from it or receives into it, so that it goes after.
  const auto registered = RegisteredMemory::make(path.device(), buffers.memory());
  if (!registered) return registered.error();
  auto queue_pair = make_queue_pair(path, plan, session);
  if (!queue_pair) return queue_pair.error();
  Driver driver;
  driver.add(**queue_pair);
  driver.watch(session.fd());
  SessionWatch watch(session);
  Receiver receiver(**queue_pair, plan, buffers);
  (*queue_pair)->own_channels(false);
  while (!watch.message() || !buffers.finished()) {
    if (watch.error()) return *watch.error();
    const TimePoint now = Driver::now();
    bool more = false;
    for (std::uint8_t channel = 0; channel < (*queue_pair)->geometry().channels; ++channel) {
      std::uint64_t bytes = 0;
      while (bytes < kBytesPerRound) {
        const std::size_t packets = (*queue_pair)->poll_channel(channel, now);
        if (packets == 0) break;
        bytes += packets * (*queue_pair)->geometry().mtu;
        receiver.look();
      }
      more = more || bytes != 0;
    }
    if (Result<void> worked = receiver.work(now, more); !worked) return worked.error();
    driver.run_once(more || buffers.busy() ? Duration(0) : kStaleCheck);
    watch.look(now);
  }
  return receiver.result();
}

}  // namespace sdr::cli

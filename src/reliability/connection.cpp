#include "sdr/connection.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "reliability/control_message.hpp"
#include "reliability/delivery_rate.hpp"
#include "reliability/incoming.hpp"
#include "reliability/loss_count.hpp"
#include "reliability/outgoing.hpp"
#include "reliability/peer_watch.hpp"
#include "reliability/sending_rate.hpp"
#include "reliability/timing.hpp"
#include "units/byte_codec.hpp"

namespace sdr {
namespace {

using reliability::OffersReader;
using reliability::Ping;
using reliability::Pong;
using reliability::RepairGroupsReader;
using reliability::Report;
using reliability::ReportsReader;
using reliability::SchemeRules;
using reliability::TransferShape;

constexpr std::uint32_t kMagic = 0x53445243;                          // "SDRC"
constexpr std::uint32_t kVersion = reliability::kReliabilityVersion;  // ends must read each other's messages
// Fed and injected in one call, about, before control and timers get their turn.
constexpr std::uint64_t kBytesPerDrive = 2 << 20;
// A driver that calls so much too late was away.
constexpr Duration kAbsence = std::chrono::seconds(1);

Result<coding::CodeShape> code_shape(const ConnectionOptions& options) {
  const auto k = static_cast<unsigned>(std::max(options.data_chunks, 0));
  const auto m = static_cast<unsigned>(std::max(options.parity_chunks, 0));
  return coding::CodeShape{options.scheme == Scheme::EcXor ? coding::CodeKind::Xor : coding::CodeKind::ReedSolomon, k,
                           m};
}

Error mismatch(const char* field, std::string_view local, std::string_view remote) {
  return {ErrorCode::Mismatch, fmt::format("the two ends differ in {}: {} here, {} at the peer", field, local, remote)};
}

}  // namespace

class Connection::Impl {
 public:
  Impl(std::unique_ptr<QueuePair> queue_pair, std::optional<coding::ErasureCode> code, const ConnectionOptions& options,
       std::shared_ptr<Executor> executor)
      : options_(options),
        queue_pair_(std::move(queue_pair)),
        code_(std::move(code)),
        executor_(executor ? std::move(executor) : std::make_shared<InlineExecutor>()),
        link_(options.link ? options.link : std::make_shared<LinkEstimator>()),
        timing_{.rtt = reliability::RttEstimator(options.queue_pair.initial_rtt),
                .rto_factor = options.rto_factor,
                .tolerance_share = options.reorder_tolerance},
        rate_(options, *queue_pair_),
        shape_(make_shape()),
        outgoing_(shape_, *queue_pair_, *executor_, *link_, queue_pair_->max_control()),
        incoming_(shape_, *queue_pair_, *executor_, options.posted_ahead),
        control_(queue_pair_->max_control()) {}

  std::vector<std::byte> info() const {
    const std::vector<std::byte> inner = queue_pair_->info();
    std::vector<std::byte> blob(4 + 4 + 1 + 2 + 2 + 4 + inner.size());
    ByteWriter writer(blob);
    writer.u32(kMagic);
    writer.u32(kVersion);
    writer.u8(static_cast<std::uint8_t>(options_.scheme));
    writer.u16(code_ ? static_cast<std::uint16_t>(code_->shape().k) : 0);
    writer.u16(code_ ? static_cast<std::uint16_t>(code_->shape().m) : 0);
    writer.u32(static_cast<std::uint32_t>(inner.size()));
    writer.bytes(inner);
    return blob;
  }

  Result<void> connect(std::span<const std::byte> remote_info) {
    if (connected_)
      return Error{ErrorCode::InvalidArgument, "this connection is connected already, to " + queue_pair_->peer_name()};
    ByteReader reader(remote_info);
    if (reader.u32() != kMagic || !reader.ok())
      return Error{
          ErrorCode::InvalidArgument,
          fmt::format("the peer's connection info ({} bytes) is not an SDR connection info", remote_info.size())};
    const std::uint32_t version = reader.u32();
    if (reader.ok() && version != kVersion)
      return mismatch("connection version", std::to_string(kVersion), std::to_string(version));
    const auto scheme = static_cast<Scheme>(reader.u8());
    const std::uint16_t k = reader.u16();
    const std::uint16_t m = reader.u16();
    const auto inner = reader.bytes(reader.u32());
    if (!reader.ok())
      return Error{ErrorCode::InvalidArgument,
                   fmt::format("the peer's connection info is cut short at {} bytes", remote_info.size())};
    if (scheme != options_.scheme) return mismatch("reliability scheme", to_string(options_.scheme), to_string(scheme));
    const std::string local_code = code_ ? fmt::format("{}:{}", code_->shape().k, code_->shape().m) : "0:0";
    if (const std::string remote_code = fmt::format("{}:{}", k, m); remote_code != local_code)
      return mismatch("data:parity chunks", local_code, remote_code);
    if (Result<void> connected = queue_pair_->connect(inner); !connected) return connected;
    rate_.connected();
    if (queue_pair_->local_path()) timing_.between_processes();
    connected_ = true;
    return {};
  }

  Result<WriteHandle> post_write(std::span<const std::byte> data, std::optional<std::uint32_t> immediate) {
    if (failure_) return Error{ErrorCode::Closed, failure_->message};
    if (data.data() == nullptr && !data.empty()) return no_memory("a Write", data.size());
    if (outgoing_.outstanding() >= options_.max_outstanding) return full("Writes");
    return outgoing_.post(data, immediate);
  }

  Result<ReceiveHandle> post_receive(std::span<std::byte> buffer) {
    if (failure_) return Error{ErrorCode::Closed, failure_->message};
    if (buffer.data() == nullptr && !buffer.empty()) return no_memory("a receive", buffer.size());
    if (incoming_.outstanding() >= options_.max_outstanding) return full("receives");
    return incoming_.post(buffer);
  }

  TimePoint progress(TimePoint now) {
    if (failure_ || !connected_) return kNever;
    if (word_) measure(*std::exchange(word_, std::nullopt), now);
    if (incoming_.date_offers(now)) answer(now);
    const TimePoint network = queue_pair_->progress(now);
    take_controls(now);
    if (failure_) return kNever;
    listen(now);
    queue_pair_->set_rtt(timing_.rtt.smoothed());
    if (Result<void> driven = incoming_.drive(timing_, now); !driven) {
      fail(driven.error(), now);
      return kNever;
    }
    outgoing_.expire(now);
    const TimePoint injection = send(now);
    outgoing_.collect(timing_, now);
    say(now);
    watch(now);
    if (failure_) return kNever;
    expected_ = std::min({network, injection, queue_pair_->next_timeout(), outgoing_.next_timeout(now),
                          incoming_.next_timeout(), watch_.next_timeout(waiting()), question_at(now),
                          rate_.next_timeout(), fail_time()});
    expected_ = word_ ? now : std::max(expected_, now);
    return expected_;
  }

  ConnectionOptions options_;
  std::unique_ptr<QueuePair> queue_pair_;
  std::optional<coding::ErasureCode> code_;
  std::shared_ptr<Executor> executor_;
  std::shared_ptr<LinkEstimator> link_;
  reliability::Timing timing_;
  reliability::SendingRate rate_;
  TransferShape shape_;
  reliability::Outgoing outgoing_;
  reliability::Incoming incoming_;
  reliability::PeerWatch watch_;
  std::optional<Error> failure_;

  [[nodiscard]] ConnectionStatistics statistics() const {
    ConnectionStatistics out;
    outgoing_.add_to(out);
    incoming_.add_to(out);
    const QueuePairCounters counters = queue_pair_->counters();
    out.packets_sent = counters.packets_sent;
    out.packets_lost = queue_pair_->local_path() ? counters.peer_drops : losses_.lost();
    out.packets_received = counters.packets_received;
    out.duplicate_packets = counters.duplicate_packets;
    out.late_packets = counters.late_packets;
    out.host_drops = counters.host_drops;
    out.controls_sent = controls_sent_;
    out.controls_received = controls_received_;
    out.controls_malformed = controls_malformed_ + counters.malformed_controls;
    out.send_calls = counters.send_calls;
    out.receive_calls = counters.receive_calls;
    out.rtt_smoothed = timing_.rtt.smoothed();
    out.rtt_min = timing_.rtt.min();
    out.loss_estimate = losses_.share();
    out.rate = rate_.status();
    return out;
  }

 private:
  TransferShape make_shape() const {
    const QueuePairGeometry& geometry = queue_pair_->geometry();
    TransferShape shape;
    shape.rules = SchemeRules{options_.scheme};
    shape.code = code_ ? &*code_ : nullptr;
    shape.chunk_bytes = geometry.chunk_bytes;
    shape.packets_per_chunk = geometry.packets_per_chunk;
    shape.carries_payload = queue_pair_->carries_payload();
    shape.repair_target = options_.repair_target;
    shape.max_overhead = options_.max_overhead;
    std::uint64_t chunks = geometry.max_message / geometry.chunk_bytes;
    // The parity of a transfer must fit one message, too.
    if (code_) chunks = std::min<std::uint64_t>(chunks, chunks / code_->shape().m * code_->shape().k);
    shape.transfer_bytes = chunks * geometry.chunk_bytes;
    return shape;
  }

  Error full(const char* what) const {
    return {ErrorCode::Retry,
            fmt::format("{} {} are outstanding; take completions first", options_.max_outstanding, what)};
  }

  static Error no_memory(const char* what, std::size_t bytes) {
    return {ErrorCode::InvalidArgument, fmt::format("{} of {} bytes at a null address", what, bytes)};
  }

  [[nodiscard]] bool waiting() const { return !outgoing_.idle() || incoming_.active(); }

  void take_controls(TimePoint now) {
    while (const auto datagram = queue_pair_->receive_control()) {
      const auto message = reliability::parse(*datagram);
      if (!message) {
        ++controls_malformed_;
        continue;
      }
      ++controls_received_;
      std::visit([&](const auto& m) { handle(m, now); }, *message);
      if (failure_) return;
    }
  }

  void handle(const Ping& ping, TimePoint now) {
    send_control([&](ByteWriter& writer) { write(writer, Pong{ping.stamp, ping.full_size}); }, now);
  }
  void handle(const Pong& pong, TimePoint now) { watch_.handle(pong, now, timing_.rtt); }
  void handle(const OffersReader& offers, TimePoint now) {
    if (Result<void> taken = incoming_.handle(offers, timing_, now); !taken) fail(taken.error(), now);
  }
  void handle(const RepairGroupsReader& groups, TimePoint now) {
    if (Result<void> taken = incoming_.handle(groups); !taken) fail(taken.error(), now);
  }
  void handle(ReportsReader reports, TimePoint now) {
    // It may have come after this drive began, by as much as this end was kept from its core meanwhile: by the time of
    // the next one it surely had. A least RTT that is too short would be believed for long.
    const Word word{reports.header, watch_.silence(now)};
    if (!rate_.controlled()) {
      measure(word, now);
    } else if (!word_ || word_->header.echo_newest <= reports.header.echo_newest) {
      word_ = word;
    }
    learn(reports.header);
    watch_.note_landed(reports.header.packets_landed, reports.header.echo_newest);
    if (Result<void> taken = outgoing_.handle(reports.header); !taken) return fail(taken.error(), now);
    while (reports.next(report_))
      if (Result<void> taken = outgoing_.handle(report_, reports.header.echo); !taken) return fail(taken.error(), now);
  }

  // What a report says of the path, and the silence before it.
  struct Word {
    reliability::ReportsHeader header;
    Duration silence;
  };

  void measure(const Word& word, TimePoint now) {
    const reliability::Stamp stamp = reliability::to_stamp(now);
    const reliability::Stamp echo = word.header.echo_newest;
    const reliability::Stamp echoed = echo + word.header.echo_held;
    // One sample an echo: a late copy of a report says nothing about the path.
    if (echo > newest_echo_ && echo < stamp && echoed < stamp) {
      newest_echo_ = echo;
      timing_.rtt.sample(Duration(static_cast<std::int64_t>(stamp - echoed)), word.header.echo_held == 0);
    }
    rate_.reported(word.header, word.silence, timing_.silent_after(), now);
  }

  void learn(const reliability::ReportsHeader& header) {
    if (timing_.rtt.measured()) link_->saw_rtt(timing_.rtt.min(), timing_.rtt.smoothed(), timing_.rtt.variance());
    // Between processes offers overtake what waits in the peer's socket, which is no loss.
    if (!queue_pair_->local_path()) losses_.landed(header.echo_newest, header.packets_landed);
    // What a full queue takes is no sign of what the path loses by itself.
    if (rate_.congested()) losses_.skip_sample();
    if (const auto sample = losses_.take_sample()) link_->saw_packets(sample->sent, sample->lost, sample->exact);
    delivery_.landed(header.echo_newest, header.packets_landed, timing_.rtt.smoothed());
    if (const auto packets_a_second = delivery_.take())
      link_->saw_delivery({*packets_a_second * 8 * queue_pair_->geometry().mtu});
  }

  // Feeds and injects until pace, window or the transport say stop, or there is nothing to send.
  TimePoint send(TimePoint now) {
    // Into the dark no data: only offers ask whether somebody is there again. And none before the RTT is known: a
    // timeout that guesses it would repeat everything.
    const bool dark = !timing_.rtt.measured() || (watch_.silence(now) > timing_.silent_after() && !outgoing_.idle());
    if (!dark && rate_.controlled()) {
      rate_.adjust(timing_.rtt, now);
      timing_.offers_apart = rate_.offers_apart();
      outgoing_.set_path(rate_.path_rate(), rate_.congested());
    }
    const std::uint64_t backlog = rate_.backlog();
    const std::uint32_t piece = rate_.piece();
    TimePoint next = kNever;
    for (std::uint64_t fed = 0; fed < kBytesPerDrive; fed += backlog) {
      if (!dark) outgoing_.feed(backlog, piece, timing_, now);
      const std::uint64_t before = queue_pair_->backlog();
      next = queue_pair_->inject(now);
      rate_.note_waiting(queue_pair_->backlog() > 0);
      if (queue_pair_->backlog() == before || dark) return next;
    }
    return now;
  }

  template <typename Write>
  void send_control(Write&& write_message, TimePoint now) {
    ByteWriter writer(control_);
    write_message(writer);
    if (!writer.ok()) return;
    transmit(writer, now);
  }

  void transmit(const ByteWriter& writer, TimePoint now) {
    ++controls_sent_;
    rate_.sent_control(writer.size());
    (void)queue_pair_->send_control(writer.written(), now);
  }

  template <typename Poll>
  void drain(Poll&& poll, TimePoint now) {
    for (;;) {
      ByteWriter writer(control_);
      if (!poll(writer)) return;
      transmit(writer, now);
    }
  }

  void answer(TimePoint now) {
    drain([&](ByteWriter& writer) { return incoming_.poll_reports(writer, timing_, now); }, now);
  }

  void say(TimePoint now) {
    answer(now);
    drain(
        [&](ByteWriter& writer) {
          if (!outgoing_.poll_offers(writer, timing_, watch_.silence(now), now)) return false;
          offered(now);
          return true;
        },
        now);
    if (question_at(now) <= now) {
      send_control([&](ByteWriter& writer) { outgoing_.write_question(writer, now); }, now);
      offered(now);
    }
    drain([&](ByteWriter& writer) { return outgoing_.poll_repair_groups(writer, timing_, now); }, now);
    while (const auto ping = watch_.poll(waiting(), now)) {
      const std::size_t full = std::min<std::size_t>(control_.size(), queue_pair_->geometry().mtu);
      send_control([&](ByteWriter& writer) { write(writer, *ping, ping->full_size ? full : 0); }, now);
    }
  }

  // When to ask what has landed: nobody answers in the dark.
  [[nodiscard]] TimePoint question_at(TimePoint now) const {
    return watch_.silence(now) > timing_.silent_after() ? kNever : rate_.question_at(now);
  }

  // Offers go out.
  void offered(TimePoint now) {
    const std::uint64_t sent = queue_pair_->counters().packets_sent;
    if (sent != packets_offered_) data_at_ = now;
    packets_offered_ = sent;
    losses_.offered(reliability::to_stamp(now), sent, data_at_ + timing_.tolerance() <= now);
    rate_.offered(now);
  }

  // Whatever came from the peer, a CTS or a late packet too, is a sign of life.
  void listen(TimePoint now) {
    const QueuePairCounters counters = queue_pair_->counters();
    const std::uint64_t signs =
        counters.packets_received + counters.duplicate_packets + counters.late_packets + counters.controls_received;
    if (signs != signs_of_life_) watch_.heard(now);
    signs_of_life_ = signs;
    // Who was not called when he asked for it has not been listening: no silence of the peer, no timeout of a chunk.
    const Duration absence = expected_ == kNever || now < expected_ ? Duration::zero() : now - expected_;
    if (absence > reliability::kLeastRto) outgoing_.postpone(absence);
    if (waiting() && (!was_waiting_ || absence > kAbsence)) watch_.begin_waiting(now);
    was_waiting_ = waiting();
    watch_.note_sent(counters.payload_bytes_sent, now);
  }

  void watch(TimePoint now) {
    if (waiting() && !was_waiting_) watch_.begin_waiting(now);
    was_waiting_ = waiting();
    if (watch_.black_hole(queue_pair_->geometry().mtu))
      return fail(
          {ErrorCode::PeerUnreachable,
           fmt::format("the path to {} answers small datagrams but carries no packet of {} bytes payload: choose a "
                       "smaller MTU",
                       queue_pair_->peer_name(), queue_pair_->geometry().mtu)},
          now);
    if (!was_waiting_ || watch_.silence(now) < options_.peer_timeout) return;
    std::string how_far;
    if (!outgoing_.idle())
      how_far = fmt::format("; {} of {} bytes written were acknowledged", outgoing_.bytes_held(),
                            outgoing_.bytes_held() + outgoing_.bytes_outstanding());
    if (incoming_.active())
      how_far +=
          fmt::format("; {} of {} bytes to receive had landed", incoming_.bytes_landed(), incoming_.bytes_expected());
    fail({ErrorCode::PeerUnreachable, fmt::format("nothing heard from {} for {}{}", queue_pair_->peer_name(),
                                                  to_string(watch_.silence(now)), how_far)},
         now);
  }

  [[nodiscard]] TimePoint fail_time() const { return was_waiting_ ? watch_.deadline(options_.peer_timeout) : kNever; }

  void fail(const Error& error, TimePoint now) {
    failure_ = error;
    outgoing_.fail(error, now);
    incoming_.fail(error, now);
  }

  bool connected_ = false;
  bool was_waiting_ = false;
  reliability::LossCount losses_;
  reliability::DeliveryRate delivery_;
  std::uint64_t packets_offered_ = 0;     // packets sent when the last offers went out
  TimePoint data_at_ = TimePoint::min();  // the last offers with packets between them and those before
  std::uint64_t signs_of_life_ = 0;
  reliability::Stamp newest_echo_ = 0;
  std::optional<Word> word_;     // for the next drive to measure
  TimePoint expected_ = kNever;  // when progress() asked to be called
  std::uint64_t controls_sent_ = 0;
  std::uint64_t controls_received_ = 0;
  std::uint64_t controls_malformed_ = 0;
  Report report_;
  std::vector<std::byte> control_;
};

Connection::Connection(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Connection::~Connection() = default;

Result<std::unique_ptr<Connection>> Connection::create(DevicePtr device, const ConnectionOptions& options,
                                                       std::shared_ptr<Executor> executor) {
  const auto invalid = [](std::string message) { return Error{ErrorCode::InvalidArgument, std::move(message)}; };
  // A number from elsewhere may be none of the enumerators.
  if (!parse_scheme(to_string(options.scheme)))
    return invalid(fmt::format("{} is none of the schemes", static_cast<unsigned>(options.scheme)));
  if (!parse_rate_mode(to_string(options.rate_mode)))
    return invalid(fmt::format("{} is none of the ways to control the rate", static_cast<unsigned>(options.rate_mode)));
  if (!(options.rto_factor >= 1 && std::isfinite(options.rto_factor)))
    return invalid(fmt::format("an RTO of {} RTT is shorter than the RTT, or never", options.rto_factor));
  if (!(options.reorder_tolerance >= 0 && options.reorder_tolerance <= 1))
    return invalid(fmt::format("reorder tolerance of {} RTT is not from 0 to 1", options.reorder_tolerance));
  if (options.peer_timeout <= Duration::zero()) return invalid("the peer timeout must be longer than 0");
  if (options.max_outstanding == 0) return invalid("max_outstanding must be at least 1");
  std::optional<coding::ErasureCode> code;
  if (!(options.repair_target > 0 && options.repair_target < 1))
    return invalid(fmt::format("a repair target of {} is not above 0 and below 1", options.repair_target));
  if (!(options.max_overhead >= 0 && options.max_overhead <= 1))
    return invalid(fmt::format("an overhead of {} is not from 0 to 1", options.max_overhead));
  const SchemeRules rules{options.scheme};
  if (rules.coded() && options.queue_pair.slots < 4)
    return invalid(
        fmt::format("{} message slots are too few for a coded scheme, which needs two a transfer: at least 4",
                    options.queue_pair.slots));
  if (rules.coded() && !rules.adaptive()) {
    const Result<coding::CodeShape> shape = code_shape(options);
    if (!shape) return shape.error();
    Result<coding::ErasureCode> created = coding::ErasureCode::create(*shape);
    if (!created) return created.error();
    code = std::move(created).value();
  }
  QueuePairOptions queue_pair_options = options.queue_pair;
  queue_pair_options.ecn = reliability::SendingRate::heeds_marks(options);
  Result<std::unique_ptr<QueuePair>> queue_pair = QueuePair::create(std::move(device), queue_pair_options);
  if (!queue_pair) return queue_pair.error();
  const QueuePairGeometry& geometry = (*queue_pair)->geometry();
  if (code && geometry.max_message / geometry.chunk_bytes < code->shape().m)
    return invalid(
        fmt::format("the largest message holds {} chunks of {} bytes, fewer than the {} parity chunks of a submessage",
                    geometry.max_message / geometry.chunk_bytes, geometry.chunk_bytes, code->shape().m));
  return std::unique_ptr<Connection>(new Connection(
      std::make_unique<Impl>(std::move(queue_pair).value(), std::move(code), options, std::move(executor))));
}

std::vector<std::byte> Connection::info() const {
  return impl_->info();
}
Result<void> Connection::connect(std::span<const std::byte> remote_info) {
  return impl_->connect(remote_info);
}
Result<WriteHandle> Connection::post_write(std::span<const std::byte> data, std::optional<std::uint32_t> immediate) {
  return impl_->post_write(data, immediate);
}
Result<ReceiveHandle> Connection::post_receive(std::span<std::byte> buffer) {
  return impl_->post_receive(buffer);
}
std::optional<WriteCompletion> Connection::poll_write() {
  return impl_->outgoing_.poll();
}
std::optional<ReceiveCompletion> Connection::poll_receive() {
  return impl_->incoming_.poll();
}
TimePoint Connection::progress(TimePoint now) {
  return impl_->progress(now);
}

std::vector<int> Connection::wait_fds() const {
  std::vector<int> fds{impl_->queue_pair_->control_fd()};
  for (std::uint8_t c = 0; c < impl_->queue_pair_->geometry().channels; ++c)
    fds.push_back(impl_->queue_pair_->channel_fd(c));
  std::erase(fds, -1);
  return fds;
}

bool Connection::ready() const {
  return impl_->watch_.ready();
}
bool Connection::settled() const {
  return impl_->outgoing_.idle() && impl_->incoming_.settled();
}
std::uint64_t Connection::bytes_acknowledged() const {
  return impl_->outgoing_.bytes_held();
}
std::optional<LandedPrefix> Connection::landed_prefix() const {
  return impl_->incoming_.landed_prefix();
}
std::uint64_t Connection::bytes_landed() const {
  return impl_->incoming_.bytes_landed();
}
const std::optional<Error>& Connection::failure() const {
  return impl_->failure_;
}
LinkEstimate Connection::link() const {
  return impl_->link_->estimate();
}
ConnectionStatistics Connection::statistics() const {
  return impl_->statistics();
}
const QueuePairGeometry& Connection::geometry() const {
  return impl_->queue_pair_->geometry();
}
std::optional<Error> Connection::offload_failure() const {
  return impl_->queue_pair_->offload_failure();
}
std::string Connection::peer_name() const {
  return impl_->queue_pair_->peer_name();
}
bool Connection::local_path() const {
  return impl_->queue_pair_->local_path();
}
void Connection::set_rate(Bandwidth rate) {
  impl_->queue_pair_->set_rate(rate);
}

}  // namespace sdr

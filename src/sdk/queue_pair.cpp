#include "sdr/queue_pair.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <deque>

#include "core/receive_worker.hpp"
#include "core/scratch.hpp"
#include "sdk/clear_to_send.hpp"
#include "sdk/control_message.hpp"
#include "sdk/landing_window.hpp"
#include "sdk/offload.hpp"
#include "sdk/pacer.hpp"
#include "sdk/qp_info.hpp"
#include "sdk/quiescence.hpp"
#include "sdk/receive_queue.hpp"
#include "sdk/send_queue.hpp"
#include "sdk/table_geometry.hpp"
#include "transport/transport.hpp"

namespace sdr {
namespace {

// How long to wait before offering packets again to a transport that was full.
constexpr Duration kFullRetry = std::chrono::microseconds(20);
// Control datagrams of the layer above are handed on one by one, SDK ones handled in between; bounded per drive.
constexpr int kControlsPerDrive = 64;
// How often to look whether an offload device has got through what it was given.
constexpr Duration kDeviceLook = std::chrono::microseconds(20);
// Taken from one channel per drive, before timers and control get their turn. On a local path one poll() that brings
// whole batches is enough: what is taken is still in the cache when the layer above looks at it.
constexpr std::uint64_t kBytesPerDrive = 16 << 20;
constexpr std::uint64_t kBytesPerLocalDrive = 128 << 10;
// While data is coming on a local path, control datagrams are looked for once in so many drives.
constexpr int kDrivesPerControlLook = 4;
// How long a CTS waits for others on a local path, if the sender has enough.
constexpr Duration kLocalGathering = std::chrono::milliseconds(10);
// On a local path, reports of what landed for a socket buffer full.
constexpr std::uint64_t kReportsPerWindow = 2;

}  // namespace

class QueuePair::Impl {
 public:
  Impl(DevicePtr device, std::unique_ptr<transport::Endpoint> endpoint, std::unique_ptr<sdk::OffloadEngine> engine,
       const QueuePairOptions& options, const core::TableGeometry& table, std::uint32_t mtu)
      : device_(std::move(device)),
        endpoint_(std::move(endpoint)),
        engine_(std::move(engine)),
        receiver_(engine_ != nullptr && engine_->receives() ? engine_.get() : nullptr),
        receives_(table, mtu, options.generations, receiver_),
        sends_({.layout = table.layout,
                .mtu = mtu,
                .packets_per_chunk = options.packets_per_chunk,
                .slots = options.slots,
                .generations = options.generations,
                .channels = options.channels},
               engine_ != nullptr && engine_->sends() ? engine_.get() : nullptr),
        announcer_(options.slots, std::uint64_t{table.packets_per_slot} * mtu),
        grants_(options.slots),
        pacer_(options.rate),
        quiescence_(options.channels),
        rtt_(options.initial_rtt),
        overhead_(options.rate_counts_overhead ? endpoint_->facts().packet_overhead : 0),
        control_in_(endpoint_->facts().max_control),
        control_out_(endpoint_->facts().max_control) {
    for (int c = 0; c < options.channels; ++c) workers_.emplace_back(receives_.table(), mtu);
    local_ = local_info(table, mtu, options);
    geometry_ = {.mtu = mtu,
                 .packets_per_chunk = options.packets_per_chunk,
                 .chunk_bytes = mtu * options.packets_per_chunk,
                 .max_message = std::uint64_t{table.packets_per_slot} * mtu,
                 .slots = options.slots,
                 .channels = options.channels,
                 .generations = options.generations,
                 .packet_overhead = endpoint_->facts().packet_overhead,
                 .injection_bytes = injection_bytes(endpoint_->facts().burst, mtu),
                 .state_bytes = 0,
                 .bitmap_bytes = receives_.bitmap_bytes()};
    geometry_.state_bytes = sizeof(*this) + receives_.state_bytes() + sends_.state_bytes() +
                            std::size_t{2} * options.slots * sizeof(sdk::Announcement) + control_in_.size() +
                            control_out_.size() +
                            options.channels * (sizeof(core::ReceiveWorker) + sdk::Quiescence::kBytesPerChannel);
  }

  static std::uint32_t injection_bytes(std::uint16_t burst, std::uint32_t mtu) {
    return static_cast<std::uint32_t>(sdk::SendQueue::packets_at_once(std::max<std::uint16_t>(1, burst)) * mtu);
  }

  static sdk::QpInfo local_info(const core::TableGeometry& table, std::uint32_t mtu, const QueuePairOptions& options) {
    return {.mtu = mtu,
            .packets_per_chunk = options.packets_per_chunk,
            .max_message = std::uint64_t{table.packets_per_slot} * mtu,
            .slots = options.slots,
            .channels = options.channels,
            .generations = options.generations,
            .layout = table.layout};
  }

  [[nodiscard]] sdk::QpInfo info() const {
    sdk::QpInfo info = local_;
    info.receive_buffer = endpoint_->facts().receive_buffer;
    info.endpoint_info = endpoint_->info();
    return info;
  }

  Result<void> connect(std::span<const std::byte> remote_info) {
    const Result<sdk::QpInfo> remote = sdk::QpInfo::decode(remote_info);
    if (!remote) return remote.error();
    if (Result<void> fits = sdk::check_compatible(local_, *remote); !fits) return fits;
    if (Result<void> connected = endpoint_->connect(remote->endpoint_info); !connected) return connected;
    if (endpoint_->facts().local_path) {
      window_.open(remote->receive_buffer, geometry_.mtu + sdk::kPacketCost, geometry_.injection_bytes / geometry_.mtu);
      announcer_.gather(kLocalGathering);
      reporter_.report_every(endpoint_->facts().receive_buffer / kReportsPerWindow);
    }
    return {};
  }

  TimePoint inject(TimePoint now) {
    // The time for which nothing was queued is not credit.
    if (empty_since_) pacer_.idle(*empty_since_, now);
    empty_since_.reset();
    bool full = false;
    if (!sends_.empty()) full = sends_.pump(*endpoint_, pacer_, window_, overhead_, now);
    // Nor is that for which a window was closed.
    if (sends_.empty() || sends_.limited()) empty_since_ = now;
    endpoint_->advance(now);
    return next_injection(full, now);
  }

  TimePoint progress(TimePoint now) {
    endpoint_->advance(now);
    bool more = false;
    if (progress_owns_channels_) {
      // The answer to a probe settles what has been sent: nothing of it may wait here then.
      const bool all = !endpoint_->facts().local_path || reporter_.asked();
      const std::uint64_t most = all ? kBytesPerDrive : kBytesPerLocalDrive;
      for (std::uint8_t c = 0; c < geometry_.channels; ++c) {
        std::uint64_t bytes = 0;
        while (bytes < most) {
          const std::size_t packets = poll_channel(c, now);
          if (packets == 0) break;
          bytes += packets * geometry_.mtu;
        }
        more = more || bytes >= most;
      }
    }
    drained_ = !more;
    if (engine_ != nullptr) engine_->look(now);
    note_use();
    report_landing(now);
    if (!more || !endpoint_->facts().local_path || ++drives_without_control_ == kDrivesPerControlLook) {
      drives_without_control_ = 0;
      take_controls(now);
    }
    const TimePoint injection = inject(now);
    send_due_controls(now);
    if (more || reporter_.asked()) return now;
    // Nothing wakes us when a device has set a bit.
    const bool at_device = receiver_ != nullptr && receiver_->pending();
    return std::min({injection, next_timeout(), at_device ? now + kDeviceLook : kNever});
  }

  [[nodiscard]] TimePoint next_timeout() const {
    return std::min(
        {announcer_.next_timeout(), grants_.next_timeout(), window_.next_timeout(blocked()), endpoint_->next_event()});
  }

  std::size_t poll_channel(std::uint8_t channel, TimePoint now) {
    core::Scratch<core::Completion, transport::Endpoint::kPollBatch> scratch;
    const auto batch = scratch.values();
    const sdk::Quiescence::Batch inside(quiescence_, channel);
    const std::size_t n = endpoint_->poll(core::ChannelIndex(channel), batch, now);
    if (n > 0 && receiver_ != nullptr)
      receiver_->take(core::ChannelIndex(channel), batch.first(n));
    else if (n > 0)
      workers_[channel].process(batch.first(n));
    return n;
  }

  Result<void> complete(RecvHandle handle) {
    if (receives_.touched(handle)) announcer_.seen_in_use(handle.number);
    return receives_.complete(handle, *endpoint_, quiescence_);
  }

  // Where payload is carried, it comes from and goes to somewhere.
  [[nodiscard]] Result<void> check_memory(std::span<const std::byte> bytes) const {
    if (bytes.data() != nullptr || bytes.empty() || !endpoint_->facts().carries_payload) return {};
    return Error{ErrorCode::InvalidArgument, fmt::format("{} bytes at a null address", bytes.size())};
  }

  // Bytes [from, from + bytes) of an open message must lie within the receive that it fills.
  [[nodiscard]] Result<void> check_extent(SendHandle handle, std::uint64_t from, std::uint64_t bytes) const {
    const sdk::Announcement* grant = grants_.find(handle.number);
    const std::uint64_t limit = std::min(grant == nullptr ? UINT64_MAX : grant->max_length, geometry_.max_message);
    if (from <= limit && bytes <= limit - from) return {};
    return Error{ErrorCode::InvalidArgument,
                 fmt::format("{} bytes at byte {} of send {} reach past the receive of {} bytes", bytes, from,
                             handle.number, limit)};
  }

  bool send_control(std::span<const std::byte> body, TimePoint now) {
    ByteWriter writer(control_out_);
    sdk::write_upper_header(writer);
    writer.bytes(body);
    return writer.ok() && endpoint_->send_control(writer.written(), now);
  }

  // Handles SDK messages as they come; an upper datagram is kept for receive_control(). True when one is waiting.
  bool next_upper(TimePoint now) {
    if (upper_) return true;
    if (controls_drained_) return false;
    for (int i = 0; i < kControlsPerDrive; ++i) {
      const auto size = endpoint_->receive_control(control_in_, now);
      if (!size) {
        controls_drained_ = true;
        return false;
      }
      const auto message = sdk::parse_control(std::span(control_in_).first(*size));
      if (!message) {
        ++malformed_controls_;
        continue;
      }
      ++controls_received_;
      if (const auto* upper = std::get_if<sdk::UpperDatagram>(&*message)) {
        upper_ = upper->body;
        return true;
      }
      handle(*message, now);
    }
    return false;
  }

  std::optional<std::span<const std::byte>> receive_control() {
    if (!next_upper(last_now_)) return std::nullopt;
    return std::exchange(upper_, std::nullopt);
  }

  DevicePtr device_;
  std::unique_ptr<transport::Endpoint> endpoint_;
  std::unique_ptr<sdk::OffloadEngine> engine_;  // null: none
  sdk::OffloadEngine* receiver_;                // if it receives
  sdk::ReceiveQueue receives_;
  sdk::SendQueue sends_;
  sdk::CtsAnnouncer announcer_;
  sdk::GrantBook grants_;
  sdk::Pacer pacer_;
  sdk::LandingWindow window_;
  sdk::LandingReporter reporter_;
  sdk::Quiescence quiescence_;
  std::deque<core::ReceiveWorker> workers_;  // never moved: counters are read from other threads
  QueuePairGeometry geometry_;
  Duration rtt_;
  std::uint64_t overhead_;
  std::uint64_t controls_received_ = 0;
  std::uint64_t malformed_controls_ = 0;
  bool progress_owns_channels_ = true;
  bool drained_ = true;

 private:
  // Data that arrived tells which receives the sender knows of. The oldest it is not known to know, and the newest:
  // between them they keep up with any order of messages that are sent in order.
  void note_use() {
    while (announcer_.known() < announcer_.posted() && receives_.touched({announcer_.known()}))
      announcer_.seen_in_use(announcer_.known());
    if (announcer_.known() < announcer_.posted() && receives_.touched({announcer_.posted() - 1}))
      announcer_.seen_in_use(announcer_.posted() - 1);
  }

  void take_controls(TimePoint now) {
    last_now_ = now;
    controls_drained_ = false;
    upper_.reset();  // one that nobody fetched must not hold up the CTS behind it: it is lost, as any may be
    next_upper(now);
  }

  void handle(const sdk::ControlMessage& message, TimePoint now) {
    if (const auto* cts = std::get_if<sdk::ClearToSend>(&message)) grants_.handle(*cts);
    if (const auto* known = std::get_if<sdk::GrantsKnown>(&message)) announcer_.handle(*known);
    if (const auto* report = std::get_if<sdk::LandingReport>(&message)) window_.handle(*report, now);
    if (const auto* probe = std::get_if<sdk::LandingProbe>(&message); probe && endpoint_->facts().local_path)
      reporter_.handle(*probe);
  }

  [[nodiscard]] TimePoint next_injection(bool full, TimePoint now) const {
    if (sends_.empty()) return kNever;
    if (full) return now + kFullRetry;
    if (blocked()) return kNever;  // a landing report opens it; the probe has its own timeout
    if (sends_.limited()) return kNever;
    return std::max(pacer_.next_time(), now);
  }

  [[nodiscard]] bool blocked() const { return !sends_.empty() && window_.allowance() == 0; }

  void send(const auto& message, TimePoint now) {
    ByteWriter writer(control_out_);
    sdk::write_control(writer, message);
    endpoint_->send_control(writer.written(), now);
  }

  // Between a look at the channels and one at the control path: what a probe asks about has been looked for.
  void report_landing(TimePoint now) {
    if (!endpoint_->facts().local_path) return;
    // What came too late, or to nowhere, has left the socket, too.
    const transport::EndpointCounters counters = endpoint_->counters();
    const std::uint64_t packets =
        counters.packets_received + counters.dropped_not_exposed + counters.dropped_out_of_range;
    const std::uint64_t landed = counters.bytes_received + counters.bytes_dropped + packets * sdk::kPacketCost;
    if (const auto report = reporter_.poll(landed)) send(*report, now);
  }

  void send_due_controls(TimePoint now) {
    const auto due = [&](auto&& poll) {
      for (;;) {
        ByteWriter writer(control_out_);
        if (!poll(writer) || !writer.ok()) return;
        endpoint_->send_control(writer.written(), now);
      }
    };
    due([&](ByteWriter& w) { return announcer_.poll(w, now, rtt_); });
    due([&](ByteWriter& w) { return grants_.poll(w, now, rtt_); });
    if (const auto probe = window_.poll(blocked(), now)) send(*probe, now);
  }

  sdk::QpInfo local_;
  std::vector<std::byte> control_in_;
  std::vector<std::byte> control_out_;
  std::optional<std::span<const std::byte>> upper_;  // in control_in_
  int drives_without_control_ = 0;
  bool controls_drained_ = false;  // found so by this drive: looking again would be a system call
  TimePoint last_now_{};
  std::optional<TimePoint> empty_since_ = TimePoint{};  // the send queue, if the last inject() left it empty
};

QueuePair::QueuePair(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
QueuePair::~QueuePair() = default;

Result<std::unique_ptr<QueuePair>> QueuePair::create(DevicePtr device, const QueuePairOptions& options) {
  if (device == nullptr) return Error{ErrorCode::InvalidArgument, "no device: open_device() opens one"};
  std::uint64_t mtu = options.mtu.count;
  if (options.initial_rtt <= Duration::zero())
    return Error{ErrorCode::InvalidArgument,
                 fmt::format("an initial RTT of {} is not above 0", to_string(options.initial_rtt))};
  if (mtu == 0) {
    const Result<std::uint16_t> found = device->max_payload(options.remote);
    if (!found) return found.error();
    mtu = *found;
  }
  if (mtu % 8 != 0 || mtu < 64 || mtu > UINT16_MAX)
    return Error{ErrorCode::InvalidArgument,
                 fmt::format("MTU {} is not a multiple of 8 from 64 to {}", mtu, UINT16_MAX - 7)};
  const Result<core::TableGeometry> table = sdk::table_geometry(options, static_cast<std::uint32_t>(mtu));
  if (!table) return table.error();
  auto endpoint = device->create_endpoint({.token = options.token,
                                           .layout = table->layout,
                                           .slots = options.slots,
                                           .channels = options.channels,
                                           .generations = options.generations,
                                           .payload = static_cast<std::uint16_t>(mtu),
                                           .ecn = options.ecn});
  if (!endpoint) return endpoint.error();
  std::unique_ptr<sdk::OffloadEngine> engine;
  if (options.offload != nullptr) {
    auto attached = options.offload->attach({.geometry = *table,
                                             .mtu = static_cast<std::uint32_t>(mtu),
                                             .channels = options.channels,
                                             .burst = std::max<std::uint32_t>(1, (*endpoint)->facts().burst)});
    if (!attached) return attached.error();
    engine = std::move(attached).value();
  }
  return std::unique_ptr<QueuePair>(
      new QueuePair(std::make_unique<Impl>(std::move(device), std::move(endpoint).value(), std::move(engine), options,
                                           *table, static_cast<std::uint32_t>(mtu))));
}

const QueuePairGeometry& QueuePair::geometry() const {
  return impl_->geometry_;
}
std::string QueuePair::peer_name() const {
  return impl_->endpoint_->peer_name();
}
std::optional<Error> QueuePair::offload_failure() const {
  return impl_->engine_ == nullptr ? std::nullopt : impl_->engine_->failure();
}
std::vector<std::byte> QueuePair::info() const {
  return impl_->info().encode();
}
Result<void> QueuePair::connect(std::span<const std::byte> remote_info) {
  return impl_->connect(remote_info);
}

QueuePairCounters QueuePair::counters() const {
  const transport::EndpointCounters endpoint = impl_->endpoint_->counters();
  QueuePairCounters out;
  out.packets_sent = impl_->sends_.packets_sent();
  out.payload_bytes_sent = impl_->sends_.bytes_sent();
  for (const core::ReceiveWorker& worker : impl_->workers_) {
    out.packets_received += worker.counters().packets.get();
    out.duplicate_packets += worker.counters().duplicates.get();
    out.late_packets += worker.counters().late.get();
    out.out_of_range_packets += worker.counters().out_of_range.get();
  }
  if (impl_->receiver_ != nullptr) {
    const sdk::OffloadCounts counts = impl_->receiver_->counts();
    out.packets_received += counts.packets;
    out.duplicate_packets += counts.duplicates;
    out.late_packets += counts.late;
    out.out_of_range_packets += counts.out_of_range;
  }
  out.late_packets += endpoint.dropped_not_exposed;
  out.out_of_range_packets += endpoint.dropped_out_of_range;
  out.rejected_packets = endpoint.dropped_wrong_token + endpoint.dropped_malformed;
  out.host_drops = endpoint.dropped_by_host;
  out.link_drops = endpoint.dropped_by_link;
  const std::uint64_t packet_cost = impl_->geometry_.mtu + sdk::kPacketCost;
  out.peer_drops = (impl_->window_.lost() + packet_cost - 1) / packet_cost;
  out.controls_received = impl_->controls_received_;
  out.malformed_controls = impl_->malformed_controls_;
  out.send_calls = endpoint.send_calls;
  out.receive_calls = endpoint.receive_calls;
  out.congestion_marks = endpoint.congestion_marks;
  return out;
}

Result<RecvHandle> QueuePair::post_receive(std::span<std::byte> buffer, std::uint64_t tag) {
  if (Result<void> memory = impl_->check_memory(buffer); !memory) return memory.error();
  const auto posted = impl_->receives_.post(buffer, *impl_->endpoint_);
  if (!posted) return posted.error();
  impl_->announcer_.announce({.max_length = buffer.size(), .tag = tag, .aim = posted->aim});
  return posted->handle;
}
Result<ChunkBitmap> QueuePair::chunk_bitmap(RecvHandle handle) const {
  return impl_->receives_.chunk_bitmap(handle);
}
Result<std::uint64_t> QueuePair::chunk_packets(RecvHandle handle, std::uint32_t chunk, std::uint32_t from) const {
  return impl_->receives_.chunk_packets(handle, chunk, from);
}
Result<std::uint32_t> QueuePair::user_immediate(RecvHandle handle) const {
  return impl_->receives_.user_immediate(handle);
}
bool QueuePair::touched(RecvHandle handle) const {
  return impl_->receives_.touched(handle);
}
Result<void> QueuePair::set_length(RecvHandle handle, Bytes length) {
  return impl_->receives_.set_length(handle, length);
}
Result<void> QueuePair::complete(RecvHandle handle) {
  return impl_->complete(handle);
}

Result<SendHandle> QueuePair::start_stream(std::optional<std::uint32_t> user_immediate) {
  const sdk::Announcement* grant = impl_->grants_.find(impl_->sends_.next_number());
  if (grant == nullptr) {
    impl_->grants_.want();
    return Error{ErrorCode::Retry, fmt::format("no CTS yet for send {}", impl_->sends_.next_number())};
  }
  Result<SendHandle> started = impl_->sends_.start(user_immediate, *grant, *impl_->endpoint_);
  if (started) impl_->grants_.keep_from(impl_->sends_.next_number());
  return started;
}

Result<SendHandle> QueuePair::post_send(std::span<const std::byte> data, std::optional<std::uint32_t> user_immediate,
                                        std::uint32_t first_chunk) {
  if (Result<void> memory = impl_->check_memory(data); !memory) return memory.error();
  const std::uint64_t end = std::uint64_t{first_chunk} * impl_->geometry_.chunk_bytes + data.size();
  if (end > impl_->geometry_.max_message)
    return Error{ErrorCode::InvalidArgument,
                 fmt::format("a send of {} bytes from chunk {} on reaches past the largest message, {} bytes",
                             data.size(), first_chunk, impl_->geometry_.max_message)};
  if (data.empty() && impl_->sends_.is_past_the_slot(first_chunk * impl_->geometry_.packets_per_chunk))
    return Error{ErrorCode::InvalidArgument,
                 fmt::format("a send of no bytes from chunk {} on has no packet: the immediate's offsets end there",
                             first_chunk)};
  const sdk::Announcement* grant = impl_->grants_.find(impl_->sends_.next_number());
  if (grant != nullptr && end > grant->max_length)
    return Error{ErrorCode::InvalidArgument,
                 fmt::format("send {} of {} bytes from chunk {} on does not fit the receive of {} bytes posted for it",
                             impl_->sends_.next_number(), data.size(), first_chunk, grant->max_length)};
  if (!impl_->sends_.has_room(2)) return Error{ErrorCode::Retry, "the send queue is full"};
  const Result<SendHandle> handle = start_stream(user_immediate);
  if (!handle) return handle.error();
  // A message of no bytes still sends its end marker: the receiver sees that it was touched.
  if (Result<void> queued = impl_->sends_.extend(*handle, first_chunk * impl_->geometry_.packets_per_chunk, data, true);
      !queued)
    return queued.error();
  if (Result<void> ended = impl_->sends_.end(*handle); !ended) return ended.error();
  return *handle;
}

Result<void> QueuePair::continue_stream(SendHandle handle, std::uint32_t chunk, std::span<const std::byte> data) {
  if (Result<void> memory = impl_->check_memory(data); !memory) return memory;
  if (Result<void> fits = impl_->check_extent(handle, std::uint64_t{chunk} * impl_->geometry_.chunk_bytes, data.size());
      !fits)
    return fits;
  return impl_->sends_.extend(handle, chunk * impl_->geometry_.packets_per_chunk, data, true);
}

Result<void> QueuePair::send_packets(SendHandle handle, std::uint32_t first_packet, std::span<const std::byte> data,
                                     bool ends_message) {
  if (Result<void> memory = impl_->check_memory(data); !memory) return memory;
  if (Result<void> fits = impl_->check_extent(handle, std::uint64_t{first_packet} * impl_->geometry_.mtu, data.size());
      !fits)
    return fits;
  return impl_->sends_.extend(handle, first_packet, data, ends_message);
}
Result<void> QueuePair::end_stream(SendHandle handle) {
  return impl_->sends_.end(handle);
}
bool QueuePair::sent(SendHandle handle) const {
  return impl_->sends_.finished(handle, *impl_->endpoint_);
}

std::optional<Grant> QueuePair::next_grant() const {
  const sdk::Announcement* grant = impl_->grants_.find(impl_->sends_.next_number());
  if (grant == nullptr || !impl_->sends_.next_slot_free(*impl_->endpoint_)) return std::nullopt;
  return Grant{grant->max_length, grant->tag};
}
void QueuePair::want_grant() {
  if (impl_->grants_.find(impl_->sends_.next_number()) == nullptr) impl_->grants_.want();
}
std::uint64_t QueuePair::backlog() const {
  return impl_->sends_.backlog();
}

std::size_t QueuePair::max_control() const {
  return impl_->endpoint_->facts().max_control - sdk::kControlHeader;
}
bool QueuePair::send_control(std::span<const std::byte> datagram, TimePoint now) {
  return impl_->send_control(datagram, now);
}
std::optional<std::span<const std::byte>> QueuePair::receive_control() {
  return impl_->receive_control();
}

TimePoint QueuePair::progress(TimePoint now) {
  return impl_->progress(now);
}
TimePoint QueuePair::inject(TimePoint now) {
  return impl_->inject(now);
}
TimePoint QueuePair::next_timeout() const {
  return impl_->next_timeout();
}
std::size_t QueuePair::poll_channel(std::uint8_t channel, TimePoint now) {
  return impl_->poll_channel(channel, now);
}
bool QueuePair::wants_progress_after_poll() const {
  return impl_->endpoint_->facts().local_path || impl_->receiver_ != nullptr;
}
void QueuePair::own_channels(bool owned_by_progress) {
  impl_->progress_owns_channels_ = owned_by_progress;
}
int QueuePair::control_fd() const {
  return impl_->endpoint_->control_fd();
}
int QueuePair::channel_fd(std::uint8_t channel) const {
  return impl_->endpoint_->channel_fd(core::ChannelIndex(channel));
}
void QueuePair::set_rtt(Duration rtt) {
  impl_->rtt_ = rtt;
}
void QueuePair::set_rate(Bandwidth rate) {
  impl_->pacer_.set_rate(rate);
}
Bandwidth QueuePair::rate() const {
  return impl_->pacer_.rate();
}
void QueuePair::charge(Bytes bytes) {
  impl_->pacer_.spend(bytes.count);
}
void QueuePair::set_send_limit(std::uint64_t packets) {
  impl_->sends_.set_limit(packets);
}
bool QueuePair::drained() const {
  return impl_->drained_;
}
bool QueuePair::local_path() const {
  return impl_->endpoint_->facts().local_path;
}
bool QueuePair::carries_payload() const {
  return impl_->endpoint_->facts().carries_payload;
}

}  // namespace sdr

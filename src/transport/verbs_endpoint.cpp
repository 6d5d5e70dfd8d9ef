#include "transport/verbs_endpoint.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>

#include "transport/udp_address.hpp"

namespace sdr::transport {
namespace {

// On the wire beside the payload: IP, UDP, BTH, RETH, immediate, ICRC (InfiniBand specification, annex A17).
constexpr std::uint16_t overhead(bool ipv4) {
  return static_cast<std::uint16_t>((ipv4 ? 20 : 40) + 8 + 12 + 16 + 4 + 4);
}

// How often a failed queue pair is tried again while its port is away.
constexpr Duration kMendEvery = std::chrono::milliseconds(20);

Error mismatch(std::string message) {
  return {ErrorCode::Mismatch, std::move(message)};
}

std::string list(std::span<const VerbsGid> gids) {
  std::string text;
  for (const VerbsGid& gid : gids) {
    text += fmt::format("{}{} (RoCE v{})", text.empty() ? "" : ", ", gid.to_string(), static_cast<int>(gid.version));
  }
  return text;
}

}  // namespace

Result<std::unique_ptr<Endpoint>> VerbsEndpoint::make(const std::shared_ptr<VerbsPort>& port,
                                                      const std::shared_ptr<VerbsMemory>& memory,
                                                      const VerbsOptions& verbs, const EndpointOptions& options) {
  const auto ready = port->ready();
  if (!ready) return ready.error();
  auto gids = port->gids_for(verbs.gid);
  if (!gids) return gids.error();
  auto events = VerbsEvents::make(*port);
  if (!events) return events.error();
  std::unique_ptr<VerbsEndpoint> made(new VerbsEndpoint(port, std::move(events).value(), options));
  made->gids_ = std::move(gids).value();
  made->port_mtu_ = verbs::bytes_of(ready->active_mtu);
  if (Result<void> complete = made->make_parts(memory, verbs); !complete) return complete.error();
  return std::unique_ptr<Endpoint>(std::move(made));
}

Result<void> VerbsEndpoint::make_parts(const std::shared_ptr<VerbsMemory>& memory, const VerbsOptions& verbs) {
  // Twice, for what is left in it of a queue pair that failed and was connected again.
  auto sends = WakingQueue::make(*port_, events_, 2 * VerbsSender::kDepth);
  if (!sends) return sends.error();
  sends_ = std::move(sends).value();
  auto keys = VerbsReceiveKeys::make(port_, memory, options_.slots, port_->keys(verbs.keys), gids_.front());
  if (!keys) return keys.error();
  keys_ = std::move(keys).value();
  auto sender = VerbsSender::make(*port_, memory, options_, sends_->get());
  if (!sender) return sender.error();
  sender_ = std::move(sender).value();
  auto control = VerbsControl::make(*port_, options_.token, events_);
  if (!control) return control.error();
  control_ = std::move(control).value();

  const std::uint32_t depth = VerbsChannel::receive_depth(*port_, options_.generations);
  const UcQueuePair::Depths depths{
      .sends = VerbsSender::kDepth, .receives = depth, .inline_bytes = VerbsSender::kInline, .alarm = &alarm_};
  for (std::uint8_t c = 0; c < options_.channels; ++c) {
    auto channel = VerbsChannel::make(*port_, options_, c, sends_->get(), depths, exposures_);
    if (!channel) return channel.error();
    channels_.push_back(std::move(channel).value());
    for (std::uint8_t g = 0; g < options_.generations; ++g)
      sender_->add(channels_.back()->queue_pair(core::Generation(g)));
  }
  facts_ = {.packet_overhead = overhead(gids_.front().is_ipv4()),
            .max_control = VerbsControl::kMaxControl,
            .aim_size = verbs_wire::kAimSize,
            // All packets may come in on one queue pair, a batch of whose requests may not have been replaced yet.
            .receive_buffer = (depth - UcQueuePair::kRefill) * options_.payload,
            .burst = VerbsSender::kChain,
            .copies_on_write = false};
  return {};
}

std::vector<std::byte> VerbsEndpoint::info() const {
  verbs_wire::PeerInfo info{.payload = options_.payload,
                            .port_mtu = port_mtu_,
                            .channels = options_.channels,
                            .generations = options_.generations,
                            .token = options_.token,
                            .control_qpn = control_->number(),
                            .control_qkey = control_->qkey(),
                            .gids = gids_,
                            .qpns = {}};
  for (const auto& channel : channels_) {
    for (std::uint8_t g = 0; g < options_.generations; ++g)
      info.qpns.push_back(channel->queue_pair(core::Generation(g)).number());
  }
  return verbs_wire::encode_info(info);
}

Result<void> VerbsEndpoint::connect(std::span<const std::byte> remote_info) {
  auto parsed = verbs_wire::parse_info(remote_info);
  if (!parsed) return parsed.error();
  peer_ = std::move(parsed).value();
  if (peer_.channels != options_.channels) {
    return mismatch(fmt::format("this end has {} channels, the peer {}", options_.channels, peer_.channels));
  }
  if (peer_.generations != options_.generations) {
    return mismatch(fmt::format("this end has {} generations, the peer {}", options_.generations, peer_.generations));
  }
  if (peer_.payload != options_.payload) {
    return mismatch(
        fmt::format("this end has a payload of {} bytes a packet, the peer {}", options_.payload, peer_.payload));
  }
  const std::uint16_t mtu = std::min(port_mtu_, peer_.port_mtu);
  if (mtu < options_.payload) {
    return mismatch(
        fmt::format("a payload of {} bytes is beyond the RDMA MTU on the way: {} here, {} at the peer; "
                    "raise the MTU of the network interface there, or ask for a smaller packet",
                    options_.payload, port_mtu_, peer_.port_mtu));
  }
  const auto chosen = choose_gids(gids_, peer_.gids);
  if (!chosen) {
    return mismatch(
        fmt::format("no RoCE address of this end can talk to one of the peer's: {} here, {} there; both "
                    "need one of the same IP version and RoCE version",
                    list(gids_), list(peer_.gids)));
  }
  path_ = {.own = chosen->own, .peer = chosen->peer, .mtu = verbs::mtu_within(mtu)};
  for (std::uint8_t c = 0; c < options_.channels; ++c) {
    for (std::uint8_t g = 0; g < options_.generations; ++g) {
      if (auto done = connect_data(core::ChannelIndex(c), core::Generation(g)); !done) return done;
    }
  }
  if (auto done = connect_control(); !done) return done;
  facts_.local_path = SocketAddress(path_.peer.address(), 0).is_local();
  connected_ = true;
  return {};
}

Result<void> VerbsEndpoint::connect_data(core::ChannelIndex channel, core::Generation generation) {
  const std::size_t number = std::size_t{channel.value} * options_.generations + generation.value;
  return channels_[channel.value]->connect(*port_, path_, generation, peer_.qpns[number]);
}

Result<void> VerbsEndpoint::connect_control() {
  return control_->connect(*port_, path_,
                           {.number = peer_.control_qpn, .qkey = peer_.control_qkey, .token = peer_.token});
}

std::string VerbsEndpoint::peer_name() const {
  if (!connected_) return "nobody yet";
  std::string name = fmt::format("{} over RDMA device {}", path_.peer.to_string(), port_->name());
  if (!fault_.empty()) name += fmt::format(" ({})", fault_);
  return name;
}

EndpointCounters VerbsEndpoint::counters() const {
  EndpointCounters sum;
  for (const auto& channel : channels_) channel->add_counters(sum);
  sender_->add_counters(sum);
  control_->add_counters(sum);
  return sum;
}

Result<Aim> VerbsEndpoint::expose(core::SlotIndex slot, core::Generation generation, std::span<std::byte> buffer) {
  assert(slot.value < options_.slots && generation.value < options_.generations);
  Result<verbs_wire::Target> target = keys_->take(slot, buffer);
  if (!target) return target.error();
  exposures_.expose(slot, generation, target->length);
  target->tag = verbs_wire::tag_of(slot, generation);
  return verbs_wire::encode_aim(*target);
}

void VerbsEndpoint::retract(core::SlotIndex slot) {
  assert(slot.value < options_.slots);
  exposures_.retract(slot);
  keys_->drop(slot);
}

std::size_t VerbsEndpoint::write(std::span<const Packet> packets, TimePoint /*now*/) {
  return connected_ ? sender_->write(packets) : 0;
}

bool VerbsEndpoint::send_control(std::span<const std::byte> datagram, TimePoint /*now*/) {
  return connected_ && control_->send(datagram);
}

std::optional<std::size_t> VerbsEndpoint::receive_control(std::span<std::byte> into, TimePoint /*now*/) {
  for (;;) {
    const auto size = control_->receive(into.first(std::min<std::size_t>(into.size(), facts_.max_control)));
    control_empty_ = !size;
    if (size) return size;
    // Before a sleep on control_fd(): see that it wakes, for finished sends too.
    events_.take();
    watch_sends();
    if (!control_->arm()) return std::nullopt;
  }
}

void VerbsEndpoint::watch_sends() {
  do {
    sender_->reap();
  } while (!sender_->idle() && sends_->arm());
}

void VerbsEndpoint::advance(TimePoint now) {
  watch_sends();
  if (connected_ && broken() && now >= mend_at_) mend(now);
}

TimePoint VerbsEndpoint::next_event() const {
  // Whoever left datagrams unread is not woken for them.
  if (connected_ && !control_empty_) return TimePoint::min();
  return connected_ && broken() ? mend_at_ : kNever;
}

bool VerbsEndpoint::broken() const {
  return alarm_.load(std::memory_order_acquire) || control_->failure() != IBV_WC_SUCCESS;
}

void VerbsEndpoint::mend(TimePoint now) {
  mend_at_ = now + kMendEvery;
  alarm_.store(false, std::memory_order_release);
  const Result<void> mended = reconnect_failed();
  if (mended) {
    fault_.clear();
    return;
  }
  fault_ = mended.error().message;
  alarm_.store(true, std::memory_order_release);
}

Result<void> VerbsEndpoint::reconnect_failed() {
  if (const auto ready = port_->ready(); !ready) return ready.error();
  // An address that went and came again may have another place in the table.
  const std::vector<VerbsGid> table = port_->gids();
  const auto own = std::find_if(table.begin(), table.end(), [&](const VerbsGid& gid) {
    return gid.bytes == path_.own.bytes && gid.version == path_.own.version;
  });
  if (own == table.end()) {
    return Error{ErrorCode::System,
                 fmt::format("RDMA device {} has lost its address {}", port_->name(), path_.own.to_string())};
  }
  path_.own.index = own->index;
  for (std::uint8_t c = 0; c < options_.channels; ++c) {
    for (std::uint8_t g = 0; g < options_.generations; ++g) {
      const core::Generation generation(g);
      if (!channels_[c]->queue_pair(generation).failed()) continue;
      Result<void> connected = connect_data(core::ChannelIndex(c), generation);
      sender_->forget(std::size_t{c} * options_.generations + g);
      if (!connected) return connected;
    }
  }
  if (control_->failure() != IBV_WC_SUCCESS) return connect_control();
  return {};
}

}  // namespace sdr::transport

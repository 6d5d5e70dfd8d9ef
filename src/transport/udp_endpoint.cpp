#include "transport/udp_endpoint.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cassert>
#include <cstring>

#include "core/scratch.hpp"

namespace sdr::transport {
namespace {

using udp_wire::kHeaderSize;

constexpr std::size_t kUdpHeader = 8;
constexpr std::size_t kBatchRoom = UdpSocket::kBatchRoom;
// System calls in one poll(), so that a flood of datagrams that are not ours cannot hold the thread.
constexpr std::size_t kReceiveCalls = 64;

// Of the socket's receive buffer, on a path whose sender fills it as far as it may (EndpointFacts::receive_buffer).
constexpr std::uint32_t kMostUsedOfReceiveBuffer = 8 << 20;

// Batches on their way in or out. The thread's own: it stays in the cache however many endpoints the thread drives.
std::span<std::byte> hot_buffer() {
  alignas(64) static thread_local std::array<std::byte, kBatchRoom * UdpSocket::kMaxBatches> buffer;
  return buffer;
}

// Copies as a NIC does: a packet that was sent again may be written by two threads at once, the same bytes in the same
// place. Each byte is then whichever write came last, which C++ promises for atomic stores alone; memcpy does the same
// on every machine, and only ThreadSanitizer can tell. It goes on to see what is wrong: a touch without order by the
// owner.
void store_bytes(std::byte* to, std::span<const std::byte> from) {
#if defined(__SANITIZE_THREAD__)
  for (const std::byte byte : from) std::atomic_ref(*to++).store(byte, std::memory_order_relaxed);
#else
  std::memcpy(to, from.data(), from.size());
#endif
}

// Copies `from` to the front of `room`. Where that much is under way, a user's memory is in no cache, and a copy alone
// waits for each line of it in turn; data mostly lands in order, so what lies a little further on is fetched meanwhile
// (docs/decisions/0006-udp-data-path.md, "Fetched ahead"). A wrong guess costs the fetch.
void copy_to_user(std::span<std::byte> room, std::span<const std::byte> from) {
  constexpr std::size_t kAhead = 4096;
  constexpr std::size_t kLine = 64;
  const std::size_t end = std::min(room.size(), from.size() + kAhead);
  for (std::size_t at = kAhead; at < end; at += kLine) __builtin_prefetch(&room[at], 1);
  store_bytes(room.data(), from);
}

// How much payload fits a receive buffer in which the kernel counts whole allocations: for each datagram a slab of the
// next power of two above payload, headers and the kernel's own tail (320 bytes), and a descriptor of 256. On loopback
// this is exact to the packet (coalesced datagrams share theirs and take less). A quarter is held back, because the
// kernel may keep what was read on the account until that much has gathered (net/ipv4/udp.c, udp_rmem_release).
// Nor is more used than the last-level cache is likely to hold: what waits longer comes out of memory.
std::uint32_t usable_receive_buffer(std::uint32_t limit, std::uint16_t payload) {
  limit = std::min(limit, kMostUsedOfReceiveBuffer);
  const std::size_t slab = std::bit_ceil(payload + kHeaderSize + 128 + 320);
  const std::size_t packets = std::size_t{limit} / 4 * 3 / (slab + 256);
  return static_cast<std::uint32_t>(packets * payload);
}

}  // namespace

UdpEndpoint::UdpEndpoint(const EndpointOptions& options)
    : options_(options),
      channels_(std::make_unique<Channel[]>(options.channels)),
      exposures_(std::make_unique<Exposure[]>(options.slots)) {}

Result<std::unique_ptr<Endpoint>> UdpEndpoint::open(const EndpointOptions& options, const UdpOptions& udp,
                                                    const SocketAddress& bind_to, const SocketAddress& advertised) {
  std::unique_ptr<UdpEndpoint> made(new UdpEndpoint(options));
  const auto address = [&](int n) {
    return bind_to.with_port(udp.base_port == 0 ? 0 : static_cast<std::uint16_t>(udp.base_port + n));
  };
  auto control = UdpSocket::open(address(0), {.segmentation = false, .coalescing = false});
  if (!control) return control.error();
  made->control_ = std::move(*control);
  for (int c = 0; c < options.channels; ++c) {
    auto socket = UdpSocket::open(address(1 + c),
                                  {.segmentation = udp.segmentation, .coalescing = udp.coalescing, .ecn = options.ecn});
    if (!socket) return socket.error();
    made->channels_[static_cast<std::size_t>(c)].socket = std::move(*socket);
  }
  made->describe(advertised);
  return std::unique_ptr<Endpoint>(std::move(made));
}

void UdpEndpoint::describe(const SocketAddress& advertised) {
  advertised_ = advertised;
  facts_ = {.packet_overhead = static_cast<std::uint16_t>(kHeaderSize + kUdpHeader + (advertised.is_ipv6() ? 40 : 20)),
            .max_control = UdpDevice::kMaxControl,
            // Of one socket, because all packets may come in on one channel.
            .receive_buffer = usable_receive_buffer(channels_[0].socket.receive_buffer(), options_.payload),
            .burst = static_cast<std::uint16_t>(std::clamp<std::size_t>(
                UdpSocket::kMaxBatchBytes / (kHeaderSize + options_.payload), 1, UdpSocket::kMaxSegments))};
}

std::vector<std::byte> UdpEndpoint::info() const {
  udp_wire::PeerInfo info{.ip_version = static_cast<std::uint8_t>(advertised_.is_ipv6() ? 6 : 4),
                          .payload = options_.payload,
                          .token = options_.token,
                          .control_port = control_.local().port()};
  const auto address = advertised_.address_bytes();
  std::copy(address.begin(), address.end(), info.address.begin());
  for (std::size_t c = 0; c < options_.channels; ++c) info.data_ports.push_back(channels_[c].socket.local().port());
  return udp_wire::encode_info(info);
}

Result<udp_wire::PeerInfo> UdpEndpoint::compatible_peer(std::span<const std::byte> remote_info) const {
  auto parsed = udp_wire::parse_info(remote_info);
  if (!parsed) return parsed;
  const udp_wire::PeerInfo& peer = *parsed;
  const int own_version = advertised_.is_ipv6() ? 6 : 4;
  if (peer.ip_version != own_version) {
    return Error{ErrorCode::Mismatch, fmt::format("this end uses IPv{}, the peer IPv{}", own_version, peer.ip_version)};
  }
  if (peer.data_ports.size() != options_.channels) {
    return Error{ErrorCode::Mismatch,
                 fmt::format("this end has {} channels, the peer {}", options_.channels, peer.data_ports.size())};
  }
  if (peer.payload != options_.payload) {
    return Error{ErrorCode::Mismatch, fmt::format("this end has a payload of {} bytes a packet, the peer {}",
                                                  options_.payload, peer.payload)};
  }
  return parsed;
}

Result<void> UdpEndpoint::connect(std::span<const std::byte> remote_info) {
  const auto parsed = compatible_peer(remote_info);
  if (!parsed) return parsed.error();
  const SocketAddress local = control_.local();
  const auto address = std::span(parsed->address).first(local.address_bytes().size());
  const SocketAddress peer = SocketAddress(address, parsed->control_port).with_scope_of(local);
  if (peer.is_unspecified()) {
    return Error{ErrorCode::InvalidArgument,
                 fmt::format("the peer advertises {}, which is no address to send to", peer.host())};
  }
  if (auto done = control_.connect(peer); !done) return done;
  const auto mtu = control_.path_mtu();
  if (!mtu) return mtu.error();
  const auto carries = [&](std::uint16_t payload, const char* what) -> Result<void> {
    if (payload + std::uint32_t{facts_.packet_overhead} <= *mtu) return {};
    return Error{ErrorCode::InvalidArgument,
                 fmt::format("{} of {} bytes and {} bytes of headers exceed the MTU of {} bytes on the path to {}",
                             what, payload, facts_.packet_overhead, *mtu, peer.host())};
  };
  if (auto fits = carries(options_.payload, "a payload"); !fits) return fits;
  if (auto fits = carries(facts_.max_control, "a control datagram"); !fits) return fits;
  for (std::size_t c = 0; c < options_.channels; ++c) {
    if (auto done = channels_[c].socket.connect(peer.with_port(parsed->data_ports[c])); !done) return done;
  }
  peer_token_ = parsed->token;
  peer_name_ = peer.to_string();
  facts_.local_path = peer.is_local();
  connected_ = true;
  return {};
}

EndpointCounters UdpEndpoint::counters() const {
  EndpointCounters sum{.packets_sent = packets_sent_.get(), .send_calls = send_calls_.get()};
  sum.dropped_by_host = packets_lost_.get();
  const auto add = [&](const Tally<Count>& tally) {
    sum.packets_received += tally.received.get();
    sum.bytes_received += tally.bytes.get();
    sum.dropped_wrong_token += tally.wrong_token.get();
    sum.dropped_malformed += tally.malformed.get();
    sum.dropped_out_of_range += tally.out_of_range.get();
    sum.dropped_not_exposed += tally.not_exposed.get();
    sum.bytes_dropped += tally.bytes_dropped.get();
    sum.dropped_by_host += tally.overflow.get();
    sum.congestion_marks += tally.marked.get();
    sum.receive_calls += tally.calls.get();
  };
  add(control_tally_);
  for (std::size_t c = 0; c < options_.channels; ++c) {
    add(channels_[c].tally);
    sum.dropped_by_host += channels_[c].dropped_by_host.get();
  }
  return sum;
}

Result<Aim> UdpEndpoint::expose(core::SlotIndex slot, core::Generation generation, std::span<std::byte> buffer) {
  assert(slot.value < options_.slots && generation.value < options_.generations);
  Exposure& exposure = exposures_[slot.value];
  exposure.base = buffer.data();
  exposure.length = buffer.size();
  exposure.state.store(kActive | generation.value, std::memory_order_release);
  return Aim{};
}

void UdpEndpoint::retract(core::SlotIndex slot) {
  assert(slot.value < options_.slots);
  // Sequentially consistent, so that the caller may look next at whether a poll() is under way: either that one sees
  // the slot gone, or the caller sees that one.
  exposures_[slot.value].state.store(0, std::memory_order_seq_cst);
}

// Puts the payload of one datagram where it belongs; false when it belongs nowhere, and `tally` says why.
bool UdpEndpoint::place(std::span<const std::byte> datagram, std::uint8_t channel, core::Completion& out,
                        Tally<std::uint64_t>& tally) {
  const auto header = udp_wire::parse_data(datagram);
  if (!header) {
    ++tally.malformed;
    return false;
  }
  if (header->token != options_.token) {
    ++tally.wrong_token;
    return false;
  }
  const auto drop = [&](std::uint64_t& reason) {
    ++reason;
    tally.bytes_dropped += header->length;
    return false;
  };
  const core::Immediate where = options_.layout.decode(header->immediate);
  if (where.slot.value >= options_.slots || header->length > options_.payload) return drop(tally.out_of_range);
  const Exposure& exposure = exposures_[where.slot.value];
  if (exposure.state.load(std::memory_order_seq_cst) != (kActive | header->generation)) return drop(tally.not_exposed);
  if (header->length != 0) {
    const std::uint64_t begin = std::uint64_t{where.offset.value} * options_.payload;
    if (begin + header->length > exposure.length) return drop(tally.out_of_range);
    copy_to_user({exposure.base + begin, exposure.length - begin}, datagram.subspan(kHeaderSize, header->length));
  }
  out = {
      .immediate = header->immediate, .length = header->length, .generation = header->generation, .channel = channel};
  ++tally.received;
  tally.bytes += header->length;
  return true;
}

std::size_t UdpEndpoint::poll(core::ChannelIndex channel, std::span<core::Completion> out, TimePoint /*now*/) {
  Channel& from = channels_[channel.value];
  const std::span<std::byte> buffer = hot_buffer();
  core::Scratch<std::span<const std::byte>, UdpSocket::kMaxReceived> scratch;
  const auto datagrams = scratch.values();
  static_assert(kPollBatch >= UdpSocket::kMaxReceived, "there is room for one call at least");
  Tally<std::uint64_t> tally;
  std::size_t filled = 0;
  while (out.size() - filled >= UdpSocket::kMaxReceived && tally.calls < kReceiveCalls) {
    const auto received = from.socket.receive(buffer, kHeaderSize + options_.payload, datagrams);
    ++tally.calls;
    if (received.count == 0) break;
    tally.overflow += received.overflow;
    tally.marked += received.marked;
    if (received.dropped != 0) from.dropped_by_host.set(received.dropped);
    for (std::size_t i = 0; i < received.count; ++i) {
      if (place(datagrams[i], channel.value, out[filled], tally)) ++filled;
    }
    // One that was dropped is no news for the caller: go on looking then.
    if (received.drained && filled != 0) break;
  }
  from.tally.received.add(tally.received);
  from.tally.bytes.add(tally.bytes);
  from.tally.wrong_token.add(tally.wrong_token);
  from.tally.malformed.add(tally.malformed);
  from.tally.out_of_range.add(tally.out_of_range);
  from.tally.not_exposed.add(tally.not_exposed);
  from.tally.bytes_dropped.add(tally.bytes_dropped);
  from.tally.overflow.add(tally.overflow);
  from.tally.marked.add(tally.marked);
  from.tally.calls.add(tally.calls);
  return filled;
}

// The longest run at the front of `packets` that the kernel can cut up, in `buffer` as it goes on the wire.
SegmentBatch UdpEndpoint::assemble(std::span<const Packet> packets, std::span<std::byte> buffer) const {
  SegmentBatch batch{.segment = kHeaderSize + packets.front().length};
  std::size_t used = 0;
  for (const Packet& packet : packets.first(std::min(packets.size(), UdpSocket::kMaxSegments))) {
    const std::size_t size = kHeaderSize + packet.length;
    const bool first = batch.count == 0;
    if (!first && (packet.channel != packets.front().channel || size > batch.segment ||
                   used + size > UdpSocket::kMaxBatchBytes)) {
      break;
    }
    udp_wire::encode_data(&buffer[used], {.token = peer_token_,
                                          .immediate = packet.immediate,
                                          .length = packet.length,
                                          .generation = packet.generation.value});
    if (packet.length != 0) std::memcpy(&buffer[used + kHeaderSize], packet.local, packet.length);
    used += size;
    ++batch.count;
    if (size < batch.segment) break;  // a shorter one ends the batch
  }
  batch.bytes = buffer.first(used);
  return batch;
}

std::size_t UdpEndpoint::write(std::span<const Packet> packets, TimePoint /*now*/) {
  if (!connected_) return 0;
  std::size_t taken = 0;
  std::size_t lost = 0;
  std::size_t calls = 0;
  while (taken < packets.size()) {
    // As many batches as one system call takes, all of one channel.
    std::array<SegmentBatch, UdpSocket::kMaxBatches> batches;
    const core::ChannelIndex channel = packets[taken].channel;
    std::size_t count = 0;
    std::size_t offered = 0;
    for (auto left = packets.subspan(taken); count < batches.size() && !left.empty() && left.front().channel == channel;
         ++count) {
      batches[count] = assemble(left, hot_buffer().subspan(count * kBatchRoom, kBatchRoom));
      offered += batches[count].count;
      left = left.subspan(batches[count].count);
    }
    const UdpSocket::Sent sent = channels_[channel.value].socket.send(std::span(batches).first(count));
    taken += sent.taken;
    lost += sent.lost;
    calls += sent.calls;
    if (sent.taken < offered) break;
  }
  packets_sent_.add(taken - lost);
  packets_lost_.add(lost);
  send_calls_.add(calls);
  return taken;
}

std::uint64_t UdpEndpoint::writes_finished() const {
  return packets_sent_.get() + packets_lost_.get();
}

bool UdpEndpoint::send_control(std::span<const std::byte> datagram, TimePoint /*now*/) {
  if (!connected_ || datagram.size() > facts_.max_control) return false;
  send_calls_.add(1);
  return control_.send(udp_wire::encode_control(peer_token_), datagram);
}

std::optional<std::size_t> UdpEndpoint::receive_control(std::span<std::byte> into, TimePoint /*now*/) {
  std::array<std::byte, kHeaderSize> header;
  for (std::size_t i = 0; i < kReceiveCalls; ++i) {
    control_tally_.calls.add(1);
    const auto size = control_.receive(header, into);
    if (!size) return std::nullopt;
    const auto token = udp_wire::parse_control(std::span(header).first(std::min(*size, kHeaderSize)));
    if (!token || *size - kHeaderSize > std::min<std::size_t>(into.size(), facts_.max_control)) {
      control_tally_.malformed.add(1);
    } else if (*token != options_.token) {
      control_tally_.wrong_token.add(1);
    } else {
      return *size - kHeaderSize;
    }
  }
  return std::nullopt;
}

}  // namespace sdr::transport

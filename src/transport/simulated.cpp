#include "transport/simulated.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>

#include "units/byte_codec.hpp"

namespace sdr::transport {
namespace {

// info(): the magic, the site, the number of the endpoint at it, its token.
constexpr std::uint32_t kInfoMagic = 0x53494D31;  // "SIM1"
constexpr std::size_t kInfoSize = 4 + 1 + 4 + 8;

// Of 16 bits: nothing in virtual time asks for less.
constexpr std::uint16_t kMaxPayload = 65528;

constexpr char letter(Site site) {
  return site == Site::A ? 'A' : 'B';
}

Error refused(std::string message) {
  return {ErrorCode::InvalidArgument, std::move(message)};
}

}  // namespace

SimulatedEndpoint::SimulatedEndpoint(SimulatedNetwork& network, Site site, std::uint32_t number,
                                     const EndpointOptions& options)
    : network_(network),
      site_(site),
      number_(number),
      facts_{.packet_overhead = network.options().packet_overhead,
             .max_control = network.options().max_control,
             .carries_payload = network.options().carry_payload},
      ecn_(options.ecn),
      inbox_(
          std::make_shared<SimulatedInbox>(options, network.options().carry_payload, network.options().max_control)) {}

SimulatedEndpoint::~SimulatedEndpoint() {
  inbox_->close();
  network_.endpoints_[SimulatedNetwork::index(site_)][number_] = nullptr;
}

void SimulatedEndpoint::inject(const Packet& packet, std::uint64_t token, TimePoint at) {
  inbox_->deliver(packet, token, at, true);
}

void SimulatedEndpoint::inject_control(std::span<const std::byte> datagram, std::uint64_t token, TimePoint at) {
  assert(datagram.size() <= facts_.max_control);
  inbox_->deliver_control(datagram, token, at, true);
}

EndpointCounters SimulatedEndpoint::counters() const {
  EndpointCounters counters = inbox_->counters();
  counters.packets_sent = packets_sent_;
  counters.dropped_by_link = dropped_by_link_;
  return counters;
}

std::vector<std::byte> SimulatedEndpoint::info() const {
  std::vector<std::byte> info(kInfoSize);
  ByteWriter writer(info);
  writer.u32(kInfoMagic);
  writer.u8(static_cast<std::uint8_t>(site_));
  writer.u32(number_);
  writer.u64(inbox_->token());
  return info;
}

Result<void> SimulatedEndpoint::connect(std::span<const std::byte> remote_info) {
  ByteReader reader(remote_info);
  const std::uint32_t magic = reader.u32();
  const std::uint8_t site = reader.u8();
  const std::uint32_t number = reader.u32();
  const std::uint64_t token = reader.u64();
  if (!reader.ok() || reader.left() != 0 || magic != kInfoMagic || site > 1) {
    return refused(
        fmt::format("info of {} bytes is not that of a simulated endpoint ({} bytes)", remote_info.size(), kInfoSize));
  }
  const Site peer_site = static_cast<Site>(site);
  if (peer_site == site_)
    return refused(fmt::format("both endpoints are at site {}; the link goes to the other", letter(site_)));
  SimulatedEndpoint* const peer = network_.endpoint(peer_site, number);
  if (peer == nullptr || peer->token() != token) {
    return refused(
        fmt::format("there is no endpoint {} at site {} of this simulated network", number, letter(peer_site)));
  }
  peer_ = peer->inbox_;
  peer_name_ = fmt::format("simulated site {}, endpoint {}", letter(peer_site), number);
  return {};
}

std::string SimulatedEndpoint::peer_name() const {
  return peer_name_;
}

Result<Aim> SimulatedEndpoint::expose(core::SlotIndex slot, core::Generation generation, std::span<std::byte> buffer) {
  inbox_->expose(slot, generation, buffer);
  return Aim{};
}

std::size_t SimulatedEndpoint::write(std::span<const Packet> packets, TimePoint now) {
  if (!peer_) return 0;
  SimulatedWire& wire = network_.wire(site_);
  for (const Packet& packet : packets) {
    if (!wire.send(packet, peer_->token(), *peer_, ecn_, now)) dropped_by_link_++;
  }
  packets_sent_ += packets.size();
  return packets.size();
}

bool SimulatedEndpoint::send_control(std::span<const std::byte> datagram, TimePoint now) {
  if (!peer_ || datagram.size() > facts_.max_control) return false;
  if (!network_.wire(site_).send_control(datagram, peer_->token(), *peer_, ecn_, now)) dropped_by_link_++;
  return true;  // queued; what the link does to it nobody is told
}

std::string SimulatedDevice::name() const {
  return fmt::format("simulated site {}", letter(site_));
}

Result<std::uint16_t> SimulatedDevice::max_payload(const std::string&) const {
  const std::uint16_t overhead = network_.options().packet_overhead;
  return network_.wire(site_).model().spec().payload_within(overhead);
}

Result<std::unique_ptr<Endpoint>> SimulatedDevice::create_endpoint(const EndpointOptions& options) {
  if (Result<void> fine = check(options, kMaxPayload); !fine) return fine.error();
  const simulation::LinkSpec& link = network_.wire(site_).model().spec();
  const std::uint16_t overhead = network_.options().packet_overhead;
  if (link.mtu_given && options.payload > link.payload_within(overhead)) {
    return refused(
        fmt::format("payload {} and {} bytes of headers are more than the link's mtu {} (payload at most {})",
                    options.payload, overhead, link.mtu, link.payload_within(overhead)));
  }
  auto& endpoints = network_.endpoints_[SimulatedNetwork::index(site_)];
  auto made =
      std::make_unique<SimulatedEndpoint>(network_, site_, static_cast<std::uint32_t>(endpoints.size()), options);
  endpoints.push_back(made.get());
  return std::unique_ptr<Endpoint>(std::move(made));
}

SimulatedNetwork::SimulatedNetwork(const SimulatedOptions& options)
    : options_(options),
      wires_{
          SimulatedWire({options.link, simulation::Direction::Forward}, options.packet_overhead, options.carry_payload),
          SimulatedWire({options.way_back.value_or(options.link), simulation::Direction::Backward},
                        options.packet_overhead, options.carry_payload)},
      device_a_(*this, Site::A),
      device_b_(*this, Site::B) {}

SimulatedEndpoint* SimulatedNetwork::endpoint(Site site, std::uint32_t number) const {
  const auto& endpoints = endpoints_[index(site)];
  return number < endpoints.size() ? endpoints[number] : nullptr;
}

TimePoint SimulatedNetwork::next_event() const {
  TimePoint first = kNever;
  for (const auto& site : endpoints_) {
    for (const SimulatedEndpoint* endpoint : site) {
      if (endpoint != nullptr) first = std::min(first, endpoint->next_event());
    }
  }
  return first;
}

void SimulatedNetwork::set_link(const simulation::LinkSpec& link) {
  wire(Site::A).set_model({link, simulation::Direction::Forward});
  wire(Site::B).set_model({link, simulation::Direction::Backward});
}

void SimulatedNetwork::share(simulation::SharedWay& forward, simulation::SharedWay& backward, Duration further) {
  // An odd nanosecond goes to the way back, as in the link model.
  wire(Site::A).share(forward, further / 2);
  wire(Site::B).share(backward, further - further / 2);
}

void SimulatedNetwork::release_all(Site from, TimePoint at) {
  while (held(from) != 0) release(from, 0, at);
}

}  // namespace sdr::transport

#include "sdr/probe_sockets.hpp"

#include <fmt/core.h>
#include <netinet/in.h>
#include <poll.h>

#include <algorithm>
#include <ctime>

#include "runtime/clock.hpp"

namespace sdr::cli {
namespace {

using transport::SegmentBatch;
using transport::SocketAddress;
using transport::UdpSocket;

// Of a datagram only the header matters: what is longer is cut off, and costs no copy.
constexpr std::size_t kKept = 64;
constexpr std::size_t kBufferBytes = 64 * (kKept + 16);

timespec timespec_of(Duration duration) {
  constexpr std::int64_t kSecond = 1'000'000'000;
  const std::int64_t ns = std::max<std::int64_t>(duration.count(), 0);
  return {.tv_sec = ns / kSecond, .tv_nsec = ns % kSecond};
}

}  // namespace

Result<ProbeSockets> ProbeSockets::open(const SocketAddress& local, std::uint32_t flows, std::uint16_t base_port) {
  if (base_port != 0 && base_port + flows > UINT16_MAX) {
    return Error{ErrorCode::System, fmt::format("port {} leaves no {} ports above it for the flows", base_port, flows)};
  }
  ProbeSockets made;
  made.buffer_.resize(kBufferBytes);
  for (std::uint32_t i = 0; i <= flows; ++i) {
    const auto port = static_cast<std::uint16_t>(base_port == 0 ? 0 : base_port + i);
    Result<UdpSocket> socket = UdpSocket::open(local.with_port(port), {.segmentation = true, .coalescing = false});
    if (!socket) return socket.error();
    const int on = 1;
    const bool ipv6 = local.is_ipv6();
    setsockopt(socket->fd(), ipv6 ? IPPROTO_IPV6 : IPPROTO_IP, ipv6 ? IPV6_RECVERR : IP_RECVERR, &on, sizeof on);
    made.sockets_.push_back(std::move(socket).value());
  }
  return made;
}

Result<void> ProbeSockets::connect(const SocketAddress& peer, std::span<const std::uint16_t> ports) {
  if (ports.size() != sockets_.size()) {
    return Error{ErrorCode::Protocol,
                 fmt::format("the peer names {} UDP ports, not {}", ports.size(), sockets_.size())};
  }
  for (std::size_t i = 0; i < ports.size(); ++i) {
    if (Result<void> connected = sockets_[i].connect(peer.with_port(ports[i])); !connected) return connected;
  }
  return {};
}

std::vector<std::uint16_t> ProbeSockets::ports() const {
  std::vector<std::uint16_t> ports;
  for (const UdpSocket& socket : sockets_) ports.push_back(socket.local().port());
  return ports;
}

std::uint32_t ProbeSockets::receive_buffer() const {
  std::uint32_t least = UINT32_MAX;
  for (std::size_t i = 1; i < sockets_.size(); ++i) least = std::min(least, sockets_[i].receive_buffer());
  return least;
}

std::size_t ProbeSockets::send(std::size_t number, const SegmentBatch& batch) {
  UdpSocket& socket = sockets_[number];
  if (batch.count > 1 && socket.offload().segmentation) {
    const UdpSocket::Sent sent = socket.send(batch);
    refused_ += sent.lost;
    // All of them or none: a batch is one datagram until it is below the socket.
    return sent.lost == batch.count ? 0 : sent.taken;
  }
  // One by one, so that it is known which of them went out.
  for (std::size_t i = 0; i < batch.count; ++i) {
    const UdpSocket::Sent sent = socket.send(
        {.bytes = batch.bytes.subspan(i * batch.segment, batch.segment), .segment = batch.segment, .count = 1});
    refused_ += sent.lost;
    if (sent.taken == 0 || sent.lost != 0) return i;
  }
  return batch.count;
}

ProbeSockets::Batch ProbeSockets::receive(std::size_t number) {
  const UdpSocket::Received received = sockets_[number].receive(buffer_, kKept, datagrams_);
  return {.datagrams = std::span<const std::span<const std::byte>>(datagrams_).first(received.count),
          .dropped = received.dropped};
}

std::span<const std::size_t> ProbeSockets::wait(int other, bool flows, TimePoint deadline, bool& other_ready) {
  std::array<pollfd, 66> watched;
  const std::size_t sockets = flows ? sockets_.size() : 1;
  for (std::size_t i = 0; i < sockets; ++i) watched[i] = {.fd = sockets_[i].fd(), .events = POLLIN, .revents = 0};
  watched[sockets] = {.fd = other, .events = POLLIN, .revents = 0};
  const timespec left = timespec_of(deadline - runtime::now());
  const int n = ::ppoll(watched.data(), sockets + 1, &left, nullptr);
  ready_.clear();
  for (std::size_t i = 0; n > 0 && i < sockets; ++i) {
    if (watched[i].revents != 0) ready_.push_back(i);
  }
  other_ready = n > 0 && watched[sockets].revents != 0;
  return ready_;
}

}  // namespace sdr::cli

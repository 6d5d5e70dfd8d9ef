#include "transport/udp_socket.hpp"

#include <fmt/core.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace sdr::transport {
namespace {

constexpr int kSendBuffer = 4 << 20;
// A thread that is kept from its core for 20 ms must not cost packets: at 10 Gbit/s they take that, each with what the
// kernel adds. Memory that is used only meanwhile.
constexpr int kReceiveBuffer = 64 << 20;
constexpr int kEcnCapable = 2;  // ECT(0), in the lowest bits of TOS or traffic class
constexpr int kEcnMarked = 3;   // CE

// Errors that an earlier datagram left on the socket (ICMP: no such port, host, too big). They say nothing about the
// one at hand, and reading them clears them.
bool left_by_another(int error) {
  return error == ECONNREFUSED || error == EHOSTUNREACH || error == ENETUNREACH || error == EMSGSIZE ||
         error == ECONNRESET || error == EHOSTDOWN || error == ENOPROTOOPT || error == EPROTO;
}

bool queue_full(int error) {
  return error == EAGAIN || error == EWOULDBLOCK || error == ENOBUFS || error == ENOMEM;
}

template <typename Value>
bool set(int fd, int level, int name, Value value) {
  return setsockopt(fd, level, name, &value, sizeof value) == 0;
}

template <typename Value>
std::optional<Value> get(int fd, int level, int name) {
  Value value{};
  socklen_t size = sizeof value;
  if (getsockopt(fd, level, name, &value, &size) != 0) return std::nullopt;
  return value;
}

// The FORCE variants go past the administrator's limit, where we are privileged.
void ask_for_buffer(int fd, int forced, int plain, int bytes) {
  if (!set(fd, SOL_SOCKET, forced, bytes)) set(fd, SOL_SOCKET, plain, bytes);
}

// Whether this is the TOS or traffic class of what came in, and has the mark.
bool is_mark(cmsghdr* c) {
  int value = 0;
  if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_TOS) {
    value = std::to_integer<int>(*reinterpret_cast<const std::byte*>(CMSG_DATA(c)));
  } else if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_TCLASS) {
    std::memcpy(&value, CMSG_DATA(c), sizeof value);
  }
  return (value & kEcnMarked) == kEcnMarked;
}

Error system_error(std::string what) {
  return {ErrorCode::System, fmt::format("{}: {}", what, std::strerror(errno))};
}

// Calls `call` again when it was interrupted or met an error that belonged to an earlier datagram.
template <typename Call>
auto retried(Call call) {
  auto result = call();
  for (int tries = 0; result < 0 && tries < 2 && (errno == EINTR || left_by_another(errno)); ++tries) result = call();
  return result;
}

// A batch as one message for the kernel to cut up; one datagram alone needs no cutting. Points into itself: not moved
// once set.
struct SegmentedMessage {
  iovec part;
  alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(sizeof(std::uint16_t))> control;
  msghdr header;

  void set(const SegmentBatch& batch) {
    part = {.iov_base = batch.bytes.data(), .iov_len = batch.bytes.size()};
    header = {};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    if (batch.count == 1) return;
    control = {};
    header.msg_control = control.data();
    header.msg_controllen = sizeof control;
    cmsghdr* const option = CMSG_FIRSTHDR(&header);
    option->cmsg_level = SOL_UDP;
    option->cmsg_type = UDP_SEGMENT;
    option->cmsg_len = CMSG_LEN(sizeof(std::uint16_t));
    const auto segment = static_cast<std::uint16_t>(batch.segment);
    std::memcpy(CMSG_DATA(option), &segment, sizeof segment);
  }
};

// Room for a batch that the kernel may have put together. Points into itself: not moved once set.
struct CoalescedMessage {
  iovec part;
  alignas(cmsghdr) std::array<std::byte, 2 * CMSG_SPACE(sizeof(int)) + CMSG_SPACE(sizeof(std::uint32_t))> control;
  msghdr header;

  void set(std::span<std::byte> room) {
    part = {.iov_base = room.data(), .iov_len = room.size()};
    header = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control.data(), .msg_controllen = sizeof control};
  }
};

// What the kernel says of a datagram, or of a batch that it has put together.
struct Told {
  std::size_t segment = 0;  // 0: one datagram
  std::uint32_t dropped = 0;
  bool marked = false;  // the kernel coalesces only what is marked alike

  explicit Told(msghdr& header) {
    for (cmsghdr* c = CMSG_FIRSTHDR(&header); c != nullptr; c = CMSG_NXTHDR(&header, c)) {
      if (c->cmsg_level == SOL_UDP && c->cmsg_type == UDP_GRO) {
        int value = 0;
        std::memcpy(&value, CMSG_DATA(c), sizeof value);
        if (value > 0) segment = static_cast<std::size_t>(value);
      } else if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SO_RXQ_OVFL) {
        std::memcpy(&dropped, CMSG_DATA(c), sizeof dropped);
      } else if (is_mark(c)) {
        marked = true;
      }
    }
  }
};

}  // namespace

UdpSocket::~UdpSocket() {
  if (fd_ >= 0) close(fd_);
}

Result<UdpSocket> UdpSocket::open(const SocketAddress& local, Offload offload) {
  UdpSocket made;
  const int family = local.is_ipv6() ? AF_INET6 : AF_INET;
  made.fd_ = socket(family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_UDP);
  const int fd = made.fd_;
  if (fd < 0) return system_error("cannot open a UDP socket");
  if (local.is_ipv6()) {
    set(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1);
    set(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_PROBE);
  } else {
    set(fd, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_PROBE);
  }
  ask_for_buffer(fd, SO_RCVBUFFORCE, SO_RCVBUF, kReceiveBuffer);
  ask_for_buffer(fd, SO_SNDBUFFORCE, SO_SNDBUF, kSendBuffer);
  set(fd, SOL_SOCKET, SO_RXQ_OVFL, 1);
  if (offload.ecn) {
    made.offload_.ecn =
        local.is_ipv6() ? set(fd, IPPROTO_IPV6, IPV6_TCLASS, kEcnCapable) && set(fd, IPPROTO_IPV6, IPV6_RECVTCLASS, 1)
                        : set(fd, IPPROTO_IP, IP_TOS, kEcnCapable) && set(fd, IPPROTO_IP, IP_RECVTOS, 1);
  } else {
    made.offload_.ecn = false;
  }
  made.offload_.segmentation = offload.segmentation && get<int>(fd, IPPROTO_UDP, UDP_SEGMENT).has_value();
  made.offload_.coalescing = offload.coalescing && set(fd, IPPROTO_UDP, UDP_GRO, 1);
  if (bind(fd, local.raw(), local.size()) != 0) {
    if (errno == EADDRINUSE) {
      return Error{ErrorCode::System, fmt::format("UDP port {} on {} is in use", local.port(), local.host())};
    }
    return system_error(fmt::format("cannot bind a UDP socket to {}", local.to_string()));
  }
  return made;
}

Result<void> UdpSocket::connect(const SocketAddress& peer) {
  if (::connect(fd_, peer.raw(), peer.size()) == 0) return {};
  return system_error(fmt::format("no way from {} to {}", local().to_string(), peer.to_string()));
}

SocketAddress UdpSocket::local() const {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &size);
  return {reinterpret_cast<const sockaddr*>(&address), size};
}

Result<std::uint32_t> UdpSocket::path_mtu() const {
  const auto mtu = local().is_ipv6() ? get<int>(fd_, IPPROTO_IPV6, IPV6_MTU) : get<int>(fd_, IPPROTO_IP, IP_MTU);
  if (!mtu) return system_error(fmt::format("cannot learn the MTU of the path from {}", local().to_string()));
  return static_cast<std::uint32_t>(*mtu);
}

std::uint32_t UdpSocket::receive_buffer() const {
  return static_cast<std::uint32_t>(std::max(get<int>(fd_, SOL_SOCKET, SO_RCVBUF).value_or(0), 0));
}

UdpSocket::Sent UdpSocket::send(const SegmentBatch& batch) {
  if (batch.count == 1) return send_one(batch);
  if (offload_.segmentation) return send_segmented(batch);
  return send_each(batch);
}

UdpSocket::Sent UdpSocket::send_one(const SegmentBatch& batch) {
  if (retried([&] { return ::send(fd_, batch.bytes.data(), batch.bytes.size(), MSG_DONTWAIT); }) >= 0)
    return {.taken = 1, .calls = 1};
  if (queue_full(errno)) return {.calls = 1};
  return {.taken = 1, .lost = 1, .calls = 1};
}

UdpSocket::Sent UdpSocket::send_segmented(const SegmentBatch& batch) {
  SegmentedMessage message;
  message.set(batch);
  if (retried([&] { return sendmsg(fd_, &message.header, MSG_DONTWAIT); }) >= 0)
    return {.taken = batch.count, .calls = 1};
  if (queue_full(errno)) return {.calls = 1};
  if (errno == EIO || errno == EINVAL) {
    // A device on the path that cannot checksum in hardware, on kernels that then refuse to segment: do without.
    offload_.segmentation = false;
    return send_each(batch);
  }
  return {.taken = batch.count, .lost = batch.count, .calls = 1};
}

UdpSocket::Sent UdpSocket::send(std::span<const SegmentBatch> batches) {
  Sent sent;
  std::size_t done = 0;
  if (offload_.segmentation && batches.size() > 1) {
    std::array<SegmentedMessage, kMaxBatches> parts;
    std::array<mmsghdr, kMaxBatches> messages;
    const std::size_t count = std::min(batches.size(), kMaxBatches);
    for (std::size_t i = 0; i < count; ++i) {
      parts[i].set(batches[i]);
      messages[i] = {};
      messages[i].msg_hdr = parts[i].header;
    }
    const int n = retried([&] { return sendmmsg(fd_, messages.data(), static_cast<unsigned>(count), MSG_DONTWAIT); });
    ++sent.calls;
    for (; n > 0 && done < static_cast<std::size_t>(n); ++done) sent.taken += batches[done].count;
    if (n < 0 && queue_full(errno)) return sent;
  }
  // One by one: what is left behind one that was refused, so that each meets its own error.
  for (; done < batches.size(); ++done) {
    const Sent one = send(batches[done]);
    sent.taken += one.taken;
    sent.lost += one.lost;
    sent.calls += one.calls;
    if (one.taken < batches[done].count) break;
  }
  return sent;
}

UdpSocket::Sent UdpSocket::send_each(const SegmentBatch& batch) {
  std::array<mmsghdr, kMaxSegments> messages;
  std::array<iovec, kMaxSegments> parts;
  const std::size_t count = std::min(batch.count, kMaxSegments);
  for (std::size_t i = 0; i < count; ++i) {
    const auto bytes = batch.bytes.subspan(i * batch.segment);
    parts[i] = {.iov_base = bytes.data(), .iov_len = std::min(batch.segment, bytes.size())};
    messages[i] = {};
    messages[i].msg_hdr.msg_iov = &parts[i];
    messages[i].msg_hdr.msg_iovlen = 1;
  }
  Sent sent;
  while (sent.taken < count) {
    const auto left = static_cast<unsigned>(count - sent.taken);
    const int n = retried([&] { return sendmmsg(fd_, &messages[sent.taken], left, MSG_DONTWAIT); });
    ++sent.calls;
    if (n > 0) {
      sent.taken += static_cast<std::size_t>(n);
    } else if (queue_full(errno)) {
      break;
    } else {  // this one cannot be sent, which says nothing about the next
      ++sent.taken;
      ++sent.lost;
    }
  }
  return sent;
}

bool UdpSocket::send(std::span<const std::byte> header, std::span<const std::byte> body) {
  std::array<iovec, 2> parts{iovec{.iov_base = const_cast<std::byte*>(header.data()), .iov_len = header.size()},
                             iovec{.iov_base = const_cast<std::byte*>(body.data()), .iov_len = body.size()}};
  const msghdr message{.msg_iov = parts.data(), .msg_iovlen = parts.size()};
  return retried([&] { return sendmsg(fd_, &message, MSG_DONTWAIT); }) >= 0;
}

UdpSocket::Received UdpSocket::receive(std::span<std::byte> buffer, std::size_t largest,
                                       std::span<std::span<const std::byte>> datagrams) {
  return offload_.coalescing ? receive_coalesced(buffer, datagrams) : receive_each(buffer, largest, datagrams);
}

UdpSocket::Received UdpSocket::receive_coalesced(std::span<std::byte> buffer,
                                                 std::span<std::span<const std::byte>> datagrams) {
  // Several batches by one call where batches come; after a datagram alone there is mostly nothing behind it.
  const std::size_t most = runs_ ? std::min(kMaxBatches, datagrams.size() / kMaxCoalesced) : 1;
  std::array<CoalescedMessage, kMaxBatches> parts;
  std::array<mmsghdr, kMaxBatches> messages;
  for (std::size_t i = 0; i < most; ++i) {
    parts[i].set(buffer.subspan(i * kBatchRoom, kBatchRoom));
    messages[i].msg_hdr = parts[i].header;
  }
  int got = 0;
  if (most == 1) {
    const ssize_t size = retried([&] { return recvmsg(fd_, &messages[0].msg_hdr, MSG_DONTWAIT); });
    got = size < 0 ? -1 : 1;
    messages[0].msg_len = static_cast<unsigned>(std::max<ssize_t>(size, 0));
  } else {
    got = retried([&] { return recvmmsg(fd_, messages.data(), static_cast<unsigned>(most), MSG_DONTWAIT, nullptr); });
  }
  if (got <= 0) return {.drained = true};

  Received received;
  for (std::size_t i = 0; i < static_cast<std::size_t>(got); ++i) {
    const Told told(messages[i].msg_hdr);
    if (told.dropped != 0) received.dropped = told.dropped;  // the counter only grows
    std::span<const std::byte> rest = std::span(buffer).subspan(i * kBatchRoom, messages[i].msg_len);
    const std::size_t segment = told.segment != 0 ? told.segment : rest.size();
    const std::size_t before = received.count;
    do {  // an empty datagram is one, too
      if (received.count - before == kMaxCoalesced) {
        received.overflow += (rest.size() + segment - 1) / segment;
        break;
      }
      const std::size_t n = std::min(segment, rest.size());
      datagrams[received.count++] = rest.first(n);
      rest = rest.subspan(n);
    } while (!rest.empty());
    if (told.marked) received.marked += received.count - before;
  }
  received.drained = received.count == 1 || (most > 1 && static_cast<std::size_t>(got) < most);
  runs_ = received.count > 1;
  return received;
}

UdpSocket::Received UdpSocket::receive_each(std::span<std::byte> buffer, std::size_t largest,
                                            std::span<std::span<const std::byte>> datagrams) {
  constexpr std::size_t kMost = 64;
  constexpr std::size_t kControl = CMSG_SPACE(sizeof(std::uint32_t)) + CMSG_SPACE(sizeof(int));
  const std::size_t stride = (largest + 8 + 7) / 8 * 8;  // one that is too long must not look as if it fitted
  const std::size_t most = std::min(kMost, buffer.size() / stride);
  std::array<mmsghdr, kMost> messages;
  std::array<iovec, kMost> parts;
  alignas(cmsghdr) std::array<std::array<std::byte, kControl>, kMost> control;
  for (std::size_t i = 0; i < most; ++i) {
    parts[i] = {.iov_base = buffer.data() + i * stride, .iov_len = stride};
    messages[i] = {};
    messages[i].msg_hdr.msg_iov = &parts[i];
    messages[i].msg_hdr.msg_iovlen = 1;
    messages[i].msg_hdr.msg_control = control[i].data();
    messages[i].msg_hdr.msg_controllen = kControl;
  }
  const int got =
      retried([&] { return recvmmsg(fd_, messages.data(), static_cast<unsigned>(most), MSG_DONTWAIT, nullptr); });
  if (got <= 0) return {.drained = true};

  Received received{.count = static_cast<std::size_t>(got), .drained = static_cast<std::size_t>(got) < most};
  for (std::size_t i = 0; i < received.count; ++i) datagrams[i] = buffer.subspan(i * stride, messages[i].msg_len);
  for (std::size_t i = 0; i < received.count; ++i) {
    const Told told(messages[i].msg_hdr);
    if (told.dropped != 0) received.dropped = told.dropped;  // the counter only grows
    if (told.marked) ++received.marked;
  }
  return received;
}

std::optional<std::size_t> UdpSocket::receive(std::span<std::byte> header, std::span<std::byte> body) {
  std::array<iovec, 2> parts{iovec{.iov_base = header.data(), .iov_len = header.size()},
                             iovec{.iov_base = body.data(), .iov_len = body.size()}};
  msghdr message{.msg_iov = parts.data(), .msg_iovlen = parts.size()};
  const ssize_t got = retried([&] { return recvmsg(fd_, &message, MSG_DONTWAIT | MSG_TRUNC); });
  if (got < 0) return std::nullopt;
  return static_cast<std::size_t>(got);
}

}  // namespace sdr::transport

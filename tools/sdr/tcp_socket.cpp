#include "sdr/tcp_socket.hpp"

#include <fmt/core.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>

#include "runtime/clock.hpp"

namespace sdr::cli {
namespace {

Error system_error(std::string message, int code) {
  return {ErrorCode::System, fmt::format("{}: {}", message, std::strerror(code))};
}

// False at the deadline.
bool poll_until(std::span<pollfd> waiting, TimePoint deadline) {
  for (;;) {
    const Duration left = deadline == kNever ? Duration(std::chrono::hours(1)) : deadline - runtime::now();
    const auto ms = std::chrono::ceil<std::chrono::milliseconds>(std::max(left, Duration(0))).count();
    const int n = ::poll(waiting.data(), waiting.size(), static_cast<int>(std::min<std::int64_t>(ms, 3'600'000)));
    if (n > 0) return true;
    if (n < 0 && errno != EINTR) return true;  // the next call on it says what is wrong
    if (deadline != kNever && runtime::now() >= deadline) return false;
  }
}

// Waits for `events` on `fd`; false at the deadline.
bool wait_for(int fd, short events, TimePoint deadline) {
  pollfd waiting{.fd = fd, .events = events, .revents = 0};
  return poll_until(std::span(&waiting, 1), deadline);
}

SocketAddress name_of(int fd, int (*get)(int, sockaddr*, socklen_t*)) {
  sockaddr_storage storage{};
  socklen_t size = sizeof storage;
  if (get(fd, reinterpret_cast<sockaddr*>(&storage), &size) != 0) return {};
  const SocketAddress address(reinterpret_cast<const sockaddr*>(&storage), size);
  // A listener on [::] takes IPv4 connections as ::ffff:192.0.2.7. Both ends are to call them by the same name.
  const auto bytes = address.address_bytes();
  constexpr std::array<std::byte, 12> kMapped{
      {{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, std::byte{0xff}, std::byte{0xff}}};
  if (!address.is_ipv6() || !std::equal(kMapped.begin(), kMapped.end(), bytes.begin())) return address;
  return {bytes.last(4), address.port()};
}

int new_socket(const SocketAddress& like) {
  return ::socket(like.is_ipv6() ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
}

// Requests and answers alternate: nothing is gained by waiting for more to send.
void set_up(int fd) {
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  ::setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
}

}  // namespace

Result<SocketAddress> parse_endpoint(const std::string& text, bool any_port) {
  const std::size_t colon = text.rfind(':');
  const bool bare_ipv6 = !text.starts_with('[') && std::count(text.begin(), text.end(), ':') > 1;
  unsigned port = 0;
  bool valid = colon != std::string::npos && colon > 0 && !bare_ipv6;
  if (valid) {
    const char* end = text.data() + text.size();
    const auto [stop, code] = std::from_chars(text.data() + colon + 1, end, port);
    valid = code == std::errc() && stop == end && port <= 65535 && (port != 0 || any_port);
  }
  if (!valid) {
    return Error{
        ErrorCode::InvalidArgument,
        fmt::format("\"{}\" is not ADDRESS:PORT, such as 192.0.2.7:7000, [2001:db8::7]:7000 or host:7000, with a "
                    "port from {} to 65535",
                    text, any_port ? 0 : 1)};
  }
  auto address = transport::remote_address(text);
  // A name that does not resolve today may do so tomorrow: the command line is not at fault.
  if (!address) return Error{ErrorCode::System, address.error().message};
  return address;
}

TcpSocket::~TcpSocket() {
  if (fd_ >= 0) ::close(fd_);
}

Result<TcpSocket> TcpSocket::connect(const SocketAddress& peer, TimePoint deadline) {
  const std::string what = fmt::format("cannot connect to {}", peer.to_string());
  TcpSocket socket(new_socket(peer));
  if (socket.fd_ < 0) return system_error(what, errno);
  if (::connect(socket.fd_, peer.raw(), peer.size()) != 0 && errno != EINPROGRESS) return system_error(what, errno);
  if (!wait_for(socket.fd_, POLLOUT, deadline)) return Error{ErrorCode::System, what + ": no answer in time"};
  int code = 0;
  socklen_t size = sizeof code;
  ::getsockopt(socket.fd_, SOL_SOCKET, SO_ERROR, &code, &size);
  if (code != 0) return system_error(what, code);
  set_up(socket.fd_);
  return socket;
}

SocketAddress TcpSocket::local() const {
  return name_of(fd_, ::getsockname);
}
SocketAddress TcpSocket::peer() const {
  return name_of(fd_, ::getpeername);
}

Result<void> TcpSocket::send(std::span<const std::byte> bytes, TimePoint deadline) {
  while (!bytes.empty()) {
    const ssize_t n = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n > 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(n));
      continue;
    }
    if (errno == EINTR) continue;
    if (errno != EAGAIN) return Error{ErrorCode::Closed, fmt::format("the peer is gone: {}", std::strerror(errno))};
    if (!wait_for(fd_, POLLOUT, deadline)) return Error{ErrorCode::System, "the peer takes no more data"};
  }
  return {};
}

Result<std::size_t> TcpSocket::receive(std::span<std::byte> into) {
  for (;;) {
    const ssize_t n = ::recv(fd_, into.data(), into.size(), 0);
    if (n > 0) return static_cast<std::size_t>(n);
    if (n == 0) return Error{ErrorCode::Closed, "the peer closed the session"};
    if (errno == EAGAIN) return std::size_t{0};
    if (errno != EINTR) return Error{ErrorCode::Closed, fmt::format("the peer is gone: {}", std::strerror(errno))};
  }
}

bool TcpSocket::wait_readable(TimePoint deadline) const {
  return wait_for(fd_, POLLIN, deadline);
}

Result<TcpListener> TcpListener::open(const SocketAddress& at) {
  const std::string what = fmt::format("cannot listen on {}", at.to_string());
  TcpSocket socket(new_socket(at));
  if (socket.fd() < 0) return system_error(what, errno);
  const int on = 1;
  // After a restart: connections of the previous run may linger on the port.
  ::setsockopt(socket.fd(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (::bind(socket.fd(), at.raw(), at.size()) != 0) return system_error(what, errno);
  if (::listen(socket.fd(), 16) != 0) return system_error(what, errno);
  return TcpListener(std::move(socket));
}

Result<void> TcpListener::take() {
  for (;;) {
    const int accepted = ::accept4(fd(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (accepted >= 0) {
      set_up(accepted);
      silent_.push_back({TcpSocket(accepted), runtime::now() + kSilence});
      return {};
    }
    if (errno == EAGAIN) return {};
    // Who gave up while waiting is no concern, nor is what the network had to say of them (accept(2)); anything else is
    // this host's, and would come again at once.
    constexpr std::array kOfThePeer = {EINTR,      ECONNABORTED, EPROTO, EPERM,        ENETDOWN,   EHOSTDOWN,
                                       EOPNOTSUPP, ENOPROTOOPT,  ENONET, EHOSTUNREACH, ENETUNREACH};
    if (std::find(kOfThePeer.begin(), kOfThePeer.end(), errno) == kOfThePeer.end())
      return system_error("cannot accept a connection", errno);
  }
}

std::optional<Result<TcpSocket>> TcpListener::accept(int stop) {
  for (;;) {
    std::vector<pollfd> waiting = {{.fd = stop, .events = POLLIN, .revents = 0},
                                   {.fd = silent_.size() < kMostSilent ? fd() : -1, .events = POLLIN, .revents = 0}};
    for (const Silent& silent : silent_) waiting.push_back({.fd = silent.socket.fd(), .events = POLLIN, .revents = 0});
    poll_until(waiting, silent_.empty() ? kNever : silent_.front().until);
    if (waiting[0].revents != 0) return std::nullopt;
    for (std::size_t i = 0; i < silent_.size(); ++i) {
      if (waiting[i + 2].revents == 0) continue;
      TcpSocket speaks = std::move(silent_[i].socket);
      silent_.erase(silent_.begin() + static_cast<std::ptrdiff_t>(i));
      return speaks;
    }
    if (!silent_.empty() && runtime::now() >= silent_.front().until) {
      const SocketAddress peer = silent_.front().socket.peer();
      silent_.erase(silent_.begin());
      return Error{ErrorCode::PeerUnreachable,
                   fmt::format("{} said nothing for {}", peer.to_string(), to_string(kSilence))};
    }
    if (waiting[1].revents == 0) continue;
    if (Result<void> taken = take(); !taken) return taken.error();
  }
}

}  // namespace sdr::cli

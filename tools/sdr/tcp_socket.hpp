// TcpSocket and TcpListener: the few things about TCP that the session needs, with a bound on every wait.
//
// Non-blocking sockets; who waits says until when. One thread each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "sdr/result.hpp"
#include "sdr/units.hpp"
#include "transport/udp_address.hpp"

namespace sdr::cli {

using transport::SocketAddress;

// "HOST:PORT" with an IPv4 address, [IPv6] in brackets, or a name; the first address the resolver gives.
// InvalidArgument for a text without a port from 1 to 65535; port 0 ("any") only if `any_port`.
Result<SocketAddress> parse_endpoint(const std::string& text, bool any_port);

class TcpSocket {
 public:
  TcpSocket() = default;
  explicit TcpSocket(int fd) : fd_(fd) {}
  TcpSocket(TcpSocket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  TcpSocket& operator=(TcpSocket&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~TcpSocket();

  static Result<TcpSocket> connect(const SocketAddress& peer, TimePoint deadline);

  [[nodiscard]] int fd() const { return fd_; }
  [[nodiscard]] SocketAddress local() const;
  [[nodiscard]] SocketAddress peer() const;

  // All of it; System when the peer is gone or takes nothing until `deadline`.
  Result<void> send(std::span<const std::byte> bytes, TimePoint deadline);
  // What is there: 0 bytes when nothing is. Closed when the peer has closed, System when the connection broke.
  Result<std::size_t> receive(std::span<std::byte> into);
  // True when there is something to receive (an end included), false at `deadline`.
  [[nodiscard]] bool wait_readable(TimePoint deadline) const;

 private:
  int fd_ = -1;
};

class TcpListener {
 public:
  static constexpr Duration kSilence = std::chrono::seconds(3);

  // System when the address is not ours or the port is taken; the message has both.
  static Result<TcpListener> open(const SocketAddress& at);

  [[nodiscard]] int fd() const { return socket_.fd(); }
  [[nodiscard]] SocketAddress local() const { return socket_.local(); }
  // The next connection whose peer has begun to speak, or has gone, however long it takes; those that are silent keep
  // nobody waiting. PeerUnreachable: one has been silent for kSilence, and is closed; there may be others. Nothing when
  // the descriptor `stop` (-1: none) became readable first.
  std::optional<Result<TcpSocket>> accept(int stop = -1);

 private:
  static constexpr std::size_t kMostSilent = 64;  // beyond that the next ones wait in the kernel

  struct Silent {
    TcpSocket socket;
    TimePoint until;
  };
  explicit TcpListener(TcpSocket socket) : socket_(std::move(socket)) {}
  // What is there to be taken joins the silent ones.
  Result<void> take();

  TcpSocket socket_;
  std::vector<Silent> silent_;  // the oldest first
};

}  // namespace sdr::cli

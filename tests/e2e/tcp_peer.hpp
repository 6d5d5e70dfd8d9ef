// TcpPeer: a hand-written end of a session, which says what no sdr would.
//
// Blocking, with a bound on every receive. One thread.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cstdint>
#include <string>
#include <utility>

namespace sdr::testing {

class TcpPeer {
 public:
  // A session frame as docs and session.hpp have it, of any version.
  static std::string frame(const std::string& json, std::uint16_t version) {
    std::string text = "SDRS";
    text += {static_cast<char>(version >> 8), static_cast<char>(version), 0, 0};
    for (int shift = 24; shift >= 0; shift -= 8) text += static_cast<char>(json.size() >> shift);
    return text + json;
  }

  static TcpPeer connect(const std::string& address) {
    TcpPeer peer(socket(AF_INET, SOCK_STREAM, 0));
    const sockaddr_in to = loopback(static_cast<std::uint16_t>(std::stoul(address.substr(address.rfind(':') + 1))));
    EXPECT_EQ(::connect(peer.fd_, reinterpret_cast<const sockaddr*>(&to), sizeof to), 0);
    return peer;
  }
  static TcpPeer listen() {
    TcpPeer peer(socket(AF_INET, SOCK_STREAM, 0));
    const sockaddr_in any = loopback(0);
    EXPECT_EQ(bind(peer.fd_, reinterpret_cast<const sockaddr*>(&any), sizeof any), 0);
    EXPECT_EQ(::listen(peer.fd_, 1), 0);
    return peer;
  }
  // Where a moment ago nobody listened.
  static std::string unused_address() { return listen().address(); }

  TcpPeer(TcpPeer&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  TcpPeer& operator=(TcpPeer&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~TcpPeer() {
    if (fd_ >= 0) close(fd_);
  }

  [[nodiscard]] std::string address() const {
    sockaddr_in at{};
    socklen_t size = sizeof at;
    getsockname(fd_, reinterpret_cast<sockaddr*>(&at), &size);
    return "127.0.0.1:" + std::to_string(ntohs(at.sin_port));
  }
  // From a listener to its first connection.
  void accept() { *this = TcpPeer(::accept(fd_, nullptr, nullptr)); }
  void send(const std::string& text) const { (void)!::send(fd_, text.data(), text.size(), MSG_NOSIGNAL); }
  // All until the other end closes.
  std::string receive_all() const {
    std::string text;
    char buffer[4096];
    for (ssize_t n = 0; (n = recv(fd_, buffer, sizeof buffer, 0)) > 0;)
      text.append(buffer, static_cast<std::size_t>(n));
    return text;
  }

 private:
  explicit TcpPeer(int fd) : fd_(fd) {
    const timeval bound{.tv_sec = 30, .tv_usec = 0};
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &bound, sizeof bound);
  }
  static sockaddr_in loopback(std::uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
  }

  int fd_;
};

}  // namespace sdr::testing

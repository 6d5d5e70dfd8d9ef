// UDT (Gu, Grossman, Computer Networks 2007) as Debian packages it (libudt-dev), for bench/peers.py: one connection
// that sends for so many seconds, and the goodput that its receiver saw. Built where the library is found.
//   peers_udt --listen PORT SECONDS     counts for so long from the first byte on; one JSON line
//   peers_udt ADDRESS PORT              sends until the other end is gone
#include <arpa/inet.h>
#include <netinet/in.h>

#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
#include <udt/udt.h>
#pragma GCC diagnostic pop

#include "runtime/clock.hpp"

namespace {

constexpr int kBuffer = 64 << 20;  // several bandwidth-delay products of 1 Gbit/s and 50 ms
constexpr int kPieces = 1 << 20;

[[noreturn]] void die(const char* what) {
  std::fprintf(stderr, "peers_udt: %s: %s\n", what, UDT::getlasterror().getErrorMessage());
  std::exit(1);
}

int number(std::string_view text) {
  int value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

UDTSOCKET make_socket() {
  const UDTSOCKET socket = UDT::socket(AF_INET, SOCK_STREAM, 0);
  const int packets = kBuffer / 1472;
  for (const UDT::SOCKOPT option : {UDT_SNDBUF, UDT_RCVBUF, UDP_SNDBUF, UDP_RCVBUF}) {
    if (UDT::setsockopt(socket, 0, option, &kBuffer, sizeof kBuffer) == UDT::ERROR) die("buffer");
  }
  if (UDT::setsockopt(socket, 0, UDT_FC, &packets, sizeof packets) == UDT::ERROR) die("window");
  return socket;
}

sockaddr_in address_of(const char* host, int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  ::inet_pton(AF_INET, host, &address.sin_addr);
  return address;
}

int receive(int port, int seconds_to_count) {
  const UDTSOCKET listener = make_socket();
  const sockaddr_in any = address_of("0.0.0.0", port);
  if (UDT::bind(listener, reinterpret_cast<const sockaddr*>(&any), sizeof any) == UDT::ERROR) die("bind");
  if (UDT::listen(listener, 1) == UDT::ERROR) die("listen");
  const UDTSOCKET peer = UDT::accept(listener, nullptr, nullptr);
  if (peer == UDT::INVALID_SOCK) die("accept");
  std::vector<char> buffer(kPieces);
  std::uint64_t bytes = 0;
  sdr::TimePoint first{};
  sdr::TimePoint last{};
  for (int got = 0; (got = UDT::recv(peer, buffer.data(), kPieces, 0)) != UDT::ERROR;) {
    last = sdr::runtime::now();
    if (bytes == 0) first = last;
    bytes += static_cast<std::uint64_t>(got);
    if (last - first >= std::chrono::seconds(seconds_to_count)) break;
  }
  const double seconds = static_cast<double>((last - first).count()) * 1e-9;
  std::printf("{\"benchmark\":\"peers_udt\",\"seconds\":%.3f,\"goodput_gbps\":%.4f}\n", seconds,
              seconds > 0 ? static_cast<double>(bytes) * 8e-9 / seconds : 0.0);
  return 0;
}

int send(const char* host, int port) {
  const UDTSOCKET socket = make_socket();
  const sockaddr_in peer = address_of(host, port);
  if (UDT::connect(socket, reinterpret_cast<const sockaddr*>(&peer), sizeof peer) == UDT::ERROR) die("connect");
  const std::vector<char> buffer(kPieces, 'u');
  while (UDT::send(socket, buffer.data(), kPieces, 0) != UDT::ERROR) {
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  UDT::startup();
  if (argc == 4 && std::string_view(argv[1]) == "--listen") return receive(number(argv[2]), number(argv[3]));
  if (argc == 3) return send(argv[1], number(argv[2]));
  std::fprintf(stderr, "usage: peers_udt --listen PORT SECONDS | peers_udt ADDRESS PORT\n");
  return 1;
}

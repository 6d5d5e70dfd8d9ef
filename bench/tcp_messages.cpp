// Completion times of single messages over one warm TCP connection: what an application waits for that sends a message
// and needs to know that it is there.
//
// The client writes a message, the server reads all of it and answers with one byte, and the next message goes out when
// that byte has arrived. Timed is from the first write to the answer. What `sdr perf --inflight 1` measures of libsdr.
//   tcp_messages --listen 5300                                                       one client, then the end
//   tcp_messages --connect 10.0.0.1:5300 --size 1MiB --count 100 --congestion bbr
// One JSON line.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <getopt.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "runtime/clock.hpp"
#include "sdr/units.hpp"

namespace {

using sdr::runtime::now;

constexpr int kPatienceSeconds = 30;  // for the other end, at any time

struct Options {
  bool listen = false;
  std::string address;
  std::uint16_t port = 0;
  std::uint64_t size = 1 << 20;
  std::uint64_t count = 100;
  std::uint64_t warmup = 10;
  std::string congestion = "bbr";
};

// What the client says first, in the host's byte order: both ends are on one machine.
struct Hello {
  std::uint64_t size = 0;
  std::uint64_t messages = 0;
};

[[noreturn]] void die(const std::string& message) {
  std::fprintf(stderr, "tcp_messages: %s\n", message.c_str());
  std::exit(1);
}

[[noreturn]] void die_of_errno(const std::string& what) {
  die(what + ": " + std::strerror(errno));
}

std::uint64_t number(const char* text) {
  const sdr::Result<sdr::Bytes> value = sdr::parse_bytes(text);
  if (!value) die(value.error().message);
  return value->count;
}

std::uint16_t port_number(const std::string& text) {
  std::uint16_t port = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (failure != std::errc{} || end != text.data() + text.size() || port == 0)
    die(text + " is no port from 1 to 65535");
  return port;
}

Options parse(int argc, char** argv) {
  const option known[] = {{"listen", required_argument, nullptr, 'l'},
                          {"connect", required_argument, nullptr, 'c'},
                          {"size", required_argument, nullptr, 's'},
                          {"count", required_argument, nullptr, 'n'},
                          {"warmup", required_argument, nullptr, 'w'},
                          {"congestion", required_argument, nullptr, 'a'},
                          {nullptr, 0, nullptr, 0}};
  Options options;
  for (int given = 0; (given = ::getopt_long(argc, argv, "", known, nullptr)) != -1;) {
    const std::string value = optarg == nullptr ? "" : optarg;
    const std::size_t colon = value.rfind(':');
    switch (given) {
      case 'l':
        options.listen = true;
        options.port = port_number(value);
        break;
      case 'c':
        if (colon == std::string::npos) die(value + " is not ADDRESS:PORT");
        options.address = value.substr(0, colon);
        options.port = port_number(value.substr(colon + 1));
        break;
      case 's':
        options.size = number(optarg);
        break;
      case 'n':
        options.count = number(optarg);
        break;
      case 'w':
        options.warmup = number(optarg);
        break;
      case 'a':
        options.congestion = value;
        break;
      default:
        die("usage: tcp_messages --listen PORT | --connect ADDRESS:PORT [--size BYTES] [--count N] [--warmup N] "
            "[--congestion NAME]");
    }
  }
  if (options.port == 0 || options.size == 0 || options.count == 0) die("a port, a size and a count are needed");
  return options;
}

sockaddr_in address_of(const std::string& host, std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  if (::inet_pton(AF_INET, host.c_str(), &address.sin_addr) != 1) die(host + " is no IPv4 address");
  return address;
}

void set_patience(int fd) {
  const timeval patience{.tv_sec = kPatienceSeconds, .tv_usec = 0};
  for (const int name : {SO_RCVTIMEO, SO_SNDTIMEO}) {
    if (::setsockopt(fd, SOL_SOCKET, name, &patience, sizeof patience) != 0) die_of_errno("SO_RCVTIMEO");
  }
}

void write_all(int fd, const void* data, std::size_t bytes) {
  const char* from = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t sent = ::send(fd, from, bytes, MSG_NOSIGNAL);
    if (sent <= 0) die_of_errno("send");
    from += sent;
    bytes -= static_cast<std::size_t>(sent);
  }
}

// Reads and forgets, through a buffer that stays in the cache.
void read_all(int fd, void* into, std::size_t capacity, std::uint64_t bytes) {
  while (bytes > 0) {
    const ssize_t got = ::recv(fd, into, std::min<std::uint64_t>(bytes, capacity), 0);
    if (got == 0) die("the other end closed the connection");
    if (got < 0) die_of_errno("recv");
    bytes -= static_cast<std::uint64_t>(got);
  }
}

int serve(const Options& options) {
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in any = address_of("0.0.0.0", options.port);
  const int on = 1;
  if (listener < 0 || ::setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
      ::bind(listener, reinterpret_cast<const sockaddr*>(&any), sizeof any) != 0 || ::listen(listener, 1) != 0) {
    die_of_errno(fmt::format("listening on port {}", options.port));
  }
  set_patience(listener);
  const int fd = ::accept(listener, nullptr, nullptr);
  if (fd < 0) die_of_errno("accept");
  set_patience(fd);
  if (::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0) die_of_errno("TCP_NODELAY");
  Hello hello;
  read_all(fd, &hello, sizeof hello, sizeof hello);
  std::vector<char> buffer(256 << 10);
  for (std::uint64_t i = 0; i < hello.messages; ++i) {
    read_all(fd, buffer.data(), buffer.size(), hello.size);
    write_all(fd, "!", 1);
  }
  return 0;
}

// By nearest rank, as sdr perf has it.
double percentile(const std::vector<double>& sorted, double share) {
  const auto rank = static_cast<std::size_t>(std::ceil(share * static_cast<double>(sorted.size())));
  return sorted[std::max<std::size_t>(rank, 1) - 1];
}

int measure(const Options& options) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) die_of_errno("socket");
  if (::setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, options.congestion.c_str(),
                   static_cast<socklen_t>(options.congestion.size())) != 0) {
    die_of_errno("congestion control " + options.congestion);
  }
  const int on = 1;
  if (::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0) die_of_errno("TCP_NODELAY");
  set_patience(fd);
  const sockaddr_in peer = address_of(options.address, options.port);
  if (::connect(fd, reinterpret_cast<const sockaddr*>(&peer), sizeof peer) != 0) die_of_errno("connect");

  const Hello hello{.size = options.size, .messages = options.warmup + options.count};
  write_all(fd, &hello, sizeof hello);
  const std::vector<char> message(options.size, 'm');
  std::vector<double> times_ms;
  for (std::uint64_t i = 0; i < hello.messages; ++i) {
    const sdr::TimePoint begin = now();
    write_all(fd, message.data(), message.size());
    char answer = 0;
    read_all(fd, &answer, 1, 1);
    if (i >= options.warmup) times_ms.push_back(static_cast<double>((now() - begin).count()) / 1e6);
  }
  tcp_info info{};
  socklen_t length = sizeof info;
  if (::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) != 0) die_of_errno("TCP_INFO");

  double sum = 0;
  for (const double time : times_ms) sum += time;
  std::sort(times_ms.begin(), times_ms.end());
  fmt::print(
      "{{\"benchmark\":\"tcp_messages\",\"congestion\":\"{}\",\"size_bytes\":{},\"count\":{},\"warmup\":{},"
      "\"segment_bytes\":{},\"retransmitted_segments\":{},\"completion_ms\":{{\"mean\":{:.4f},\"p50\":{:.4f},"
      "\"p99\":{:.4f},\"max\":{:.4f}}}}}\n",
      options.congestion, options.size, options.count, options.warmup, info.tcpi_snd_mss, info.tcpi_total_retrans,
      sum / static_cast<double>(times_ms.size()), percentile(times_ms, 0.5), percentile(times_ms, 0.99),
      times_ms.back());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse(argc, argv);
  return options.listen ? serve(options) : measure(options);
}

// How many bytes of IP packets come in over an interface, by protocol and destination port, a line an interval: who
// gets what of a path that several programs share, measured where it ends.
//   peers_flow_rates --interface sdr0 --milliseconds 100
// {"t": 1.200, "udp:7001": 1200000, "tcp:5201": 60000}
// A packet socket, so it needs the rights for one. It ends with the pipe that reads it, or by a signal.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <getopt.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <thread>
#include <utility>

#include "runtime/clock.hpp"
#include "sdr/units.hpp"

namespace {

using sdr::Duration;
using sdr::TimePoint;
using sdr::runtime::now;

constexpr std::size_t kBatch = 128;
constexpr std::size_t kHead = 64;  // the headers are all that is looked at
constexpr int kBuffer = 32 << 20;
// Between two looks: who woke up for each packet would take the core from those whose rates it measures.
constexpr Duration kLook = std::chrono::milliseconds(5);

struct Batch {
  std::array<std::array<unsigned char, kHead>, kBatch> heads{};
  std::array<sockaddr_ll, kBatch> from{};
  std::array<iovec, kBatch> parts{};
  std::array<mmsghdr, kBatch> messages{};

  Batch() {
    for (std::size_t i = 0; i < kBatch; ++i) {
      parts[i] = {heads[i].data(), kHead};
      messages[i].msg_hdr = {.msg_name = &from[i], .msg_iov = &parts[i], .msg_iovlen = 1};
    }
  }
  int receive(int socket) {
    for (std::size_t i = 0; i < kBatch; ++i) messages[i].msg_hdr.msg_namelen = sizeof(sockaddr_ll);
    return ::recvmmsg(socket, messages.data(), kBatch, MSG_DONTWAIT | MSG_TRUNC, nullptr);
  }
};

using Flow = std::pair<int, int>;  // protocol, destination port
using Counts = std::map<Flow, std::uint64_t>;

[[noreturn]] void fail(const char* what) {
  fmt::print(stderr, "peers_flow_rates: {}: {}\n", what, std::strerror(errno));
  std::exit(1);
}

int open_socket(const char* interface) {
  const int socket = ::socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC, htons(ETH_P_IP));
  if (socket < 0) fail("packet socket");
  const sockaddr_ll where{.sll_family = AF_PACKET,
                          .sll_protocol = htons(ETH_P_IP),
                          .sll_ifindex = static_cast<int>(::if_nametoindex(interface))};
  if (where.sll_ifindex == 0) fail(interface);
  ::setsockopt(socket, SOL_SOCKET, SO_RCVBUFFORCE, &kBuffer, sizeof kBuffer);
  if (::bind(socket, reinterpret_cast<const sockaddr*>(&where), sizeof where) != 0) fail("bind");
  return socket;
}

void count(const unsigned char* head, std::uint32_t length, Counts& counts) {
  const std::size_t header = std::size_t{4} * (head[0] & 0xFU);
  const int protocol = head[9];
  if (length < header + 4 || header + 4 > kHead) return;
  counts[{protocol, head[header + 2] << 8 | head[header + 3]}] += length;
}

void print(double at, Counts& counts) {
  fmt::print("{{\"t\": {:.3f}", at);
  for (auto& [flow, bytes] : counts) {
    const auto& [protocol, port] = flow;
    if (bytes == 0 || (protocol != IPPROTO_TCP && protocol != IPPROTO_UDP)) continue;
    fmt::print(", \"{}:{}\": {}", protocol == IPPROTO_TCP ? "tcp" : "udp", port, bytes);
    bytes = 0;
  }
  fmt::print("}}\n");
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  const char* interface = "sdr0";
  Duration interval = std::chrono::milliseconds(100);
  const option names[] = {{"interface", required_argument, nullptr, 'i'},
                          {"milliseconds", required_argument, nullptr, 'm'},
                          {nullptr, 0, nullptr, 0}};
  for (int given = 0; (given = ::getopt_long(argc, argv, "", names, nullptr)) != -1;) {
    if (given == 'i') {
      interface = optarg;
    } else if (given == 'm' && std::atoi(optarg) > 0) {
      interval = std::chrono::milliseconds(std::atoi(optarg));
    } else {
      fmt::print(stderr, "peers_flow_rates --interface NAME --milliseconds N\n");
      return 2;
    }
  }
  const int socket = open_socket(interface);
  Batch batch;
  Counts counts;
  const TimePoint begin = now();
  for (TimePoint next = begin + interval;;) {
    if (now() >= next) {
      print(std::chrono::duration<double>(next - begin).count(), counts);
      if (std::ferror(stdout) != 0) return 0;
      next += interval;
    }
    std::this_thread::sleep_for(std::min<Duration>(next - now(), kLook));
    for (int got = 0; (got = batch.receive(socket)) > 0;) {
      for (std::size_t i = 0; i < static_cast<std::size_t>(got); ++i) {
        if (batch.from[i].sll_pkttype == PACKET_OUTGOING) continue;
        count(batch.heads[i].data(), batch.messages[i].msg_len, counts);
      }
      if (now() >= next) break;
    }
  }
}

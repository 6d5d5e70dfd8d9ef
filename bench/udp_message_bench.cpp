// What a message of 64 bytes costs over UDP loopback, beside a bare pair of sendmsg() and recvmsg() of as many bytes.
//
// One thread does both ends, turn by turn, so that neither waking nor waiting is in the figure. Bare: two connected
// sockets, one call each way. sdr: post_send() and inject(), then poll_channel() until the chunk's bit is there,
// complete(), post_receive(); receives are posted ahead, 128 of them, and every 64 messages both ends call progress(),
// which carries the CTS; the channels are polled by hand. The user immediate is not used.
//   udp_message_bench --benchmark_repetitions=5 --benchmark_enable_random_interleaving=true
#include <arpa/inet.h>
#include <benchmark/benchmark.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "runtime/clock.hpp"
#include "sdr/device.hpp"
#include "sdr/queue_pair.hpp"

namespace {

using namespace sdr;

constexpr std::size_t kMessage = 64;
constexpr std::size_t kHeader = 16;  // what libsdr puts before the payload
constexpr std::uint32_t kSlots = 128;
constexpr std::uint64_t kDriveEvery = 64;

int bound_socket(sockaddr_in& address) {
  const int fd = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  if (fd < 0 || ::bind(fd, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0)
    return -1;
  return fd;
}

void bare(benchmark::State& state) {
  std::array<sockaddr_in, 2> addresses;
  const std::array<int, 2> sockets{bound_socket(addresses[0]), bound_socket(addresses[1])};
  for (const int i : {0, 1}) {
    const auto* other = reinterpret_cast<const sockaddr*>(&addresses[static_cast<std::size_t>(1 - i)]);
    if (::connect(sockets[static_cast<std::size_t>(i)], other, sizeof(sockaddr_in)) != 0)
      return state.SkipWithError("cannot connect two sockets");
  }
  std::array<char, kHeader + kMessage> out{};
  std::array<char, 2048> in{};
  for (auto _ : state) {
    iovec sent{.iov_base = out.data(), .iov_len = out.size()};
    const msghdr outgoing{.msg_iov = &sent, .msg_iovlen = 1};
    iovec received{.iov_base = in.data(), .iov_len = in.size()};
    msghdr incoming{.msg_iov = &received, .msg_iovlen = 1};
    if (::sendmsg(sockets[0], &outgoing, 0) < 0 || ::recvmsg(sockets[1], &incoming, 0) < 0)
      return state.SkipWithError("a datagram was refused");
  }
  state.SetItemsProcessed(state.iterations());
  for (const int fd : sockets) ::close(fd);
}

void message(benchmark::State& state) {
  const auto device = open_device("udp:127.0.0.1");
  if (!device) return state.SkipWithError(device.error().message.c_str());
  QueuePairOptions options;
  options.mtu = Bytes{1456};
  options.slots = kSlots;
  options.max_message = Bytes{1456};
  options.token = 1;
  const auto sender = QueuePair::create(*device, options);
  options.token = 2;
  const auto receiver = QueuePair::create(*device, options);
  if (!sender || !receiver || !(*sender)->connect((*receiver)->info()) || !(*receiver)->connect((*sender)->info()))
    return state.SkipWithError("cannot connect two queue pairs");
  QueuePair& a = **sender;
  QueuePair& b = **receiver;
  a.own_channels(false);
  b.own_channels(false);
  std::vector<std::byte> data(kMessage, std::byte{7});
  std::vector<std::byte> buffers(kSlots * kMessage);
  const auto post = [&](std::uint64_t number) {
    return b.post_receive(std::span(buffers).subspan(number % kSlots * kMessage, kMessage)).ok();
  };
  for (std::uint64_t n = 0; n < kSlots; ++n) post(n);
  const auto drive = [&] {
    b.progress(runtime::now());
    a.progress(runtime::now());
  };
  std::uint64_t number = 0;
  for (auto _ : state) {
    while (!a.next_grant()) drive();
    if (!a.post_send(data, std::nullopt)) return state.SkipWithError("a send was refused");
    const TimePoint now = number % 8 == 0 ? runtime::now() : TimePoint{};
    a.inject(now);
    const RecvHandle handle{number};
    const auto bitmap = b.chunk_bitmap(handle);
    while ((*bitmap)[0].load(std::memory_order_acquire) == 0) b.poll_channel(0, now);
    if (!b.complete(handle) || !post(number)) return state.SkipWithError("a receive was refused");
    if (++number % kDriveEvery == 0) drive();
  }
  const QueuePairCounters sent = a.counters();
  const QueuePairCounters received = b.counters();
  state.SetItemsProcessed(state.iterations());
  state.counters["send_calls"] =
      static_cast<double>(sent.send_calls + received.send_calls) / static_cast<double>(number);
  state.counters["receive_calls"] =
      static_cast<double>(sent.receive_calls + received.receive_calls) / static_cast<double>(number);
}

BENCHMARK(bare);
BENCHMARK(message);

}  // namespace

BENCHMARK_MAIN();

// The wall for a UDP transport on this machine: two processes on the loopback that do nothing but send and receive.
//
// The sender hands the kernel up to 64 packets a call (UDP_SEGMENT), the receiver takes as many a call (UDP_GRO) into
// one buffer and counts. No headers, no protocol, no pacing, one core each: what the UDP transport achieves is to be
// read against this, from runs next to each other.
//   bare_udp --payload 4096 --seconds 2
//   bare_udp --payload 1456 --bytes 4GiB --cpu 0,1
//   bare_udp --payload 4096 --zerocopy        with MSG_ZEROCOPY; "copied" is the share that the kernel copied all the
//   same
//   bare_udp --payload 4096 --memory 8MiB,256MiB   sends all of 8 MiB over and over, receives into 256 MiB, straight
//   from and into user memory: what any program on such a socket does whose bytes are to come from and go to somewhere
// One JSON line: goodput is what the receiver got between its first and its last packet.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <getopt.h>
#include <linux/errqueue.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <poll.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "experiment/touched_memory.hpp"
#include "runtime/clock.hpp"
#include "sdr/units.hpp"

namespace {

using sdr::Duration;
using sdr::TimePoint;
using sdr::runtime::now;

constexpr std::size_t kMostInOneCall =
    65507;                                 // of UDP payload over IPv4: the segments of a call are one IP packet first
constexpr std::size_t kMostSegments = 64;  // UDP_MAX_SEGMENTS
constexpr std::size_t kReceiveCall = 1 << 16;
constexpr std::uint64_t kMostMemory = 4ULL << 30;

struct Options {
  std::size_t payload = 4096;
  std::size_t batch = kMostSegments;
  Duration time = std::chrono::seconds(2);
  std::uint64_t bytes = 0;  // 0: until the time is over
  int buffer = 8 << 20;
  bool zerocopy = false;
  std::uint64_t sender_memory = 0;  // 0: the bytes of one call, again and again
  std::uint64_t receiver_memory = 0;
  int sender_cpu = -1;  // -1: wherever the kernel likes
  int receiver_cpu = -1;
};

// What the sender tells the receiver through a pipe when it is done.
struct Sent {
  std::uint64_t bytes = 0;
  std::uint64_t calls = 0;
  std::int64_t nanoseconds = 0;
  std::uint64_t finished = 0;  // of the calls with MSG_ZEROCOPY, by the kernel's word
  std::uint64_t copied = 0;    // of those
};

struct Received {
  std::uint64_t bytes = 0;
  std::uint64_t calls = 0;
  TimePoint first{};
  TimePoint last{};
};

[[noreturn]] void die(const std::string& message) {
  std::fprintf(stderr, "bare_udp: %s\n", message.c_str());
  std::exit(1);
}

[[noreturn]] void die_of_errno(const std::string& what) {
  die(what + ": " + std::strerror(errno));
}

template <typename T>
T value_or_die(sdr::Result<T> result) {
  if (!result) die(result.error().message);
  return std::move(*result);
}

Options parse(int argc, char** argv) {
  const option known[] = {{"payload", required_argument, nullptr, 'p'},
                          {"seconds", required_argument, nullptr, 's'},
                          {"bytes", required_argument, nullptr, 'b'},
                          {"batch", required_argument, nullptr, 'n'},
                          {"buffer", required_argument, nullptr, 'r'},
                          {"zerocopy", no_argument, nullptr, 'z'},
                          {"cpu", required_argument, nullptr, 'c'},
                          {"memory", required_argument, nullptr, 'm'},
                          {nullptr, 0, nullptr, 0}};
  Options options;
  for (int given = 0; (given = ::getopt_long(argc, argv, "", known, nullptr)) != -1;) {
    switch (given) {
      case 'p':
        options.payload = value_or_die(sdr::parse_bytes(optarg)).count;
        break;
      case 's':
        options.time = value_or_die(sdr::parse_duration(std::string(optarg) + "s"));
        break;
      case 'b':
        options.bytes = value_or_die(sdr::parse_bytes(optarg)).count;
        break;
      case 'n':
        options.batch = value_or_die(sdr::parse_bytes(optarg)).count;
        break;
      case 'r':
        options.buffer =
            static_cast<int>(std::min<std::uint64_t>(value_or_die(sdr::parse_bytes(optarg)).count, 1U << 30));
        break;
      case 'z':
        options.zerocopy = true;
        break;
      case 'c':
        if (std::sscanf(optarg, "%d,%d", &options.sender_cpu, &options.receiver_cpu) != 2 || options.sender_cpu < 0 ||
            options.receiver_cpu < 0)
          die(fmt::format("--cpu {} is not two numbers of cores, SENDER,RECEIVER", optarg));
        break;
      case 'm': {
        const std::string_view sizes = optarg;
        const std::size_t comma = sizes.find(',');
        if (comma == std::string_view::npos) die(fmt::format("--memory {} is not two sizes, SENDER,RECEIVER", sizes));
        options.sender_memory = value_or_die(sdr::parse_bytes(sizes.substr(0, comma))).count;
        options.receiver_memory = value_or_die(sdr::parse_bytes(sizes.substr(comma + 1))).count;
        if (std::max(options.sender_memory, options.receiver_memory) > kMostMemory) {
          die(fmt::format("--memory {} is more than {}", sizes, to_string(sdr::Bytes{kMostMemory})));
        }
        break;
      }
      default:
        die("usage: bare_udp [--payload BYTES] [--seconds S | --bytes BYTES] [--batch PACKETS] [--buffer BYTES] "
            "[--zerocopy] [--cpu SENDER,RECEIVER] [--memory SENDER,RECEIVER]");
    }
  }
  if (optind != argc) die(std::string("unknown argument ") + argv[optind]);
  if (options.payload < 1 || options.payload > kMostInOneCall) {
    die(fmt::format("payload {} is outside 1 to {}", options.payload, kMostInOneCall));
  }
  options.batch = std::clamp<std::size_t>(options.batch, 1, std::min(kMostSegments, kMostInOneCall / options.payload));
  return options;
}

void pin(int cpu) {
  if (cpu < 0) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<unsigned>(cpu), &set);
  if (::sched_setaffinity(0, sizeof set, &set) != 0) die_of_errno(fmt::format("core {}", cpu));
}

int udp_socket() {
  const int fd = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) die_of_errno("socket");
  return fd;
}

void set(int fd, int level, int name, int value, const char* what) {
  if (::setsockopt(fd, level, name, &value, sizeof value) != 0) die_of_errno(what);
}

// Memory that calls walk over from the front to the end and again.
class Walk {
 public:
  Walk(std::uint64_t size, std::size_t call)
      : size_(std::max<std::uint64_t>(size, call)),
        call_(call),
        memory_(value_or_die(sdr::experiment::TouchedMemory::allocate(size_))) {
    // The other end would share it until the first write.
    ::madvise(memory_.bytes().data(), memory_.bytes().size(), MADV_DONTFORK);
  }

  [[nodiscard]] std::byte* here() const { return &memory_.bytes()[at_]; }
  void pass(std::size_t bytes) {
    at_ += bytes;
    if (at_ + call_ > size_) at_ = 0;
  }

 private:
  std::uint64_t size_;
  std::size_t call_;
  sdr::experiment::TouchedMemory memory_;
  std::uint64_t at_ = 0;
};

// Takes what the kernel says of sends with MSG_ZEROCOPY: calls [ee_info, ee_data] are finished.
void take_finished(int fd, Sent& sent) {
  for (;;) {
    alignas(cmsghdr) char control[128];
    msghdr message{};
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    if (::recvmsg(fd, &message, MSG_ERRQUEUE | MSG_DONTWAIT) < 0) return;
    for (cmsghdr* c = CMSG_FIRSTHDR(&message); c != nullptr; c = CMSG_NXTHDR(&message, c)) {
      sock_extended_err error{};
      std::memcpy(&error, CMSG_DATA(c), sizeof error);
      if (error.ee_origin != SO_EE_ORIGIN_ZEROCOPY) continue;
      const std::uint64_t calls = error.ee_data - error.ee_info + 1;
      sent.finished += calls;
      if ((error.ee_code & SO_EE_CODE_ZEROCOPY_COPIED) != 0) sent.copied += calls;
    }
  }
}

Sent send_all(const Options& options, const sockaddr_in& to) {
  const int fd = udp_socket();
  if (::connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0) die_of_errno("connect");
  set(fd, SOL_UDP, UDP_SEGMENT, static_cast<int>(options.payload), "UDP_SEGMENT");
  if (options.zerocopy) set(fd, SOL_SOCKET, SO_ZEROCOPY, 1, "SO_ZEROCOPY");
  const int flags = options.zerocopy ? MSG_ZEROCOPY : 0;
  const std::size_t call = options.batch * options.payload;
  Walk memory(options.sender_memory, call);

  Sent sent;
  const TimePoint start = now();
  const TimePoint end = options.bytes == 0 ? start + options.time : sdr::kNever;
  const std::uint64_t most = options.bytes == 0 ? ~std::uint64_t{0} : options.bytes;
  while (sent.bytes < most && now() < end) {
    // ECONNREFUSED would be the receiver that has died: no use to go on.
    const ssize_t took = ::send(fd, memory.here(), call, flags);
    if (options.zerocopy && (took < 0 || sent.calls % 16 == 0)) take_finished(fd, sent);
    if (took < 0 && errno != ENOBUFS && errno != EINTR) die_of_errno("send");
    if (took < 0) continue;
    sent.bytes += static_cast<std::uint64_t>(took);
    ++sent.calls;
    memory.pass(call);
  }
  sent.nanoseconds = (now() - start).count();
  ::close(fd);
  return sent;
}

// Until the sender says that it is done and nothing has come for a while.
Received receive_all(Walk& memory, int fd, int sender) {
  Received received;
  for (;;) {
    const ssize_t got = ::recv(fd, memory.here(), kReceiveCall, 0);
    if (got >= 0) {
      received.last = now();
      if (received.calls++ == 0) received.first = received.last;
      received.bytes += static_cast<std::uint64_t>(got);
      memory.pass(static_cast<std::size_t>(got));
      continue;
    }
    if (errno == EINTR) continue;
    if (errno != EAGAIN) die_of_errno("recv");
    pollfd done{.fd = sender, .events = POLLIN, .revents = 0};
    if (::poll(&done, 1, 0) == 1) return received;
  }
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse(argc, argv);

  const int fd = udp_socket();
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  if (::bind(fd, reinterpret_cast<const sockaddr*>(&address), size) != 0) die_of_errno("bind");
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) die_of_errno("getsockname");
  set(fd, SOL_UDP, UDP_GRO, 1, "UDP_GRO");
  // With the right to, beyond net.core.rmem_max.
  if (::setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &options.buffer, sizeof options.buffer) != 0) {
    set(fd, SOL_SOCKET, SO_RCVBUF, options.buffer, "SO_RCVBUF");
  }
  const timeval patience{.tv_sec = 0, .tv_usec = 50'000};
  if (::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) != 0) die_of_errno("SO_RCVTIMEO");

  Walk memory(options.receiver_memory, kReceiveCall);  // touched before anything is sent

  int pipes[2];
  if (::pipe(pipes) != 0) die_of_errno("pipe");
  const pid_t sender = ::fork();
  if (sender < 0) die_of_errno("fork");
  if (sender == 0) {
    ::close(fd);
    ::close(pipes[0]);
    pin(options.sender_cpu);
    const Sent sent = send_all(options, address);
    if (::write(pipes[1], &sent, sizeof sent) != static_cast<ssize_t>(sizeof sent)) std::_Exit(1);
    std::_Exit(0);
  }
  ::close(pipes[1]);

  pin(options.receiver_cpu);
  const Received received = receive_all(memory, fd, pipes[0]);
  Sent sent;
  if (::read(pipes[0], &sent, sizeof sent) != static_cast<ssize_t>(sizeof sent)) die("the sender failed");
  int status = 0;
  ::waitpid(sender, &status, 0);

  const double seconds = std::chrono::duration<double>(received.last - received.first).count();
  const double lost =
      sent.bytes == 0 ? 0.0 : 1.0 - static_cast<double>(received.bytes) / static_cast<double>(sent.bytes);
  fmt::print(
      "{{\"benchmark\":\"bare_udp\",\"payload\":{},\"batch\":{},\"seconds\":{:.3f},\"goodput_gbps\":{:.3f},"
      "\"sent_gbps\":{:.3f},\"lost\":{:.6f},\"bytes_received\":{},\"bytes_sent\":{},\"send_calls\":{},"
      "\"receive_calls\":{},\"copied\":{:.4f}}}\n",
      options.payload, options.batch, seconds, seconds > 0 ? static_cast<double>(received.bytes) * 8e-9 / seconds : 0.0,
      sent.nanoseconds > 0 ? static_cast<double>(sent.bytes) * 8.0 / static_cast<double>(sent.nanoseconds) : 0.0, lost,
      received.bytes, sent.bytes, sent.calls, received.calls,
      sent.finished == 0 ? 0.0 : static_cast<double>(sent.copied) / static_cast<double>(sent.finished));
  return 0;
}

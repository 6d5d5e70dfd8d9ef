// What AF_XDP gives where there is no NIC for it: two processes over a pair of veth devices, generic copy mode,
// Ethernet frames of one UDP packet each, as many a system call as the ring takes. To be read against bench/bare_udp,
// from runs next to each other: AF_XDP knows neither segmentation nor coalescing, so that each packet passes through
// the kernel alone (docs/decisions/0006-udp-data-path.md).
//   bare_xdp --payload 1440 --seconds 2
// One JSON line. Needs root (CAP_NET_ADMIN, CAP_BPF) and `ip`; works in a network namespace of its own.
#include <fmt/format.h>
#include <linux/bpf.h>
#include <linux/if_link.h>
#include <linux/if_xdp.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "runtime/clock.hpp"
#include "sdr/units.hpp"

namespace {

using sdr::Duration;
using sdr::TimePoint;
using sdr::runtime::now;

constexpr std::uint32_t kFrames = 4096;
constexpr std::uint32_t kRing = 2048;
constexpr std::uint32_t kHeaders = 14 + 20 + 8;  // Ethernet, IPv4, UDP
constexpr std::uint32_t kFrameRoom = 4096;       // the largest that there may be

[[noreturn]] void die(const std::string& what) {
  std::fprintf(stderr, "bare_xdp: %s: %s\n", what.c_str(), std::strerror(errno));
  std::exit(1);
}

int bpf(int command, bpf_attr& attributes) {
  return static_cast<int>(::syscall(SYS_bpf, command, &attributes, sizeof attributes));
}

// A program that hands every packet to the socket in the map, at the index of its queue.
int redirecting_program(int map) {
  const auto instruction = [](std::uint8_t code, std::uint8_t to, std::uint8_t from, std::int16_t offset,
                              std::int32_t value) {
    bpf_insn made{};
    made.code = code;
    made.dst_reg = to & 0xf;
    made.src_reg = from & 0xf;
    made.off = offset;
    made.imm = value;
    return made;
  };
  const bpf_insn program[] = {
      instruction(BPF_LDX | BPF_W | BPF_MEM, BPF_REG_2, BPF_REG_1, offsetof(xdp_md, rx_queue_index), 0),
      // BPF_LD and BPF_IMM are zero.
      instruction(BPF_DW, BPF_REG_1, BPF_PSEUDO_MAP_FD, 0, map),
      instruction(0, 0, 0, 0, 0),
      instruction(BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_3, 0, 0, XDP_PASS),
      instruction(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_redirect_map),
      instruction(BPF_JMP | BPF_EXIT, 0, 0, 0, 0),
  };
  bpf_attr attributes{};
  attributes.prog_type = BPF_PROG_TYPE_XDP;
  attributes.insns = reinterpret_cast<std::uintptr_t>(program);
  attributes.insn_cnt = sizeof program / sizeof program[0];
  attributes.license = reinterpret_cast<std::uintptr_t>("GPL");
  attributes.expected_attach_type = BPF_XDP;
  const int fd = bpf(BPF_PROG_LOAD, attributes);
  if (fd < 0) die("cannot load the XDP program");
  return fd;
}

// A ring that the kernel shares: where it lies, and how far both sides have come.
struct Ring {
  std::atomic<std::uint32_t>* producer = nullptr;
  std::atomic<std::uint32_t>* consumer = nullptr;
  void* entries = nullptr;
};

Ring map_ring(int fd, std::uint64_t page, const xdp_ring_offset& offsets, std::size_t entry) {
  void* at = ::mmap(nullptr, offsets.desc + kRing * entry, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd,
                    static_cast<off_t>(page));
  if (at == MAP_FAILED) die("mmap of a ring");
  char* base = static_cast<char*>(at);
  return {reinterpret_cast<std::atomic<std::uint32_t>*>(base + offsets.producer),
          reinterpret_cast<std::atomic<std::uint32_t>*>(base + offsets.consumer), base + offsets.desc};
}

struct Socket {
  int fd = -1;
  char* memory = nullptr;
  Ring fill, completion, receive, transmit;
};

Socket open_socket(const char* device) {
  Socket made;
  made.fd = ::socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0);
  if (made.fd < 0) die("socket(AF_XDP)");
  const std::size_t bytes = std::size_t{kFrames} * kFrameRoom;
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (memory == MAP_FAILED) die("mmap");
  made.memory = static_cast<char*>(memory);
  xdp_umem_reg region{};
  region.addr = reinterpret_cast<std::uintptr_t>(memory);
  region.len = bytes;
  region.chunk_size = kFrameRoom;
  if (::setsockopt(made.fd, SOL_XDP, XDP_UMEM_REG, &region, sizeof region) != 0) die("XDP_UMEM_REG");
  for (const int ring : {XDP_UMEM_FILL_RING, XDP_UMEM_COMPLETION_RING, XDP_RX_RING, XDP_TX_RING}) {
    const int entries = kRing;
    if (::setsockopt(made.fd, SOL_XDP, ring, &entries, sizeof entries) != 0) die("size of a ring");
  }
  xdp_mmap_offsets offsets{};
  socklen_t size = sizeof offsets;
  if (::getsockopt(made.fd, SOL_XDP, XDP_MMAP_OFFSETS, &offsets, &size) != 0) die("XDP_MMAP_OFFSETS");
  made.fill = map_ring(made.fd, XDP_UMEM_PGOFF_FILL_RING, offsets.fr, sizeof(std::uint64_t));
  made.completion = map_ring(made.fd, XDP_UMEM_PGOFF_COMPLETION_RING, offsets.cr, sizeof(std::uint64_t));
  made.receive = map_ring(made.fd, XDP_PGOFF_RX_RING, offsets.rx, sizeof(xdp_desc));
  made.transmit = map_ring(made.fd, XDP_PGOFF_TX_RING, offsets.tx, sizeof(xdp_desc));
  sockaddr_xdp address{};
  address.sxdp_family = AF_XDP;
  address.sxdp_ifindex = ::if_nametoindex(device);
  address.sxdp_flags = XDP_COPY;
  if (::bind(made.fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) die("bind to a device");
  return made;
}

struct Counts {
  std::uint64_t packets = 0;
  std::uint64_t calls = 0;
  std::int64_t nanoseconds = 0;
};

Counts send_all(std::uint32_t frame, TimePoint end) {
  const Socket socket = open_socket("sdr0");
  // Broadcast, of a type that no stack wants.
  for (std::uint32_t i = 0; i < kFrames; ++i) {
    char* at = socket.memory + std::size_t{i} * kFrameRoom;
    std::memset(at, 0xff, 6);
    at[12] = static_cast<char>(0x88);
    at[13] = static_cast<char>(0xb5);
  }
  Counts counts;
  auto* entries = static_cast<xdp_desc*>(socket.transmit.entries);
  const TimePoint start = now();
  std::uint32_t head = 0;
  std::uint32_t done = 0;
  while (now() < end) {
    for (; head - done < kRing; ++head) {
      entries[head % kRing] = {std::uint64_t{head % kFrames} * kFrameRoom, frame, 0};
    }
    socket.transmit.producer->store(head, std::memory_order_release);
    // A queue that is full is no error; what has been sent is seen in the completion ring.
    (void)::sendto(socket.fd, nullptr, 0, MSG_DONTWAIT, nullptr, 0);
    ++counts.calls;
    const std::uint32_t completed = socket.completion.producer->load(std::memory_order_acquire);
    counts.packets += completed - done;
    done = completed;
    socket.completion.consumer->store(done, std::memory_order_release);
  }
  counts.nanoseconds = (now() - start).count();
  return counts;
}

Counts receive_all(const Socket& socket, TimePoint end) {
  Counts counts;
  auto* fill = static_cast<std::uint64_t*>(socket.fill.entries);
  for (std::uint32_t i = 0; i < kRing; ++i) fill[i] = std::uint64_t{i} * kFrameRoom;
  std::uint32_t filled = kRing;
  socket.fill.producer->store(filled, std::memory_order_release);
  const auto* entries = static_cast<const xdp_desc*>(socket.receive.entries);
  std::uint32_t at = 0;
  TimePoint first{};
  TimePoint last{};
  while (now() < end) {
    pollfd wait{.fd = socket.fd, .events = POLLIN, .revents = 0};
    (void)::poll(&wait, 1, 10);
    ++counts.calls;
    const std::uint32_t here = socket.receive.producer->load(std::memory_order_acquire);
    if (here == at) continue;
    last = now();
    if (counts.packets == 0) first = last;
    counts.packets += here - at;
    for (; at != here; ++at) fill[filled++ % kRing] = entries[at % kRing].addr / kFrameRoom * kFrameRoom;
    socket.receive.consumer->store(at, std::memory_order_release);
    socket.fill.producer->store(filled, std::memory_order_release);
  }
  counts.nanoseconds = (last - first).count();
  return counts;
}

void run(const char* command) {
  if (std::system(command) != 0) die(std::string(command) + " failed");
}

}  // namespace

int main(int argc, char** argv) {
  std::uint32_t payload = 1440;
  Duration time = std::chrono::seconds(2);
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::strcmp(argv[i], "--payload") == 0) payload = static_cast<std::uint32_t>(std::atoi(argv[i + 1]));
    if (std::strcmp(argv[i], "--seconds") == 0) time = std::chrono::seconds(std::atoi(argv[i + 1]));
  }
  // A page of user memory a frame, headroom included: no room for 4096 bytes of payload.
  if (payload < 1 || payload > 3400) {
    std::fprintf(stderr, "bare_xdp: payload %u is outside 1 to 3400, what a frame of one page holds\n", payload);
    return 2;
  }
  if (::unshare(CLONE_NEWNET) != 0) die("a network namespace");
  run("ip link add sdr0 mtu 3500 type veth peer name sdr1 mtu 3500 && ip link set sdr0 up && ip link set sdr1 up");
  const Socket receiver = open_socket("sdr1");
  bpf_attr attributes{};
  attributes.map_type = BPF_MAP_TYPE_XSKMAP;
  attributes.key_size = attributes.value_size = 4;
  attributes.max_entries = 1;
  const int map = bpf(BPF_MAP_CREATE, attributes);
  if (map < 0) die("cannot make a map of sockets");
  const std::uint32_t queue = 0;
  attributes = {};
  attributes.map_fd = static_cast<std::uint32_t>(map);
  attributes.key = reinterpret_cast<std::uintptr_t>(&queue);
  attributes.value = reinterpret_cast<std::uintptr_t>(&receiver.fd);
  if (bpf(BPF_MAP_UPDATE_ELEM, attributes) != 0) die("cannot put the socket into the map");
  attributes = {};
  attributes.link_create.prog_fd = static_cast<std::uint32_t>(redirecting_program(map));
  attributes.link_create.target_ifindex = ::if_nametoindex("sdr1");
  attributes.link_create.attach_type = BPF_XDP;
  if (bpf(BPF_LINK_CREATE, attributes) < 0) die("cannot attach the XDP program");

  int pipe[2];
  if (::pipe(pipe) != 0) die("pipe");
  const TimePoint end = now() + time;
  const pid_t child = ::fork();
  if (child < 0) die("fork");
  Counts sent;
  if (child == 0) {
    sent = send_all(payload + kHeaders, end);
    std::_Exit(::write(pipe[1], &sent, sizeof sent) == sizeof sent ? 0 : 1);
  }
  const Counts received = receive_all(receiver, end + std::chrono::milliseconds(100));
  ::waitpid(child, nullptr, 0);
  if (::read(pipe[0], &sent, sizeof sent) != sizeof sent) die("the sender has failed");
  const double gbps = received.nanoseconds == 0 ? 0
                                                : static_cast<double>(received.packets) * payload * 8 /
                                                      static_cast<double>(received.nanoseconds);
  fmt::print(
      "{{\"benchmark\":\"bare_xdp\",\"payload\":{},\"goodput_gbps\":{:.3f},\"packets_sent\":{},"
      "\"packets_received\":{},\"send_calls\":{},\"receive_calls\":{}}}\n",
      payload, gbps, sent.packets, received.packets, sent.calls, received.calls);
  return 0;
}

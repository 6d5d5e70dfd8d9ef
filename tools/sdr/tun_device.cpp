#include "sdr/tun_device.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <linux/if_tun.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

namespace sdr::cli {
namespace {

// linux/ipv6.h has it, beside declarations that netinet/in.h has, too.
struct Ipv6Request {
  in6_addr address;
  std::uint32_t prefix_length;
  int interface_index;
};

Error refused(const std::string& what) {
  return {ErrorCode::System, fmt::format("{}: {}", what, std::strerror(errno))};
}

ifreq request_for(const std::string& name) {
  ifreq request{};
  name.copy(request.ifr_name, sizeof request.ifr_name - 1);
  return request;
}

void put_ipv4(sockaddr& into, std::uint32_t address) {
  sockaddr_in ipv4{};
  ipv4.sin_family = AF_INET;
  ipv4.sin_addr.s_addr = address;
  std::memcpy(&into, &ipv4, sizeof ipv4);
}

bool bring_up(int control, const std::string& name) {
  ifreq request = request_for(name);
  if (::ioctl(control, SIOCGIFFLAGS, &request) != 0) return false;
  request.ifr_flags = static_cast<short>(request.ifr_flags | IFF_UP | IFF_RUNNING);
  return ::ioctl(control, SIOCSIFFLAGS, &request) == 0;
}

// By netlink: the ioctl for it wants to be root outside of all user namespaces.
Result<void> set_queue(const std::string& name, std::uint32_t queue) {
  struct {
    nlmsghdr header;
    ifinfomsg interface;
    rtattr attribute;
    std::uint32_t length;
  } request{};
  request.header = {.nlmsg_len = sizeof request, .nlmsg_type = RTM_NEWLINK, .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK};
  request.interface.ifi_index = static_cast<int>(::if_nametoindex(name.c_str()));
  request.attribute = {.rta_len = sizeof request.attribute + sizeof request.length, .rta_type = IFLA_TXQLEN};
  request.length = queue;
  struct {
    nlmsghdr header;
    nlmsgerr error;
  } answer{};
  const FileDescriptor netlink(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
  const bool asked = netlink.valid() && ::send(netlink.get(), &request, sizeof request, 0) == sizeof request &&
                     ::recv(netlink.get(), &answer, sizeof answer, 0) >= static_cast<ssize_t>(sizeof answer.header);
  if (asked && answer.header.nlmsg_type == NLMSG_ERROR) errno = -answer.error.error;
  if (asked && answer.error.error == 0) return {};
  return refused(fmt::format("queue of {} packets for {}", queue, name));
}

Result<void> configure(int control, const std::string& name, std::uint32_t mtu, std::uint32_t queue,
                       const std::string& ipv4) {
  ifreq request = request_for(name);
  request.ifr_mtu = static_cast<int>(mtu);
  if (::ioctl(control, SIOCSIFMTU, &request) != 0) return refused(fmt::format("MTU {} of {}", mtu, name));
  if (Result<void> set = set_queue(name, queue); !set) return set.error();
  in_addr address{};
  if (::inet_pton(AF_INET, ipv4.c_str(), &address) != 1) {
    return Error{ErrorCode::InvalidArgument, fmt::format("\"{}\" is no IPv4 address", ipv4)};
  }
  put_ipv4(request.ifr_addr, address.s_addr);
  if (::ioctl(control, SIOCSIFADDR, &request) != 0) return refused(fmt::format("address {} of {}", ipv4, name));
  put_ipv4(request.ifr_netmask, htonl(0xffffff00));
  if (::ioctl(control, SIOCSIFNETMASK, &request) != 0) return refused(fmt::format("netmask of {}", name));
  if (!bring_up(control, name) || !bring_up(control, "lo")) return refused(fmt::format("bringing up {}", name));
  return {};
}

// Whole pieces of TCP and UDP instead of packets cut by the kernel: as much of that as this kernel has. Without any of
// it packets come as they always do.
void take_pieces(int file) {
  constexpr unsigned kUdpSegments = 0x20 | 0x40;  // TUN_F_USO4 and TUN_F_USO6, Linux 6.2
  constexpr unsigned kTcpSegments = TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6 | TUN_F_TSO_ECN;
  if (::ioctl(file, TUNSETOFFLOAD, kTcpSegments | kUdpSegments) == 0) return;
  if (::ioctl(file, TUNSETOFFLOAD, kTcpSegments) == 0) return;
  static_cast<void>(::ioctl(file, TUNSETOFFLOAD, 0U));
}

// False where the kernel has no IPv6.
bool add_ipv6(const std::string& name, const std::string& address) {
  const FileDescriptor control(::socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (control.get() < 0) return false;
  Ipv6Request request{};
  request.prefix_length = 64;
  request.interface_index = static_cast<int>(::if_nametoindex(name.c_str()));
  return ::inet_pton(AF_INET6, address.c_str(), &request.address) == 1 &&
         ::ioctl(control.get(), SIOCSIFADDR, &request) == 0;
}

}  // namespace

Result<TunDevice> TunDevice::open(const std::string& name, std::uint32_t mtu, std::uint32_t queue,
                                  TunAddresses& addresses) {
  FileDescriptor file(::open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC));
  if (file.get() < 0) {
    return refused(
        "cannot open /dev/net/tun (it needs the kernel module tun, and the right to open it: root, or chmod 0666; in a "
        "container, --device /dev/net/tun)");
  }
  ifreq request = request_for(name);
  request.ifr_flags = IFF_TUN | IFF_NO_PI | IFF_VNET_HDR;
  if (::ioctl(file.get(), TUNSETIFF, &request) != 0) return refused(fmt::format("cannot make the interface {}", name));
  take_pieces(file.get());
  const FileDescriptor control(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (control.get() < 0) return refused("socket");
  if (Result<void> done = configure(control.get(), name, mtu, queue, addresses.ipv4); !done) return done.error();
  addresses.has_ipv6 = mtu >= 1280 && add_ipv6(name, addresses.ipv6);  // RFC 8200: IPv6 needs 1280
  return TunDevice(std::move(file));
}

std::size_t TunDevice::read(VirtioHeader& header, std::span<std::byte> into) {
  const std::array<iovec, 2> parts{iovec{.iov_base = &header, .iov_len = sizeof header},
                                   iovec{.iov_base = into.data(), .iov_len = into.size()}};
  const ssize_t got = ::readv(file_.get(), parts.data(), static_cast<int>(parts.size()));
  return got > static_cast<ssize_t>(sizeof header) ? static_cast<std::size_t>(got) - sizeof header : 0;
}

bool TunDevice::write(std::span<const iovec> parts) {
  return ::writev(file_.get(), parts.data(), static_cast<int>(parts.size())) > 0;
}

std::uint64_t TunDevice::dropped(const std::string& name) {
  std::ifstream file("/proc/thread-self/net/dev");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos || line.substr(0, colon).find(name) == std::string::npos) continue;
    // Eight columns of what was received, then bytes, packets, errors and drops of what was sent.
    std::istringstream columns(line.substr(colon + 1));
    std::uint64_t value = 0;
    for (int column = 0; column < 12 && columns >> value; ++column) {
    }
    return value;
  }
  return 0;
}

}  // namespace sdr::cli

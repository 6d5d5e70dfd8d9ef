#include "sdr/emulate_ends.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

namespace sdr::cli {
namespace {

// Packets that may wait to be read: what a sender can hand over while the forwarder has not got its turn. More than a
// batch of every socket, so that the path's own queue is the one that drops.
constexpr std::uint32_t kUnread = 16384;

Result<void> write_file(const std::string& path, const std::string& text) {
  std::ofstream file(path);
  file << text;
  if (file.flush()) return {};
  return Error{ErrorCode::System, fmt::format("cannot write \"{}\" to {}: {}", text, path, std::strerror(errno))};
}

Result<void> enter_user_namespace() {
  const uid_t user = ::getuid();
  const gid_t group = ::getgid();
  if (::unshare(CLONE_NEWUSER) != 0) {
    return Error{
        ErrorCode::System,
        fmt::format("cannot make a user namespace: {}. Run as root (in a container: --cap-add NET_ADMIN,SYS_ADMIN "
                    "--device /dev/net/tun), or allow user namespaces (sysctl user.max_user_namespaces, "
                    "kernel.unprivileged_userns_clone, kernel.apparmor_restrict_unprivileged_userns)",
                    std::strerror(errno))};
  }
  if (Result<void> done = write_file("/proc/self/setgroups", "deny"); !done) return done;
  if (Result<void> done = write_file("/proc/self/uid_map", fmt::format("0 {} 1", user)); !done) return done;
  return write_file("/proc/self/gid_map", fmt::format("0 {} 1", group));
}

Result<void> enter_new_network() {
  if (::unshare(CLONE_NEWNET) == 0) return {};
  if (errno == EPERM) {
    if (Result<void> done = enter_user_namespace(); !done) return done;
    if (::unshare(CLONE_NEWNET) == 0) return {};
  }
  return Error{ErrorCode::System, fmt::format("cannot make a network namespace: {}", std::strerror(errno))};
}

Result<EmulatedEnd> make_end(std::uint32_t mtu, TunAddresses addresses) {
  if (Result<void> done = enter_new_network(); !done) return done.error();
  FileDescriptor network(::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
  if (network.get() < 0) {
    return Error{ErrorCode::System, fmt::format("cannot open /proc/thread-self/ns/net: {}", std::strerror(errno))};
  }
  // What the kernel would say by itself when the interface comes up is nobody's traffic.
  static_cast<void>(write_file("/proc/sys/net/ipv6/conf/default/router_solicitations", "0"));
  Result<TunDevice> tun = TunDevice::open(kTunName, mtu, kUnread, addresses);
  if (!tun) return tun.error();
  return EmulatedEnd{std::move(network), std::move(tun).value(), std::move(addresses)};
}

}  // namespace

Result<EmulatedEnds> EmulatedEnds::make(std::uint32_t mtu) {
  Result<EmulatedEnd> left = make_end(mtu, {.ipv4 = "10.0.0.1", .ipv6 = "fd00::1"});
  if (!left) return left.error();
  Result<EmulatedEnd> right = make_end(mtu, {.ipv4 = "10.0.0.2", .ipv6 = "fd00::2"});
  if (!right) return right.error();
  return EmulatedEnds{{std::move(left).value(), std::move(right).value()}};
}

Result<void> EmulatedEnds::set_sysctl(const std::string& name, const std::string& value) const {
  std::string path = "/proc/sys/" + name;
  std::replace(path.begin() + 10, path.end(), '.', '/');
  for (const EmulatedEnd& at : end) {
    if (Result<void> entered = enter(at); !entered) return entered;
    if (Result<void> written = write_file(path, value); !written) return written;
  }
  return {};
}

std::uint64_t EmulatedEnds::dropped_unread(std::size_t which) const {
  return enter(end[which]) ? TunDevice::dropped(kTunName) : 0;
}

Result<void> enter(const EmulatedEnd& end) {
  if (::setns(end.network.get(), CLONE_NEWNET) == 0) return {};
  return Error{ErrorCode::System, fmt::format("cannot enter a network namespace: {}", std::strerror(errno))};
}

}  // namespace sdr::cli

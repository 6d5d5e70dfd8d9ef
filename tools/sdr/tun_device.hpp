// TunDevice: a network interface whose cable is this program: what the kernel sends on it is read here, and what is
// written here the kernel receives. Whole IP packets, one a call.
//
// It belongs to the network namespace in which it was opened, whoever holds it, and is gone when it is closed. No
// offloads: the kernel cuts its segments to the MTU before they come here, so that each packet has its own fate.
// Linux, /dev/net/tun; needs CAP_NET_ADMIN in the namespace. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "sdr/file_store.hpp"
#include "sdr/result.hpp"

namespace sdr::cli {

struct TunAddresses {
  std::string ipv4;       // its own, in a subnet of 24 bits
  std::string ipv6;       // in one of 64 bits
  bool has_ipv6 = false;  // out: this kernel has IPv6
};

class TunDevice {
 public:
  // In the network namespace of the calling thread; the interface is up when it returns, the loopback too. `queue` is
  // how many packets may wait to be read.
  static Result<TunDevice> open(const std::string& name, std::uint32_t mtu, std::uint32_t queue,
                                TunAddresses& addresses);

  // 0: nothing there.
  [[nodiscard]] std::size_t read(std::span<std::byte> into);
  // False: the kernel did not take it.
  [[nodiscard]] bool write(std::span<const std::byte> packet);
  [[nodiscard]] int fd() const { return file_.get(); }

  // Packets that the kernel dropped because they were not read in time; to be called in the interface's namespace.
  [[nodiscard]] static std::uint64_t dropped(const std::string& name);

 private:
  explicit TunDevice(FileDescriptor file) : file_(std::move(file)) {}

  FileDescriptor file_;
};

}  // namespace sdr::cli

// TunDevice: a network interface whose cable is this program: what the kernel sends on it is read here, and what is
// written here the kernel receives. IP packets, or pieces longer than the MTU (segment_offload.hpp), each behind a
// VirtioHeader, one a call.
//
// It belongs to the network namespace in which it was opened, whoever holds it, and is gone when it is closed.
// Linux, /dev/net/tun; needs CAP_NET_ADMIN in the namespace. One thread.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "sdr/file_store.hpp"
#include "sdr/result.hpp"
#include "sdr/segment_offload.hpp"

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

  // The most that comes in one piece, behind its header.
  static constexpr std::size_t kMostBytes = 65536;

  // One packet or piece; 0: nothing there.
  [[nodiscard]] std::size_t read(VirtioHeader& header, std::span<std::byte> into);
  // A VirtioHeader and what belongs to it. False: the kernel did not take it.
  [[nodiscard]] bool write(std::span<const iovec> parts);
  [[nodiscard]] int fd() const { return file_.get(); }

  // Packets that the kernel dropped because they were not read in time; to be called in the interface's namespace.
  [[nodiscard]] static std::uint64_t dropped(const std::string& name);

 private:
  explicit TunDevice(FileDescriptor file) : file_(std::move(file)) {}

  FileDescriptor file_;
};

}  // namespace sdr::cli

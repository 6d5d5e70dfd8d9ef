// The two ends of an emulated path: a network namespace each, with one TUN interface and the loopback.
//
// Nothing is named in the system: a namespace lives as long as a process is in it or a descriptor holds it, so that
// nothing is left when this program and its commands are gone, however they end. As root the namespaces are made
// directly; otherwise within a user namespace, where the kernel allows it.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "sdr/file_store.hpp"
#include "sdr/result.hpp"
#include "sdr/tun_device.hpp"

namespace sdr::cli {

inline constexpr const char* kTunName = "sdr0";

struct EmulatedEnd {
  FileDescriptor network;  // its namespace
  TunDevice tun;
  TunAddresses addresses;
};

struct EmulatedEnds {
  static constexpr std::size_t kLeft = 0;
  static constexpr std::size_t kRight = 1;

  std::array<EmulatedEnd, 2> end;

  // The calling thread, which must be the only one of the process, is in the right end's namespace afterwards.
  static Result<EmulatedEnds> make(std::uint32_t mtu);
  // Sets a sysctl of the network, "net.ipv4.tcp_rmem", at both ends.
  [[nodiscard]] Result<void> set_sysctl(const std::string& name, const std::string& value) const;
  // Packets that the kernel dropped before they came here, of the end's sending.
  [[nodiscard]] std::uint64_t dropped_unread(std::size_t which) const;
};

// Puts the calling process into the end's network namespace.
Result<void> enter(const EmulatedEnd& end);

}  // namespace sdr::cli

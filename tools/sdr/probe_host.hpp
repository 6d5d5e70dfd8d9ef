// HostCounters: packets that this host dropped outside of any socket of ours, as the kernel counts them for all
// programs together: a hint where a loss may be the host's, never a number to subtract.
//
// The texts are those of /proc/net/softnet_stat, dev, snmp and snmp6; a counter that is not in them stays zero.
// Plain values.
#pragma once

#include <cstdint>
#include <string_view>

#include "sdr/report.hpp"
#include "sdr/result.hpp"

namespace sdr::cli {

struct HostCounters {
  std::uint64_t backlog_drops = 0;         // queues of the cores on the way in (softnet_stat, second column)
  std::uint64_t interface_drops = 0;       // drop and fifo of all interfaces, in and out (dev)
  std::uint64_t receive_buffer_drops = 0;  // RcvbufErrors of UDP: all sockets, ours among them
  std::uint64_t send_buffer_drops = 0;     // SndbufErrors of UDP

  static HostCounters now();
  static HostCounters parse(std::string_view softnet_stat, std::string_view dev, std::string_view snmp,
                            std::string_view snmp6);

  // What was added since `earlier`; counters that went back (an interface that is gone) count as still.
  [[nodiscard]] HostCounters since(const HostCounters& earlier) const;
  [[nodiscard]] Json to_json() const;
  static Result<HostCounters> from_json(const Json& json);
  friend bool operator==(const HostCounters&, const HostCounters&) = default;
};

}  // namespace sdr::cli

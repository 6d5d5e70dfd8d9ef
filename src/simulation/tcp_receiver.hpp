// TcpReceiver: the acknowledging end of a simulated TCP connection: RFC 9293 with delayed acknowledgements (RFC 5681:
// every second segment, at the latest after 40 ms, at once when something is missing or a gap closes) and selective
// ones (RFC 2018, the latest block first).
//
// The window is never what limits the sender. Sans-I/O: segments and times come in, acknowledgements go out.
// Threads: one.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sdr/units.hpp"
#include "simulation/tcp_ranges.hpp"
#include "simulation/tcp_segment.hpp"

namespace sdr::simulation {

class TcpReceiver {
 public:
  static constexpr Duration kDelay{std::chrono::milliseconds(40)};  // Linux' shortest

  std::optional<TcpAck> handle(const TcpData& data, bool marked, TimePoint now);
  // The delayed acknowledgement, once its time has come.
  std::optional<TcpAck> expire(TimePoint now);
  [[nodiscard]] TimePoint next_timeout() const { return unacknowledged_ == 0 ? kNever : delayed_until_; }
  // Segments that the application has, all in order.
  [[nodiscard]] std::uint64_t delivered() const { return next_; }

 private:
  TcpAck acknowledge();

  std::uint64_t next_ = 0;
  TcpRanges beyond_;                   // the first gap
  std::vector<std::uint64_t> recent_;  // a number in each block of the last acknowledgement, latest first
  std::uint64_t marks_ = 0;
  int unacknowledged_ = 0;
  TimePoint delayed_until_{};
};

}  // namespace sdr::simulation

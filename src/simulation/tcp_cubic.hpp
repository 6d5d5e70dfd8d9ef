// TcpCubic: CUBIC, RFC 9438: slow start, the cubic function of the time since the last reduction, the Reno-friendly
// region, fast convergence, a reduction to 0.7.
//
// With HyStart, slow start ends when the least RTT of a round is above that of the round before by an eighth, 4 to
// 16 ms (RFC 9406 with no conservative slow start behind it, which is the delay half of what the kernel does).
//
// Not paced, as in the kernel without fq. Counts are of segments. Threads: one.
#pragma once

#include <cstdint>

#include "simulation/tcp_congestion.hpp"

namespace sdr::simulation {

class TcpCubic final : public TcpCongestion {
 public:
  explicit TcpCubic(bool hystart) : hystart_(hystart) {}

  void begin_recovery(const TcpAckEvent& event) override;
  void end_recovery(TimePoint) override {}
  void timeout(std::uint64_t in_flight, TimePoint now) override;
  void acknowledged(const TcpAckEvent& event) override;
  [[nodiscard]] std::uint64_t window() const override;
  [[nodiscard]] double pace() const override { return 0; }

 private:
  void reduce();
  void grow(const TcpAckEvent& event);
  void look_at_delay(const TcpAckEvent& event);

  bool hystart_;
  double window_ = kTcpInitialWindow;
  double threshold_ = 1e18;
  double most_ = 0;        // W_max
  double reduced_to_ = 0;  // cwnd_epoch
  double friendly_ = 0;    // W_est
  bool epoch_ = false;     // has begun
  TimePoint epoch_start_{};
  double origin_ = 0;  // K, in seconds

  // HyStart's rounds.
  std::uint64_t round_end_ = 0;
  Duration round_least_{0};
  Duration last_round_least_{0};
  int samples_ = 0;
};

}  // namespace sdr::simulation

// TcpBbr: BBR version 1 as the kernel has it (net/ipv4/tcp_bbr.c): a model of the path, the highest delivery rate of
// ten round trips and the least RTT of ten seconds; a pace that is that rate times a gain, and a window of two
// bandwidth-delay products.
//
// Start-up (gain 2.89 until the rate has not grown by a quarter in three rounds), drain, then cycles of eight phases of
// a round trip (gains 1.25, 0.75, and six times 1), and every ten seconds, unless the least RTT was seen by itself, a
// window of 4 segments for 200 ms. In recovery packets are conserved for a round; then the window is what it was.
// Left out: the long-term sampling for policers and the pause after an idle time.
//
// Counts are of segments, rates of segments per second. Threads: one.
#pragma once

#include <array>
#include <cstdint>

#include "simulation/counter_random.hpp"
#include "simulation/tcp_congestion.hpp"

namespace sdr::simulation {

class TcpBbr final : public TcpCongestion {
 public:
  explicit TcpBbr(std::uint64_t seed) : random_(seed, 0) {}

  void begin_recovery(const TcpAckEvent& event) override;
  void end_recovery(TimePoint now) override;
  void timeout(std::uint64_t in_flight, TimePoint now) override;
  void acknowledged(const TcpAckEvent& event) override;
  [[nodiscard]] std::uint64_t window() const override { return window_; }
  [[nodiscard]] double pace() const override { return pace_; }

 private:
  enum class Mode : std::uint8_t { StartUp, Drain, ProbeBandwidth, ProbeRtt };

  // The highest of the last ten rounds: win_minmax.c keeps three candidates for it.
  class HighestRate {
   public:
    void add(std::uint64_t round, double rate);
    void forget() { best_ = {}; }
    [[nodiscard]] double get() const { return best_[0].rate; }

   private:
    struct Sample {
      std::uint64_t round = 0;
      double rate = 0;
    };
    std::array<Sample, 3> best_;
  };

  void update_rate(const TcpAckEvent& event);
  void update_cycle(const TcpAckEvent& event);
  void check_full(const TcpAckEvent& event);
  void check_drain(const TcpAckEvent& event);
  void update_least_rtt(const TcpAckEvent& event);
  void enter_probe_bandwidth(TimePoint now);
  void set_pace(const TcpAckEvent& event);
  void set_window(const TcpAckEvent& event);
  void save_window(bool in_recovery);
  // Segments in flight at `gain` times the bandwidth-delay product.
  [[nodiscard]] std::uint64_t inflight(double gain) const;
  [[nodiscard]] double pacing_gain() const;

  CounterRandom random_;
  std::uint64_t draws_ = 0;
  Mode mode_ = Mode::StartUp;
  HighestRate rate_;
  std::uint64_t round_ = 0;
  std::uint64_t round_end_ = 0;  // `delivered` from which a segment's delivery is the next round
  bool round_start_ = false;
  Duration least_rtt_{0};
  TimePoint least_rtt_at_{};
  TimePoint probe_rtt_done_ = kNever;
  bool probe_rtt_round_done_ = false;
  std::size_t phase_ = 0;
  TimePoint phase_start_{};
  double full_rate_ = 0;
  int full_rounds_ = 0;
  bool full_ = false;
  bool conserving_ = false;
  bool recovering_ = false;
  std::uint64_t prior_window_ = 0;
  std::uint64_t window_ = kTcpInitialWindow;
  double pace_ = 0;
};

}  // namespace sdr::simulation

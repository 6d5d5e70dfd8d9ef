// ModelRate: finds the rate of a path that is shared with others, by a model of it: how fast its bottleneck lets bytes
// through, and how long the way is without a queue.
//
//   start-up   the pace is two to three times what landed, and so much is in flight at most: it grows so much a round
//              trip, until packets arrive further apart than they were sent, or are lost for it, or nothing grows any
//              more
//   drain      what was too much leaves the queue
//   cruise     at the rate that was measured; after some round trips
//   probe-up   a quarter faster, faster yet while that pays, until the path holds a quarter more than without a queue,
//              or loses, or marks; then
//   probe-down slower until what was too much has left the queue
//   probe-rtt  half of the window, when the least RTT has not been seen for ten seconds, when the RTT has become longer
//              and a slow phase does not shorten it (another route), or when the rate has grown by half
//
// Losses: what is lost while sending slower than the bottleneck is random, and is no reason to slow down. What is lost
// beyond that (by the counts, three standard deviations and 2 % above) is congestion: a full queue or a policer.
//
// Sans-I/O, fixed memory. Source: draft-ietf-ccwg-bbr (BBRv3); what differs is in docs/rate-control.md.
#pragma once

#include <array>

#include "reliability/rate_controller.hpp"

namespace sdr::reliability {

class ModelRate final : public RateController {
 public:
  struct Options {
    Bandwidth most{};  // zero: no limit
    std::uint64_t seed = 1;
  };
  explicit ModelRate(const Options& options);

  void begin(Duration rtt, std::uint32_t packet_bytes, TimePoint now) override;
  void reported(const RateSample& sample) override;
  void tick(TimePoint now) override;
  [[nodiscard]] TimePoint next_timeout() const override;
  void resumed(Duration idle, TimePoint now) override;
  [[nodiscard]] Bandwidth pace() const override;
  [[nodiscard]] std::uint64_t window() const override;
  [[nodiscard]] Bandwidth bandwidth() const override { return {estimate()}; }
  [[nodiscard]] bool congested() const override { return congested_rounds_ > 0; }
  void describe(RateStatus& status) const override;

  enum class Phase : std::uint8_t { StartUp, Drain, Down, Cruise, Up, ProbeRtt };
  [[nodiscard]] Phase phase() const { return phase_; }
  [[nodiscard]] double base_loss() const;

 private:
  // What happened to packets sent at one kind of pace.
  struct Tally {
    double packets = 0;
    double lost = 0;
  };

  [[nodiscard]] double estimate() const;        // bit/s
  [[nodiscard]] double bdp(double rate) const;  // bytes
  [[nodiscard]] double quantum() const;
  [[nodiscard]] double start_gain() const;
  [[nodiscard]] Duration queue_of_others() const;
  void enter(Phase phase, double gain, TimePoint now);
  [[nodiscard]] double gain_at(TimePoint sent) const;
  void learn_delay(const RateSample& s);
  void learn_rate(const RateSample& s);
  void learn_loss(const RateSample& s);
  void learn_base(double packets, double lost);
  void end_round(const RateSample& s);
  [[nodiscard]] bool enough_to_judge(const Tally& tally, double least, double share) const;
  [[nodiscard]] bool too_much_lost(const Tally& tally, double share) const;
  void start_up(const RateSample& s);
  void leave_start_up(double rate, TimePoint now);
  void cycle(const RateSample& s);
  void start_rtt_probe(TimePoint now);
  void start_probe(TimePoint now);
  void end_probe(const RateSample& s, bool lossy);
  void slow_down(const RateSample& s);
  void probe_rtt(const RateSample& s);
  // From 0 to 1, the next of its seed.
  [[nodiscard]] double draw();
  void draw_wait(TimePoint now, bool lossy);

  Options options_;
  double packet_bytes_ = 1500;
  std::uint64_t random_;

  Phase phase_ = Phase::StartUp;
  TimePoint phase_at_{};
  std::uint64_t phase_round_ = 0;
  double gain_ = 1;
  struct Gain {
    TimePoint since{};
    double gain = 1;
  };
  std::array<Gain, 16> gains_{};  // of the last phases
  std::size_t gain_count_ = 0;

  std::uint64_t round_ = 0;
  double most_now_ = 0;       // bit/s: the highest of this cycle,
  double most_before_ = 0;    // and of the one before
  double low_ = 0;            // short-term bound after congestion; 0: none
  double latest_ = 0;         // highest of this round,
  double latest_before_ = 0;  // and of the last one;
  double latest_any_ = 0;     // the same of samples that were limited by the sender, too
  double latest_any_before_ = 0;
  double cycle_any_ = 0;        // and of this cycle
  bool pressed_ = false;        // in this cycle a queue stood, or packets were lost to one
  bool limited_round_ = false;  // the application was the limit in it
  int slow_rounds_ = 0;
  TimePoint slow_since_{};
  double high_flight_ = 0;  // bytes in flight with which a probe lost packets; 0: none
  double in_flight_ = 0;

  Duration rtt_min_ = kUnknown;
  TimePoint rtt_min_at_{};
  Duration rtt_latest_{0};
  Duration apart_{0};  // two questions to the peer
  Duration round_rtt_min_ = kUnknown;
  Duration round_rtt_max_{0};
  Duration last_round_rtt_min_ = kUnknown;
  int long_rounds_ = 0;  // in a row that were longer than they should be, alike
  TimePoint rtt_probe_end_{};
  TimePoint rtt_probed_at_{};       // begun
  double probed_rate_ = 0;          // what was believed then
  Duration probed_from_{0};         // likewise
  bool rtt_confirmed_ = false;      // by the last one
  Duration probed_rtt_ = kUnknown;  // the least while probing,
  Duration probed_rtt_most_{0};     // and the most
  TimePoint early_probe_at_ = TimePoint::min();
  Duration early_wait_ = std::chrono::seconds(2);
  bool route_doubt_ = false;       // whether it is the route or our queue, this slow phase says
  Duration delay_now_ = kUnknown;  // least one-way delay of this window,
  Duration delay_before_ = kUnknown;
  TimePoint delay_at_{};
  std::array<Duration, 3> last_delays_{};  // of single samples
  std::size_t delays_ = 0;
  Duration delay_varies_{0};  // from one to the next
  Duration queue_{0};
  Duration queue_smooth_{0};
  Duration round_queue_min_ = kUnknown;
  Duration last_round_queue_min_{0};

  Tally base_;          // sent slower than the bottleneck
  Tally round_tally_;   // since the last judgement
  Tally cruise_tally_;  // the same since cruise began
  Tally probe_tally_;   // sent faster
  std::uint64_t round_marks_ = 0;
  int congested_rounds_ = 0;  // to go
  std::uint64_t judged_round_ = 0;
  TimePoint slowed_at_{};

  // start-up
  double start_rate_ = 0;  // bit/s
  double landed_ = 0;      // most in a round trip, likewise
  double ramp_from_ = 0;   // in the second round trip it grows from there by time, as no answers come; 0: not yet
  TimePoint ramp_at_{};
  TimePoint ramp_end_{};
  double full_ = 0;
  int full_rounds_ = 0;
  double lag_landed_ = 0, lag_sent_ = 0, lag_here_ = 0, lag_there_ = 0;
  int lags_ = 0;

  bool first_drain_ = true;
  std::uint64_t wait_rounds_ = 8;
  TimePoint wait_until_{};
  double up_gain_ = 1.25;
  double up_rate_ = 0;    // when the last round of probing up began
  Duration up_queue_{0};  // when it began

  static constexpr Duration kUnknown = Duration::max();
};

}  // namespace sdr::reliability

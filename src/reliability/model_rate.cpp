#include "reliability/model_rate.hpp"

#include <algorithm>
#include <cmath>

namespace sdr::reliability {
namespace {

// Growth a round trip while starting up: near, where an end that wakes up late is late by a good part of the RTT, less
// than far away, where each round trip counts.
constexpr double kStartGainNear = 2;
constexpr double kStartGainFar = 3;
constexpr double kNear = 20e6;  // ns
constexpr double kFar = 200e6;
constexpr double kStartWindowSlack = 1.125;
constexpr double kFirstPackets = 16;
constexpr Duration kFirstTime = std::chrono::milliseconds(10);
constexpr double kDrainGain = 0.35;
constexpr double kDownGain = 0.75;
constexpr double kUpGain = 1.25;
constexpr double kMostUpGain = 2;
constexpr double kWindowGain = 2;
constexpr double kMargin = 0.99;  // of the measured rate, in cruise
constexpr double kLeastGainToLearn = 0.9;
constexpr double kLeastOfMost = 0.7;
constexpr double kRttProbeGain = 0.5;
constexpr double kMarkedRound = 0.95;  // of the rate after a round with marks
constexpr double kHeadroom = 0.85;     // of the flight that was too much
constexpr double kLossShare = 0.02;
constexpr double kPays = 1.05;  // growth of the rate, a round of probing
constexpr Duration kLeastQueue = std::chrono::milliseconds(3);
constexpr double kWaitRounds = 2;  // between two probes, at least, and
constexpr Duration kWait = std::chrono::milliseconds(100);
constexpr double kWaitRoundsPoliced = 20;
constexpr Duration kWaitPoliced = std::chrono::milliseconds(1000);
constexpr double kHides = 16;
constexpr double kMostRandom = 0.05;
// Losses are judged of so many packets, and of so much of a round trip: on a fast path there are thousands of samples a
// second, a loss comes to light up to three samples late, and what is rare in one sample is not in all of them.
constexpr double kLeastJudged = 50;
constexpr double kLeastJudgedProbe = 8;
constexpr double kJudgedShare = 1.0 / 8;
constexpr double kJudgedShareProbe = 1.0 / 32;
// The same over more packets, where a smaller share says as much.
constexpr double kLossShareLong = 0.01;
constexpr double kLeastJudgedLong = 400;
constexpr double kBaseMemory = 20000;
constexpr Duration kRttWindow = std::chrono::seconds(10);
constexpr double kSuspectGrowth = 1.5;  // of the rate
constexpr Duration kSuspectAfter = std::chrono::seconds(2);
constexpr Duration kLeastOurs = std::chrono::milliseconds(5);
constexpr Duration kLeastMoved = std::chrono::milliseconds(1);
constexpr Duration kEarlyProbe = std::chrono::seconds(2);
constexpr Duration kRttProbe = std::chrono::milliseconds(200);
constexpr Duration kRttProbeNear = std::chrono::milliseconds(50);
constexpr int kRttProbeRounds = 10;
// On a near path two round trips are what an end or a switch may be held up for.
constexpr Duration kSlowFor = std::chrono::milliseconds(20);
constexpr Duration kDelayWindow = std::chrono::seconds(5);
constexpr double kLeastPackets = 4;
constexpr Duration kApartMost = std::chrono::milliseconds(1);
constexpr Duration kLate = std::chrono::milliseconds(4);

double ns(Duration d) {
  return static_cast<double>(d.count());
}

}  // namespace

ModelRate::ModelRate(const Options& options) : options_(options), random_(options.seed) {
  gains_[0] = {TimePoint::min(), 1};
  gain_count_ = 1;
}

// --- what is believed ---

double ModelRate::estimate() const {
  const double most = std::max(most_now_, most_before_);
  return low_ > 0 ? std::min(low_, most) : most;
}

double ModelRate::bdp(double rate) const {
  return rtt_min_ == kUnknown ? 0 : rate * ns(rtt_min_) / 8e9;
}

// In a round whose least is more, packets of others wait.
Duration ModelRate::queue_of_others() const {
  return std::max(rtt_min_ / 8, kLeastQueue);
}

double ModelRate::quantum() const {
  return kLeastPackets * packet_bytes_;
}

double ModelRate::base_loss() const {
  return base_.packets > 0 ? base_.lost / base_.packets : 0;
}

double ModelRate::gain_at(TimePoint sent) const {
  const std::size_t n = std::min(gain_count_, gains_.size());
  for (std::size_t i = 0; i < n; ++i) {
    const Gain& gain = gains_[(gain_count_ - 1 - i) % gains_.size()];
    if (gain.since <= sent) return gain.gain;
  }
  return 1;
}

void ModelRate::enter(Phase phase, double gain, TimePoint now) {
  phase_ = phase;
  phase_at_ = now;
  phase_round_ = round_;
  gain_ = gain;
  gains_[gain_count_++ % gains_.size()] = {now, gain};
}

Bandwidth ModelRate::pace() const {
  double rate = 0;
  if (phase_ == Phase::StartUp) {
    rate = start_rate_;
  } else {
    const double gain = phase_ == Phase::ProbeRtt ? 1 : gain_;  // the window is what counts there
    rate = estimate() * gain * (gain <= 1 ? kMargin : 1);
  }
  const double least = packet_bytes_ * 8.0 / 0.1;  // a packet in 100 ms
  rate = std::max(rate, least);
  if (options_.most.limited()) rate = std::min(rate, options_.most.bits_per_second);
  return {rate};
}

double ModelRate::start_gain() const {
  const double far = std::clamp((ns(rtt_min_) - kNear) / (kFar - kNear), 0.0, 1.0);
  return kStartGainNear + far * (kStartGainFar - kStartGainNear);
}

std::uint64_t ModelRate::window() const {
  const double least = quantum();
  double window = 0;
  if (phase_ == Phase::StartUp) {
    // What grows so much a round trip has so many times in flight what landed in the last one. However late a sign that
    // it is enough comes: no more than that is too much.
    const double landed = std::max(landed_, ramp_from_ > 0 ? ramp_from_ : 0) * ns(rtt_min_) / 8e9;
    window = std::max(kFirstPackets * packet_bytes_, kStartWindowSlack * start_gain() * landed + least);
  } else if (phase_ == Phase::ProbeRtt) {
    window = kRttProbeGain * bdp(estimate());
  } else {
    const double full = bdp(estimate());
    // What landed since the last question still counts as under way.
    const double asked = estimate() * ns(std::min(apart_, std::max(rtt_min_ / 8, kApartMost))) / 8e9;
    // Near, an end that is late by a time slice of its machine would use up all that is twice the path.
    const double late = estimate() * ns(std::max(Duration::zero(), kLate - rtt_min_)) / 8e9;
    window = kWindowGain * std::max(gain_ / kWindowGain + 0.5, 1.0) * full + late + 3 * least + 2 * asked;
    if (high_flight_ > 0 && phase_ != Phase::Up)
      window = std::min(window, std::max(kHeadroom * high_flight_, full + 2 * least + 2 * asked));
  }
  return static_cast<std::uint64_t>(std::max(window, least));
}

// --- what a sample teaches ---

void ModelRate::learn_delay(const RateSample& s) {
  if (s.rtt > Duration::zero()) {
    rtt_latest_ = s.rtt;
    round_rtt_min_ = std::min(round_rtt_min_, s.rtt);
    round_rtt_max_ = std::max(round_rtt_max_, s.rtt);
    if (phase_ == Phase::ProbeRtt) {
      probed_rtt_ = std::min(probed_rtt_, s.rtt);
      probed_rtt_most_ = std::max(probed_rtt_most_, s.rtt);
    }
    const Duration about = rtt_min_ == kUnknown ? rtt_min_ : rtt_min_ + std::max(rtt_min_ / 128, Duration(100'000));
    if (s.rtt <= about) rtt_min_at_ = s.now;
    rtt_min_ = std::min(rtt_min_, s.rtt);
  }
  if (s.delay == Duration::zero()) return;
  const Duration& last = last_delays_[delays_ % last_delays_.size()];
  if (delays_ > 0) delay_varies_ += (std::chrono::abs(s.newest_delay - last) - delay_varies_) / 8;
  last_delays_[++delays_ % last_delays_.size()] = s.newest_delay;
  if (s.now - delay_at_ > kDelayWindow) {
    delay_before_ = delay_now_;
    delay_now_ = s.delay;
    delay_at_ = s.now;
  }
  delay_now_ = std::min(delay_now_, s.delay);
  queue_ = s.delay - std::min(delay_now_, delay_before_);
  queue_smooth_ += (queue_ - queue_smooth_) / 8;
  round_queue_min_ = std::min(round_queue_min_, queue_);
}

void ModelRate::learn_rate(const RateSample& s) {
  if (s.sending.limited()) apart_ = s.sending.time_for({s.sent});
  if (s.dark || !s.rate.limited()) return;
  const double rate = s.rate.bits_per_second;
  // The path has shown what it can do where it was given that much.
  const bool limited = s.app_limited || (phase_ != Phase::StartUp && gain_at(s.now - s.rtt) < kLeastGainToLearn);
  limited_round_ = limited_round_ || limited;
  latest_any_ = std::max(latest_any_, rate);
  cycle_any_ = std::max(cycle_any_, rate);
  if (!limited || rate > estimate()) {
    most_now_ = std::max(most_now_, rate);
    latest_ = std::max(latest_, rate);
  }
}

bool ModelRate::enough_to_judge(const Tally& tally, double least, double share) const {
  return tally.packets >= std::max(least, share * bdp(estimate()) / packet_bytes_);
}

bool ModelRate::too_much_lost(const Tally& tally, double share) const {
  const double upper =
      base_.packets <= 0 ? 0 : std::min(kMostRandom, (base_.lost + 2 * std::sqrt(base_.lost + 1) + 1) / base_.packets);
  // What comes to light now may have been lost before: two samples ago, or, with a peer that wakes up late, up to a
  // round trip ago. It counts more as landed before an offer than had been sent before it, and hides as many losses,
  // until it once does not.
  const double hidden = std::min(ns(rtt_min_), 2 * ns(std::max(apart_, rtt_min_ / 16)) + kHides * ns(delay_varies_));
  const double expected = upper * (tally.packets + estimate() * hidden / 8e9 / packet_bytes_);
  return tally.lost > expected + 3 * std::sqrt(expected) + 2 + share * tally.packets;
}

void ModelRate::learn_base(double packets, double lost) {
  base_.packets += packets;
  base_.lost += lost;
  if (base_.packets <= kBaseMemory) return;
  base_.lost *= kBaseMemory / base_.packets;
  base_.packets = kBaseMemory;
}

void ModelRate::learn_loss(const RateSample& s) {
  if (s.dark) {
    round_tally_ = probe_tally_ = {};
    return;
  }
  const auto lost = static_cast<double>(s.packets_lost);
  const double packets = lost + static_cast<double>(s.packets_landed);
  const double gain = gain_at(s.now - s.rtt);
  const bool short_queue = queue_ < std::max(rtt_min_ / 4, Duration(2'000'000));
  // Slower than what was seen to get through: by gain, or since it was slowed down to that.
  const bool slower = gain < 0.95 || (gain <= 1 && low_ > 0 && s.now - s.rtt > slowed_at_);
  if (slower && phase_ != Phase::StartUp && short_queue) learn_base(packets, lost);
  Tally& tally = gain > 1.05 ? probe_tally_ : round_tally_;
  tally.packets += packets;
  tally.lost += lost;
  if (gain <= 1.05 && phase_ == Phase::Cruise) {
    cruise_tally_.packets += packets;
    cruise_tally_.lost += lost;
  }
  // What was sent in cruise itself; a probe's marks end the probe.
  if (phase_ == Phase::Up || (phase_ == Phase::Cruise && s.now - s.rtt > phase_at_)) round_marks_ += s.marks;
}

// --- the phases ---

void ModelRate::reported(const RateSample& s) {
  in_flight_ = static_cast<double>(s.in_flight);
  if (s.round_start) ++round_;
  learn_delay(s);
  learn_rate(s);
  learn_loss(s);
  if (phase_ == Phase::StartUp) {
    start_up(s);
  } else if (phase_ == Phase::ProbeRtt) {
    probe_rtt(s);
  } else {
    cycle(s);
  }
  if (s.round_start) end_round(s);
}

void ModelRate::end_round(const RateSample& s) {
  // Others hold the queue up: at the rate that is delivered our part of it stays as it is. To win some is for probes,
  // which pay the more the smaller our part is.
  if (phase_ == Phase::Cruise && round_ - phase_round_ >= 2 && round_queue_min_ != kUnknown && latest_any_ > 0 &&
      round_queue_min_ > queue_of_others())
    low_ = std::min(estimate(), std::max(latest_any_, latest_any_before_));
  if (congested_rounds_ > 0) --congested_rounds_;
  // The path has become slower by far: what was measured before is no longer so.
  const double most = std::max(most_now_, most_before_);
  pressed_ = pressed_ || (round_queue_min_ != kUnknown && round_queue_min_ > queue_of_others());
  const bool queued = round_queue_min_ != kUnknown && round_queue_min_ > std::max(rtt_min_ / 2, queue_of_others());
  if ((!limited_round_ || queued) && !s.dark && latest_any_ > 0 && latest_any_ < 0.5 * estimate() &&
      phase_ != Phase::StartUp && phase_ != Phase::ProbeRtt) {
    if (slow_rounds_++ == 0) slow_since_ = s.now;
    if (slow_rounds_ >= 2 && s.now - slow_since_ >= kSlowFor) {
      most_now_ = most_before_ = std::max(latest_any_, latest_any_before_);
      slow_rounds_ = 0;
      if (most > 0) congested_rounds_ = std::max(congested_rounds_, 2);
      enter(Phase::Drain, kDownGain, s.now);
    }
  } else {
    slow_rounds_ = 0;
  }
  // Longer, and alike from round to round: another route, or a queue that stands. If it is ours, it can leave.
  if (round_rtt_min_ != kUnknown && rtt_min_ != kUnknown) {
    const Duration more = round_rtt_min_ - rtt_min_;
    const bool longer = more > std::max(rtt_min_ / 4, Duration(2'000'000));
    const bool alike =
        last_round_rtt_min_ != kUnknown && std::abs(ns(round_rtt_min_ - last_round_rtt_min_)) < 0.1 * ns(more);
    long_rounds_ = longer && alike ? long_rounds_ + 1 : 0;
    const bool may = early_probe_at_ == TimePoint::min() || s.now - early_probe_at_ > early_wait_;
    if (long_rounds_ >= 3 && may && phase_ != Phase::StartUp && phase_ != Phase::ProbeRtt) {
      early_probe_at_ = s.now;
      early_wait_ = std::min(2 * early_wait_, kRttWindow);  // less often, as long as it is no route
      long_rounds_ = 0;
      route_doubt_ = true;
      enter(Phase::Down, kDownGain, s.now);
    }
  }
  last_round_rtt_min_ = round_rtt_min_;
  round_rtt_min_ = kUnknown;
  round_rtt_max_ = Duration::zero();
  last_round_queue_min_ = round_queue_min_ == kUnknown ? Duration::zero() : round_queue_min_;
  round_queue_min_ = kUnknown;
  latest_before_ = latest_;
  latest_any_before_ = latest_any_;
  latest_ = latest_any_ = 0;
  limited_round_ = false;
  round_marks_ = 0;
}

void ModelRate::begin(Duration rtt, std::uint32_t packet_bytes, TimePoint now) {
  packet_bytes_ = packet_bytes;
  start_rate_ = kFirstPackets * packet_bytes_ * 8e9 / ns(kFirstTime);
  rtt_min_ = rtt_latest_ = rtt;
  rtt_min_at_ = now;
  enter(Phase::StartUp, 1, now);
}

void ModelRate::start_up(const RateSample& s) {
  landed_ = std::max(landed_, s.rate.bits_per_second);
  if (!s.landing.limited() || !s.sending.limited()) return;
  lag_landed_ += static_cast<double>(s.delivered);
  lag_sent_ += static_cast<double>(s.sent);
  lag_there_ += static_cast<double>(s.delivered) * 8e9 / s.landing.bits_per_second;
  lag_here_ += static_cast<double>(s.sent) * 8e9 / s.sending.bits_per_second;
  const bool first = lags_ == 0;
  if (lag_here_ < ns(rtt_min_) / (first ? 16 : 8) || lag_sent_ < 4 * packet_bytes_) return;
  const double landing = lag_landed_ * 8e9 / std::max(lag_there_, 1.0);
  const double sending = lag_sent_ * 8e9 / std::max(lag_here_, 1.0);
  const bool lags = landing < (first ? 0.95 : 0.9) * sending;
  // Ends that wake up late delay some packets by more than others; a queue delays them all.
  const Duration queue =
      *std::min_element(last_delays_.begin(), last_delays_.end()) - std::min(delay_now_, delay_before_);
  const bool queues =
      queue > std::max({rtt_min_ / (first ? 64 : 32), Duration(first ? 300'000 : 500'000), delay_varies_});
  const bool loses = lag_landed_ < 0.85 * lag_sent_ && lag_sent_ - lag_landed_ >= 4 * packet_bytes_;
  if (!lags && !loses && !queues)
    learn_base(lag_sent_ / packet_bytes_, std::max(0.0, lag_sent_ - lag_landed_) / packet_bytes_);
  lag_landed_ = lag_sent_ = lag_here_ = lag_there_ = 0;
  lags_ = lags && (queues || loses) ? lags_ + 1 : 0;
  if (lags_ >= 2) return leave_start_up(std::max(landing, landed_), s.now);
  // At the first sign nothing is added until it is confirmed or not: what says so is under way already.
  if (lags_ > 0) {
    start_rate_ = std::min(start_rate_, landing);
    ramp_end_ = s.now;
  } else if (ramp_from_ <= 0) {
    // The first packets, few and close together, have shown what pace the path carries at least. From there on.
    start_rate_ = ramp_from_ = std::min(landing, sending);
    ramp_at_ = s.now;
    ramp_end_ = s.now + rtt_min_;
  } else if (s.now >= ramp_end_) {
    start_rate_ = std::max(start_rate_, start_gain() * std::min(landing, sending));
  }
  if (!s.round_start || s.app_limited) return;
  if (latest_ > full_ * 1.25) {
    full_ = latest_;
    full_rounds_ = 0;
  } else if (++full_rounds_ >= 3) {
    leave_start_up(std::max(most_now_, most_before_), s.now);
  }
}

void ModelRate::leave_start_up(double rate, TimePoint now) {
  most_now_ = std::max(most_now_, 0.0);
  most_now_ = most_before_ = rate;
  congested_rounds_ = 3;
  round_tally_ = probe_tally_ = {};
  probed_rate_ = rate;
  rtt_probed_at_ = now;
  enter(Phase::Drain, kDrainGain, now);
}

void ModelRate::cycle(const RateSample& s) {
  const double flight = static_cast<double>(s.in_flight);
  const double full = bdp(estimate());
  // What landed since the last question still counts as in flight.
  const double slack = quantum() + estimate() * ns(std::min(apart_, kApartMost)) / 8e9;
  const std::uint64_t rounds = round_ - phase_round_;
  // Losses of what was sent at the measured rate.
  const bool judged = enough_to_judge(round_tally_, kLeastJudged, kJudgedShare);
  if (judged || s.round_start) {
    const bool lost = too_much_lost(round_tally_, kLossShare) ||
                      (cruise_tally_.packets >= kLeastJudgedLong && queue_ <= queue_of_others() &&
                       too_much_lost(cruise_tally_, kLossShareLong));
    if (judged && phase_ != Phase::Drain && lost && judged_round_ != round_) slow_down(s);
    if (judged && s.round_start) round_tally_ = {};
  }
  const bool marked = s.round_start && round_marks_ > 0;
  switch (phase_) {
    case Phase::Drain:
    case Phase::Down:
      if (flight <= full + slack || rounds >= 4) {
        if (route_doubt_ && flight > full + slack) return start_rtt_probe(s.now);
        route_doubt_ = false;
        if (phase_ == Phase::Drain) draw_wait(s.now, false);
        if (first_drain_) wait_until_ = s.now;  // start-up may have ended too soon
        first_drain_ = false;
        cruise_tally_ = {};
        enter(Phase::Cruise, 1, s.now);
      }
      break;
    case Phase::Cruise:
      if (marked) {
        low_ = kMarkedRound * estimate();
        congested_rounds_ = 2;
      }
      if (rounds >= wait_rounds_ && s.now >= wait_until_) start_probe(s.now);
      break;
    case Phase::Up: {
      const bool lossy = enough_to_judge(probe_tally_, kLeastJudgedProbe, kJudgedShareProbe) &&
                         too_much_lost(probe_tally_, kLossShare);
      if (lossy || round_marks_ > 0) return end_probe(s, true);
      // Faster yet as long as it pays; but what waits now more than before is ours.
      if (up_gain_ > kUpGain && queue_ - up_queue_ > std::max(rtt_min_ / 4, kLeastOurs)) {
        up_gain_ = kUpGain;
        gain_ = kUpGain;
        gains_[(gain_count_ - 1) % gains_.size()].gain = kUpGain;
      }
      if (!s.round_start || rounds == 0) break;
      // Growing: it pays.
      if (latest_ > up_rate_ * kPays) {
        up_gain_ = std::min(kMostUpGain, up_gain_ * 1.25);
        up_rate_ = latest_;
        enter(Phase::Up, up_gain_, s.now);
        break;
      }
      if (flight >= kUpGain * full || rounds >= 3) return end_probe(s, false);
      break;
    }
    default:
      break;
  }
}

void ModelRate::start_rtt_probe(TimePoint now) {
  route_doubt_ = false;
  rtt_probed_at_ = now;
  probed_rate_ = estimate();
  probed_from_ = rtt_min_;
  rtt_probe_end_ = kNever;
  probed_rtt_ = kUnknown;
  enter(Phase::ProbeRtt, kRttProbeGain, now);
}

void ModelRate::start_probe(TimePoint now) {
  low_ = 0;
  up_gain_ = kUpGain;
  up_rate_ = estimate();
  up_queue_ = queue_;
  probe_tally_ = {};
  enter(Phase::Up, kUpGain, now);
}

void ModelRate::end_probe(const RateSample& s, bool lossy) {
  if (lossy) {
    high_flight_ = std::max(static_cast<double>(s.was_in_flight), bdp(estimate()));
    congested_rounds_ = 3;
  } else if (high_flight_ > 0) {
    high_flight_ = std::max(high_flight_, static_cast<double>(s.was_in_flight)) * 1.25;
  }
  // Where this end was held up all the time nothing was learned, but for what a queue says.
  if (most_now_ > 0)
    most_before_ = most_now_;
  else if (pressed_ && cycle_any_ > 0)
    most_before_ = std::min(most_before_, std::max(cycle_any_, kLeastOfMost * most_before_));
  most_now_ = cycle_any_ = 0;
  pressed_ = false;
  round_tally_ = {};
  draw_wait(s.now, lossy);
  enter(Phase::Down, kDownGain, s.now);
}

void ModelRate::slow_down(const RateSample& s) {
  judged_round_ = round_;
  pressed_ = true;
  slowed_at_ = s.now;
  congested_rounds_ = 3;
  const double now = std::max(latest_any_, latest_any_before_);
  const double before = estimate();
  low_ = std::clamp(now, 0.5 * before, before);
  // Nothing waits, so that nothing of it was borrowed from a queue: a policer, and what its bucket let through before.
  if (queue_ <= queue_of_others()) most_now_ = most_before_ = low_;
  round_tally_ = cruise_tally_ = {};
  if (phase_ == Phase::Up) end_probe(s, true);
}

// SplitMix64.
double ModelRate::draw() {
  std::uint64_t z = random_ += 0x9E3779B97F4A7C15;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

void ModelRate::draw_wait(TimePoint now, bool lossy) {
  const double drawn = draw();
  // Lost without a queue: a policer, or next to no buffer; there every probe costs packets.
  if (lossy && queue_ <= queue_of_others()) {
    wait_rounds_ = static_cast<std::uint64_t>(kWaitRoundsPoliced * (1 + 0.5 * drawn));
    wait_until_ = now + kWaitPoliced;
  } else {
    wait_rounds_ = static_cast<std::uint64_t>(kWaitRounds * (1 + 0.8 * drawn));
    wait_until_ = now + Duration(static_cast<std::int64_t>(ns(kWait) * (1 + 0.5 * drawn)));
  }
}

void ModelRate::probe_rtt(const RateSample& s) {
  const auto flight = static_cast<double>(s.in_flight);
  if (rtt_probe_end_ == kNever) {
    if (flight <= kRttProbeGain * bdp(estimate()) + quantum() || round_ - phase_round_ > 4) {
      rtt_probe_end_ = s.now + std::clamp(rtt_min_ * kRttProbeRounds, kRttProbeNear, kRttProbe);
      phase_round_ = round_;
      probed_rtt_ = kUnknown;
      probed_rtt_most_ = Duration::zero();
    }
    return;
  }
  if (s.now < rtt_probe_end_ || round_ == phase_round_ || probed_rtt_ == kUnknown) return;
  // Longer than before: another route, if the RTT was the same all the time; if it moved, a queue that others fill. To
  // take that for the path would make it our queue for good.
  const bool moved = probed_rtt_most_ - probed_rtt_ > std::max((probed_rtt_ - rtt_min_) / 8, kLeastMoved);
  if (!moved) early_wait_ = kEarlyProbe;
  rtt_confirmed_ = !moved && std::chrono::abs(probed_rtt_ - probed_from_) < probed_rtt_ / 32;
  rtt_min_ = moved ? std::min(probed_rtt_, rtt_min_ + rtt_min_ / 8) : probed_rtt_;
  rtt_min_at_ = s.now;
  delay_before_ = kUnknown;
  delay_now_ = s.delay;
  draw_wait(s.now, false);
  enter(Phase::Cruise, 1, s.now);
}

void ModelRate::tick(TimePoint now) {
  if (phase_ == Phase::StartUp && ramp_from_ > 0 && now < ramp_end_)
    start_rate_ = ramp_from_ * std::pow(start_gain(), ns(now - ramp_at_) / ns(ramp_end_ - ramp_at_));
  if (phase_ == Phase::StartUp || phase_ == Phase::ProbeRtt || rtt_min_ == kUnknown) return;
  // So much has been won, from others perhaps, whose queue stood when the least RTT was measured. Who holds that queue
  // up now is this end, which does not see it.
  const bool grown = estimate() > kSuspectGrowth * probed_rate_ && !rtt_confirmed_;
  const bool suspect = grown && phase_ == Phase::Cruise && now - rtt_probed_at_ > kSuspectAfter;
  if (now - rtt_min_at_ < kRttWindow && !suspect) return;
  rtt_min_at_ = now;
  start_rtt_probe(now);
}

TimePoint ModelRate::next_timeout() const {
  return kNever;
}

void ModelRate::resumed(Duration idle, TimePoint now) {
  // What was least then may be again, and nobody's queue is ours.
  rtt_min_at_ = std::max(rtt_min_at_, now - kRttWindow / 2);
  if (phase_ == Phase::Up || phase_ == Phase::Down || (phase_ == Phase::Drain && idle > rtt_min_))
    enter(Phase::Cruise, 1, now);
}

void ModelRate::describe(RateStatus& status) const {
  constexpr std::array<std::string_view, 6> kNames = {"start-up", "drain",    "probe-down",
                                                      "cruise",   "probe-up", "probe-rtt"};
  status.state = kNames[static_cast<std::size_t>(phase_)];

  status.rtt_min = rtt_min_ == kUnknown ? Duration::zero() : rtt_min_;
  status.queue_delay = queue_smooth_;
}

}  // namespace sdr::reliability

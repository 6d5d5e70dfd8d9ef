#include "simulation/tcp_bbr.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>

namespace sdr::simulation {
namespace {

using namespace std::chrono_literals;

// The kernel's, as it writes them.
constexpr double kHighGain = 2885.0 / 1000 + 1.0 / 256;
constexpr double kDrainGain = 1000.0 / 2885;
constexpr double kWindowGain = 2;
constexpr std::array kCycle = {1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0};
constexpr std::size_t kRandomPhases = 7;
constexpr double kMargin = 0.99;  // of the pace
constexpr std::uint64_t kRateRounds = 10;
constexpr Duration kLeastRttWindow = 10s;
constexpr Duration kProbeRtt = 200ms;
constexpr std::uint64_t kLeastWindow = 4;
constexpr double kFullGrowth = 1.25;
constexpr int kFullRounds = 3;
constexpr Duration kAssumedRtt = 1ms;  // until there is a sample

double seconds(Duration time) {
  return std::chrono::duration<double>(time).count();
}

// What goes out as one TSO packet: a millisecond's worth, 2 segments at least, 64 KiB at most.
std::uint64_t segments_a_burst(double pace) {
  return std::clamp<std::uint64_t>(static_cast<std::uint64_t>(pace / 1024), 2, 44);
}

}  // namespace

// Source: lib/win_minmax.c.
void TcpBbr::HighestRate::add(std::uint64_t round, double rate) {
  const Sample sample{round, rate};
  if (rate >= best_[0].rate || round - best_[2].round > kRateRounds) {
    best_.fill(sample);
    return;
  }
  if (rate >= best_[1].rate) {
    best_[2] = best_[1] = sample;
  } else if (rate >= best_[2].rate) {
    best_[2] = sample;
  }
  const std::uint64_t age = round - best_[0].round;
  if (age > kRateRounds) {
    best_[0] = best_[1];
    best_[1] = best_[2];
    best_[2] = sample;
    if (round - best_[0].round > kRateRounds) {
      best_[0] = best_[1];
      best_[1] = best_[2];
      best_[2] = sample;
    }
  } else if (best_[1].round == best_[0].round && age > kRateRounds / 4) {
    best_[2] = best_[1] = sample;
  } else if (best_[2].round == best_[1].round && age > kRateRounds / 2) {
    best_[2] = sample;
  }
}

double TcpBbr::pacing_gain() const {
  switch (mode_) {
    case Mode::StartUp:
      return kHighGain;
    case Mode::Drain:
      return kDrainGain;
    case Mode::ProbeBandwidth:
      return kCycle[phase_];
    case Mode::ProbeRtt:
      break;
  }
  return 1;
}

std::uint64_t TcpBbr::inflight(double gain) const {
  if (least_rtt_ == Duration::zero()) return kTcpInitialWindow;
  const double product = std::ceil(gain * rate_.get() * seconds(least_rtt_));
  std::uint64_t segments = static_cast<std::uint64_t>(product) + 3 * segments_a_burst(pace_);
  segments = (segments + 1) & ~std::uint64_t{1};  // delayed acknowledgements
  if (mode_ == Mode::ProbeBandwidth && phase_ == 0) segments += 2;
  return segments;
}

void TcpBbr::save_window(bool in_recovery) {
  prior_window_ = !in_recovery && mode_ != Mode::ProbeRtt ? window_ : std::max(prior_window_, window_);
}

void TcpBbr::begin_recovery(const TcpAckEvent& event) {
  if (event.newly_lost == 0) return;  // a mark: of no interest to version 1
  save_window(recovering_);
  recovering_ = conserving_ = true;
  round_end_ = event.delivered;  // the round begins anew
  window_ = event.in_flight + event.newly_delivered;
}

void TcpBbr::end_recovery(TimePoint) {
  if (!recovering_) return;
  recovering_ = conserving_ = false;
  window_ = std::max(window_, prior_window_);
}

void TcpBbr::timeout(std::uint64_t, TimePoint) {
  save_window(recovering_);
  recovering_ = true;
  conserving_ = false;
  full_rate_ = 0;
  window_ = 1;
}

void TcpBbr::acknowledged(const TcpAckEvent& event) {
  update_rate(event);
  update_cycle(event);
  check_full(event);
  check_drain(event);
  update_least_rtt(event);
  set_pace(event);
  set_window(event);
}

void TcpBbr::update_rate(const TcpAckEvent& event) {
  round_start_ = false;
  if (event.sample_interval == Duration::zero()) return;
  if (event.sample_prior_delivered >= round_end_) {
    round_end_ = event.delivered;
    ++round_;
    round_start_ = true;
    conserving_ = false;
  }
  const double rate = static_cast<double>(event.sample_delivered) / seconds(event.sample_interval);
  if (!event.application_limited || rate >= rate_.get()) rate_.add(round_, rate);
}

void TcpBbr::update_cycle(const TcpAckEvent& event) {
  if (mode_ != Mode::ProbeBandwidth) return;
  const bool full_length = event.now - phase_start_ > least_rtt_;
  bool over = full_length;
  if (phase_ == 0) over = full_length && (event.newly_lost > 0 || event.in_flight_before >= inflight(kCycle[0]));
  if (phase_ == 1) over = full_length || event.in_flight_before <= inflight(1);
  if (!over) return;
  phase_ = (phase_ + 1) % kCycle.size();
  phase_start_ = event.now;
}

void TcpBbr::check_full(const TcpAckEvent& event) {
  if (full_ || !round_start_ || event.application_limited) return;
  if (rate_.get() >= full_rate_ * kFullGrowth) {
    full_rate_ = rate_.get();
    full_rounds_ = 0;
    return;
  }
  full_ = ++full_rounds_ >= kFullRounds;
}

void TcpBbr::check_drain(const TcpAckEvent& event) {
  if (mode_ == Mode::StartUp && full_) mode_ = Mode::Drain;
  if (mode_ == Mode::Drain && event.in_flight <= inflight(1)) enter_probe_bandwidth(event.now);
}

void TcpBbr::enter_probe_bandwidth(TimePoint now) {
  mode_ = Mode::ProbeBandwidth;
  // Any phase but that of 0.75, then on to the next.
  phase_ = kCycle.size() - 1 - static_cast<std::size_t>(random_(draws_++) % kRandomPhases);
  phase_ = (phase_ + 1) % kCycle.size();
  phase_start_ = now;
}

void TcpBbr::update_least_rtt(const TcpAckEvent& event) {
  const bool expired = least_rtt_ != Duration::zero() && event.now > least_rtt_at_ + kLeastRttWindow;
  if (event.rtt > Duration::zero() && (least_rtt_ == Duration::zero() || event.rtt < least_rtt_ || expired)) {
    least_rtt_ = event.rtt;
    least_rtt_at_ = event.now;
  }
  if (expired && mode_ != Mode::ProbeRtt) {
    save_window(recovering_);
    mode_ = Mode::ProbeRtt;
    probe_rtt_done_ = kNever;
  }
  if (mode_ != Mode::ProbeRtt) return;
  if (probe_rtt_done_ == kNever && event.in_flight <= kLeastWindow) {
    probe_rtt_done_ = event.now + kProbeRtt;
    probe_rtt_round_done_ = false;
    round_end_ = event.delivered;
  } else if (probe_rtt_done_ != kNever) {
    if (round_start_) probe_rtt_round_done_ = true;
    if (!probe_rtt_round_done_ || event.now <= probe_rtt_done_) return;
    least_rtt_at_ = event.now;
    window_ = std::max(window_, prior_window_);
    if (full_) {
      enter_probe_bandwidth(event.now);
    } else {
      mode_ = Mode::StartUp;
    }
  }
}

void TcpBbr::set_pace(const TcpAckEvent& event) {
  if (pace_ == 0 || rate_.get() == 0) {
    const Duration rtt = event.rtt > Duration::zero() ? event.rtt : kAssumedRtt;
    pace_ = std::max(pace_, kHighGain * static_cast<double>(kTcpInitialWindow) / seconds(rtt));
  }
  const double pace = pacing_gain() * rate_.get() * kMargin;
  if (full_ || pace > pace_) pace_ = pace;
}

void TcpBbr::set_window(const TcpAckEvent& event) {
  if (event.newly_delivered > 0) {
    if (recovering_ && event.newly_lost > 0)
      window_ = window_ > event.newly_lost ? window_ - event.newly_lost : std::uint64_t{1};
    const double gain = mode_ == Mode::StartUp || mode_ == Mode::Drain ? kHighGain
                        : mode_ == Mode::ProbeBandwidth                ? kWindowGain
                                                                       : 1;
    const std::uint64_t target = inflight(gain);
    if (conserving_) {
      window_ = std::max(window_, event.in_flight + event.newly_delivered);
    } else if (full_) {
      window_ = std::min(window_ + event.newly_delivered, target);
    } else if (window_ < target || event.delivered < kTcpInitialWindow) {
      window_ += event.newly_delivered;
    }
    window_ = std::max(window_, kLeastWindow);
  }
  if (mode_ == Mode::ProbeRtt) window_ = std::min(window_, kLeastWindow);
}

std::unique_ptr<TcpCongestion> make_tcp_bbr(std::uint64_t seed) {
  return std::make_unique<TcpBbr>(seed);
}

}  // namespace sdr::simulation

#include "simulation/tcp_cubic.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>

namespace sdr::simulation {
namespace {

using namespace std::chrono_literals;

// RFC 9438, section 4.
constexpr double kC = 0.4;
constexpr double kBeta = 0.7;
constexpr double kAlpha = 3 * (1 - kBeta) / (1 + kBeta);
constexpr double kLeastWindow = 2;

// RFC 9406, section 4.3.
constexpr int kSamplesARound = 8;
constexpr Duration kLeastRise = 4ms;
constexpr Duration kMostRise = 16ms;

}  // namespace

std::uint64_t TcpCubic::window() const {
  return std::max<std::uint64_t>(1, static_cast<std::uint64_t>(window_));
}

void TcpCubic::reduce() {
  // Fast convergence: less than last time, so that newcomers find room.
  most_ = window_ < most_ ? window_ * (1 + kBeta) / 2 : window_;
  threshold_ = std::max(kLeastWindow, window_ * kBeta);
  epoch_ = false;
}

void TcpCubic::begin_recovery(const TcpAckEvent&) {
  reduce();
  window_ = threshold_;
}

void TcpCubic::timeout(std::uint64_t, TimePoint) {
  // A second timeout of the same loss would find a window of one.
  if (window_ > 1) reduce();
  window_ = 1;
}

void TcpCubic::acknowledged(const TcpAckEvent& event) {
  if (window_ < threshold_) {
    // After a timeout the window opens while what was lost is sent again; in fast recovery it stays.
    if (event.in_flight_before * 2 >= window()) window_ += static_cast<double>(event.newly_delivered);
    window_ = std::min(window_, std::max(threshold_, static_cast<double>(kTcpInitialWindow)));
    if (hystart_ && !event.in_recovery) look_at_delay(event);
    return;
  }
  if (event.in_recovery || event.in_flight_before < window() * 3 / 4) return;
  grow(event);
}

void TcpCubic::grow(const TcpAckEvent& event) {
  if (!epoch_) {
    epoch_ = true;
    epoch_start_ = event.now;
    reduced_to_ = friendly_ = window_;
    most_ = std::max(most_, window_);
    origin_ = std::cbrt((most_ - reduced_to_) / kC);
  }
  const double acked = static_cast<double>(event.newly_delivered);
  const Duration since = event.now - epoch_start_ + event.least_rtt;
  const double t = std::chrono::duration<double>(since).count() - origin_;
  const double target = std::clamp(kC * t * t * t + most_, window_, 1.5 * window_);
  friendly_ += (friendly_ >= most_ ? 1.0 : kAlpha) * acked / window_;
  window_ += (target - window_) / window_ * acked;
  window_ = std::max(window_, friendly_);
}

void TcpCubic::look_at_delay(const TcpAckEvent& event) {
  if (event.delivered >= round_end_) {
    round_end_ = event.delivered + event.in_flight + 1;
    last_round_least_ = round_least_;
    round_least_ = Duration::max();
    samples_ = 0;
  }
  if (event.rtt == Duration::zero()) return;
  round_least_ = std::min(round_least_, event.rtt);
  if (++samples_ < kSamplesARound || last_round_least_ == Duration::zero() || last_round_least_ == Duration::max())
    return;
  const Duration rise = std::clamp<Duration>(last_round_least_ / 8, kLeastRise, kMostRise);
  if (round_least_ >= last_round_least_ + rise) threshold_ = window_;
}

std::unique_ptr<TcpCongestion> make_tcp_cubic(bool hystart) {
  return std::make_unique<TcpCubic>(hystart);
}

}  // namespace sdr::simulation

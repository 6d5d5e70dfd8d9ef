#include "model/loss.hpp"

#include <algorithm>
#include <cmath>

namespace sdr::model {

ChunkLoss::ChunkLoss(double loss, double burst) : p_(loss) {
  const double shortest = 1 / (1 - loss);
  independent_ = burst <= shortest;
  ends_ = independent_ ? 1 - loss : 1 / burst;
  begins_ = independent_ ? loss : loss * ends_ / (1 - loss);
}

ChunkLoss ChunkLoss::of_packets(double loss, double burst, std::uint64_t packets) {
  const ChunkLoss packet(loss, burst);
  if (packets <= 1 || loss <= 0) return packet;
  const auto any_lost_of = [&](double n) {
    return -std::expm1(std::log1p(-packet.p_) + (n - 1) * std::log1p(-packet.begins_));
  };
  const auto n = static_cast<double>(packets);
  const double one = any_lost_of(n);
  if (packet.independent_) return {one, 1};
  const double both = 2 * one - any_lost_of(2 * n);
  return {one, 1 / (1 - std::min(both / one, 1 - 1e-9))};
}

double ChunkLoss::all_lost(double n) const {
  return p_ <= 0 ? 0 : std::exp(n * std::log(p_));
}

double ChunkLoss::newly_lost(double n) const {
  const double all = all_lost(n);
  if (independent_ || all <= 0) return all;
  const double ends = ends_ >= 1 ? 1 : -std::expm1(n * std::log1p(-ends_));
  return all * ends / (1 - all);
}

double ChunkLoss::lost_after(bool lost, double distance) const {
  if (independent_) return p_;
  const double memory = std::pow(1 - begins_ - ends_, distance);
  return lost ? p_ + (1 - p_) * memory : p_ * (1 - memory);
}

LossRuns::LossRuns(const ChunkLoss& loss, Draws& draws)
    : draws_(draws),
      log_arrives_(std::log1p(-loss.run_begins())),
      log_lost_(std::log1p(-loss.run_ends())),
      starts_lost_(loss.p() > 0 && draws.happens(loss.p())) {}

LossRuns::Run LossRuns::next() {
  Run run;
  if (!starts_lost_) run.arrive = 1 + draws_.failures(log_arrives_);
  starts_lost_ = false;
  run.lost = 1 + draws_.failures(log_lost_);
  return run;
}

double binomial_tail(unsigned n, double p, unsigned above) {
  if (above >= n || p <= 0) return 0;
  // The first term is C(n, above + 1) p^(above + 1) (1 - p)^(n - above - 1), each next one follows from it.
  double log_choose = 0;
  for (unsigned i = 1; i <= above + 1; ++i) log_choose += std::log(static_cast<double>(n - above - 1 + i) / i);
  double term = std::exp(log_choose + (above + 1) * std::log(p) + (n - above - 1) * std::log1p(-p));
  // Too small for a double, and still below the mode: nearly all that is probable lies above.
  if (term == 0 && above + 1 < n * p) return 1;
  double sum = 0;
  for (unsigned i = above + 1; i <= n; ++i) {
    sum += term;
    term *= static_cast<double>(n - i) / (i + 1) * p / (1 - p);
  }
  return std::min(sum, 1.0);
}

}  // namespace sdr::model

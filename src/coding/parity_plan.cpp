#include "coding/parity_plan.hpp"

#include <algorithm>
#include <cmath>

#include "coding/parity_budget.hpp"
#include "coding/shards.hpp"

namespace sdr::coding {
namespace {

// Below this nothing is worth carrying along: targets are far above.
constexpr double kNegligible = 1e-24;

struct Need {
  std::uint32_t parity = 0;
  double failure = 1;
};

// Parity for one submessage of k chunks, at most `most`.
Need parity_for(std::uint32_t k, const LossProcess& process, double stride, double target, std::uint32_t most) {
  LossDistribution losses(process, stride);
  for (std::uint32_t i = 0; i < k; ++i) losses.step();
  Need need{0, losses.more_than(0)};
  while (need.failure > target && need.parity < most) {
    losses.step();
    ++need.parity;
    need.failure = losses.more_than(need.parity);
  }
  return need;
}

}  // namespace

LossDistribution::LossDistribution(const LossProcess& process, double stride) {
  const double loss = std::clamp(process.loss, 0.0, 1.0);
  // A run cannot be shorter on average than independent losses make it, and not be without end.
  const double ends = loss >= 1 ? 0 : std::min(1 / std::max(process.burst, 1.0), 1 - loss);
  const double begins = loss >= 1 ? 1 : ends * loss / (1 - loss);
  const double memory = std::pow(std::max(0.0, 1 - begins - ends), stride);
  begin_ = loss * (1 - memory);
  end_ = (1 - loss) * (1 - memory);
  arrived_ = {1 - loss};
  lost_ = {0, loss};
}

// The constructor has the first chunk's fate in it; it counts as taken with the first step.
void LossDistribution::step() {
  if (steps_++ == 0) return;
  const std::size_t counts = std::max(arrived_.size(), lost_.size());
  arrived_.resize(counts, 0);
  lost_.resize(counts + 1, 0);
  for (std::size_t c = counts; c-- > 0;) {
    const double arrives = arrived_[c] * (1 - begin_) + lost_[c] * end_;
    lost_[c + 1] = arrived_[c] * begin_ + lost_[c] * (1 - end_);
    arrived_[c] = arrives;
  }
  lost_[0] = 0;
  while (lost_.size() > 1 && lost_.back() < kNegligible) lost_.pop_back();
  while (arrived_.size() > 1 && arrived_.back() < kNegligible) arrived_.pop_back();
}

double LossDistribution::more_than(std::uint32_t count) const {
  if (steps_ == 0) return 0;
  double sum = 0;  // the smallest first
  for (std::size_t c = std::max(arrived_.size(), lost_.size()); c-- > std::size_t{count} + 1;) {
    if (c < arrived_.size()) sum += arrived_[c];
    if (c < lost_.size()) sum += lost_[c];
  }
  return sum;
}

ParityPlan plan_parity(std::uint32_t chunks, const LossProcess& process, double target, std::uint32_t most,
                       std::uint32_t longest) {
  if (chunks == 0 || most == 0 || longest == 0 || process.loss <= 0) return {};
  ParityPlan best;
  for (std::uint32_t submessages = (chunks + longest - 1) / longest;;) {
    const std::uint32_t k = (chunks + submessages - 1) / submessages;
    const std::uint32_t affordable = most / submessages;
    if (affordable == 0) return best;
    const double each = target / submessages;
    const Need need = parity_for(k, process, submessages, each, std::min(kMaxShards - k, affordable));
    const double failure = std::min(1.0, need.failure * submessages);
    if (best.submessages == 0 || failure < best.failure) best = {submessages, need.parity, failure};
    // Shorter ones need more in all: they only help where GF(2^8) is what sets the limit.
    if (need.failure <= each || affordable <= kMaxShards - k || k == 1) return best;
    submessages += 1 + submessages / 16;
    submessages = std::min(submessages, chunks);
  }
}

CoverPlan plan_cover(std::uint32_t repairs, const LossProcess& process, double target, std::uint64_t free,
                     std::uint32_t most, std::uint32_t longest) {
  CoverPlan cover;
  cover.copies = copies_to_cover(repairs, process.loss, target);
  const std::uint64_t copied = std::uint64_t{cover.copies} * repairs;
  if (copied <= free) return cover;
  const auto dearest = static_cast<std::uint32_t>(std::min<std::uint64_t>(most, copied));
  const ParityPlan code = plan_parity(repairs, process, target, dearest, longest);
  const bool covers = code.submessages > 0 && code.failure <= target;
  if (covers && std::uint64_t{code.submessages} * code.parity_each < copied) cover.code = code;
  return cover;
}

}  // namespace sdr::coding

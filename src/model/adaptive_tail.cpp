#include "model/adaptive_tail.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "coding/parity_budget.hpp"

namespace sdr::model {
namespace {

constexpr double kMostChunks = std::numeric_limits<std::uint32_t>::max() / 2.0;

}  // namespace

AdaptiveTail::AdaptiveTail(const Transfer& transfer, const SchemeSpec& scheme) {
  const double p = transfer.loss().p();
  const double exposed = std::min(coding::kNoticeRtts * transfer.rtt() / transfer.injection(), kMostChunks);
  tail = std::min(transfer.chunks(), static_cast<std::uint64_t>(std::ceil(exposed)));
  head = transfer.chunks() - tail;
  if (p <= 0 || tail == 0) return;
  const auto coded = static_cast<std::uint32_t>(tail);
  double most = std::max(coding::kLeastParity, scheme.max_overhead * static_cast<double>(tail));
  if (scheme.max_overhead >= 1) most = std::max(most, transfer.rtt() / coding::kFreeShare / transfer.injection());
  most = std::min(most, static_cast<double>(coding::parity_room(tail)));
  const double burst = transfer.loss().independent() ? 1 : 1 / transfer.loss().run_ends();
  plan = coding::plan_parity(coded, {std::min(p, coding::kMostLoss), burst}, scheme.repair_target,
                             static_cast<std::uint32_t>(most));
  longest = plan.submessages == 0 ? 0 : (tail + plan.submessages - 1) / plan.submessages;
  exposed_repairs = std::min(static_cast<double>(head), static_cast<double>(tail)) * p;
  const double free = transfer.rtt() / coding::kFreeShare / transfer.injection();
  cover = coding::plan_cover(
      static_cast<std::uint32_t>(std::ceil(exposed_repairs)), {std::min(p, coding::kMostLoss), burst},
      scheme.repair_target, std::max(static_cast<std::uint64_t>(free), coding::kFewCovers),
      static_cast<std::uint32_t>(std::min(coding::parity_room(tail), std::uint64_t{UINT32_MAX})));
}

std::vector<double> AdaptiveTail::done_by_layer(const ChunkLoss& loss) const {
  if (plan.submessages == 0) return {std::pow(1 - loss.p(), static_cast<double>(tail))};
  const double burst = loss.independent() ? 1 : 1 / loss.run_ends();
  coding::LossDistribution losses({loss.p(), burst}, plan.submessages);
  for (std::uint64_t i = 0; i < longest; ++i) losses.step();
  std::vector<double> done;
  for (std::uint32_t j = 0; j <= plan.parity_each; ++j) {
    if (j > 0) losses.step();
    done.push_back(std::exp(plan.submessages * std::log1p(-std::min(losses.more_than(j), 1 - 1e-16))));
  }
  return done;
}

}  // namespace sdr::model

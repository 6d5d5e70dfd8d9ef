#include "model/adaptive_tail.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "coding/shards.hpp"

namespace sdr::model {
namespace {

// What the sender allows itself when no other Write waits (reliability/adaptive_tail.cpp).
constexpr double kLeastParity = 8;
constexpr double kFreeShare = 1.0 / 256;  // of the RTT
constexpr std::uint32_t kMostCopies = 15;
constexpr double kMostLoss = 0.5;  // that parity is made for
constexpr double kMostChunks = std::numeric_limits<std::uint32_t>::max() / 2.0;

}  // namespace

AdaptiveTail::AdaptiveTail(const Transfer& transfer, const SchemeSpec& scheme) {
  const double p = transfer.loss().p();
  const double exposed = std::min(kNoticeRtts * transfer.rtt() / transfer.injection(), kMostChunks);
  tail = std::min(transfer.chunks(), static_cast<std::uint64_t>(std::ceil(exposed)));
  head = transfer.chunks() - tail;
  if (p <= 0 || tail == 0) return;
  const auto coded = static_cast<std::uint32_t>(tail);
  const auto room =
      static_cast<double>(std::max(tail, coding::kMaxShards - std::min<std::uint64_t>(tail, coding::kMaxShards)));
  double most = std::max(kLeastParity, scheme.max_overhead * static_cast<double>(tail));
  if (scheme.max_overhead >= 1) most = std::max(most, kFreeShare * transfer.rtt() / transfer.injection());
  most = std::min(most, room);
  const double burst = transfer.loss().independent() ? 1 : 1 / transfer.loss().run_ends();
  plan = coding::plan_parity(coded, {std::min(p, kMostLoss), burst}, scheme.repair_target,
                             static_cast<std::uint32_t>(most));
  longest = plan.submessages == 0 ? 0 : (tail + plan.submessages - 1) / plan.submessages;
  exposed_repairs = std::min(static_cast<double>(head), static_cast<double>(tail)) * p;
  double all_lost = std::max(1.0, exposed_repairs) * p;
  for (; all_lost > scheme.repair_target && copies < kMostCopies; all_lost *= p) ++copies;
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

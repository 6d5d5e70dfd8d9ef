#include "sdr/probe_statistics.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace sdr::cli {
namespace {

double share(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace

double nearest_rank(const std::vector<double>& sorted, double of) {
  const auto n = static_cast<double>(sorted.size());
  const auto rank = static_cast<std::size_t>(std::ceil(of * n));
  return sorted[std::clamp<std::size_t>(rank, 1, sorted.size()) - 1];
}

FiveNumbers FiveNumbers::of(std::vector<double> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  return {.min = values.front(),
          .p25 = nearest_rank(values, 0.25),
          .p50 = nearest_rank(values, 0.5),
          .p75 = nearest_rank(values, 0.75),
          .max = values.back()};
}

Interval wilson(std::uint64_t hits, std::uint64_t n, double dispersion) {
  if (n == 0) return {};
  constexpr double kZ = 1.959963984540054;  // 95 %
  const double worth = static_cast<double>(n) / std::max(dispersion, 1.0);
  const double p = share(hits, n);
  const double z2 = kZ * kZ / worth;
  const double middle = (p + z2 / 2) / (1 + z2);
  const double reach = kZ / (1 + z2) * std::sqrt(p * (1 - p) / worth + z2 / (4 * worth));
  // At the ends the formula is exact, and the arithmetic is not.
  return {.low = hits == 0 ? 0 : std::max(0.0, middle - reach), .high = hits == n ? 1 : std::min(1.0, middle + reach)};
}

void ProbeStatistics::add(const TrialOutcome& trial, Bandwidth sent_at) {
  for (const FlowOutcome& flow : trial.flows) {
    if (flow.sent == 0) continue;
    flow_losses_.push_back(share(flow.lost, flow.sent));
    packets_of_sample_ = packets_of_sample_ == 0 ? flow.sent : std::min(packets_of_sample_, flow.sent);
  }
  const FlowOutcome total = trial.total();
  total_ += total;
  trial_losses_.push_back(share(total.lost, total.sent));
  in_order_ += trial.in_order;
  in_flow_ += trial.in_flow;
  received_.push_back(trial.rate(payload_).bits_per_second);
  sent_.push_back(sent_at.bits_per_second);
}

double ProbeStatistics::loss() const {
  return share(total_.lost, total_.sent);
}

Interval ProbeStatistics::loss_interval() const {
  return wilson(total_.lost, total_.sent, std::max(in_order_.dispersion(), in_flow_.dispersion()));
}

std::size_t ProbeStatistics::samples_without_loss() const {
  return static_cast<std::size_t>(std::count(flow_losses_.begin(), flow_losses_.end(), 0.0));
}

double ProbeStatistics::mean_burst() const {
  return std::max(in_order_.mean(), in_flow_.mean());
}

double ProbeStatistics::reorder() const {
  return share(total_.reordered, total_.sent);
}

}  // namespace sdr::cli

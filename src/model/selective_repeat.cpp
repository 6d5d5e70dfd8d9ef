#include "model/selective_repeat.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace sdr::model {
namespace {

constexpr double kUnfelt = 1e-20;      // a chance that no result can show
constexpr double kMostSteps = 20'000;  // beyond, ramps,
constexpr double kShortStep = 1e-4;    // and where steps are shorter, in periods: they are less than that wrong
constexpr double kSurelyLate = -50;    // exp of it is 0 in any result
constexpr double kRounding = 1e-9;     // of a count of chunks: times of steps are sums of rounded products
constexpr std::size_t kMostDepths = 1 << 18;

}  // namespace

LossDepths::LossDepths(const ChunkLoss& loss, std::uint64_t most_chunks) {
  for (std::size_t n = 1; n <= kMostDepths; ++n) {
    const double all = loss.all_lost(static_cast<double>(n));
    const double newly = loss.newly_lost(static_cast<double>(n));
    if (std::max(all, newly) * static_cast<double>(most_chunks) < kUnfelt) return;
    spared_.push_back(std::log1p(-newly));
    first_.push_back(std::log1p(-all) - spared_.back());
  }
}

SelectiveRepeat::SelectiveRepeat(std::uint64_t chunks, double injection, double period,
                                 std::shared_ptr<const LossDepths> depths)
    : chunks_(static_cast<double>(chunks)), injection_(injection), period_(period), depths_(std::move(depths)) {}

// log P(max X_i <= q) for q >= M T_inj. due(j) is the number of chunks injected by q - j O; those due by q - j O and
// not by q - (j + 1) O have had j + 1 transmissions.
template <typename ChunksDue>
double SelectiveRepeat::log_done(double q, ChunksDue due) const {
  const double all_due = std::floor((q - earliest()) / period_) - 1;  // every chunk has had that many at least
  auto n = static_cast<std::size_t>(std::clamp(all_due, 0.0, static_cast<double>(depths_->count()))) + 1;
  double log_sum = 0;
  double left = chunks_;
  for (; left > 0 && n <= depths_->count(); ++n) {
    const double next = due(static_cast<double>(n));
    log_sum += (left - next) * depths_->log_spared(n);
    left = next;
  }
  // n - 1 is what the first chunk has had, or more than matters.
  return left > 0 ? log_sum : log_sum + depths_->log_first(n - 1);
}

double SelectiveRepeat::log_done_stepwise(double q) const {
  return log_done(
      q, [&](double j) { return std::clamp(std::floor((q - j * period_) / injection_ + kRounding), 0.0, chunks_); });
}

double SelectiveRepeat::log_done_ramped(double q) const {
  return log_done(q, [&](double j) { return std::clamp((q - j * period_) / injection_ - 0.5, 0.0, chunks_); });
}

double SelectiveRepeat::survival(double q) const {
  if (q < earliest() * (1 - 1e-15)) return 1;
  if (chunks_ <= 0 || depths_->count() == 0) return 0;
  return -std::expm1(log_done_stepwise(q));
}

double SelectiveRepeat::mean() const {
  if (chunks_ <= 0 || depths_->count() == 0) return earliest();
  const bool few_steps = chunks_ * (static_cast<double>(depths_->count()) + 1) <= kMostSteps;
  return few_steps && injection_ > kShortStep * period_ ? mean_of_steps() : mean_of_ramps();
}

// The sum over the steps i T_inj + j O of what is left at them times the way to the next.
double SelectiveRepeat::mean_of_steps() const {
  std::vector<double> steps;
  for (std::size_t j = 0; j <= depths_->count(); ++j) {
    for (double i = 1; i <= chunks_; ++i) {
      const double at = i * injection_ + static_cast<double>(j) * period_;
      if (at >= earliest()) steps.push_back(at);
    }
  }
  std::sort(steps.begin(), steps.end());
  double mean = earliest();
  for (std::size_t s = 0; s + 1 < steps.size(); ++s) {
    const double width = steps[s + 1] - steps[s];
    if (width > 0) mean += width * survival(steps[s] + width / 2);
  }
  return mean;
}

// Between the places where a ramp begins or ends, log P is a straight line, and the integral of its exponential known.
double SelectiveRepeat::mean_of_ramps() const {
  const double from = log_done_ramped(earliest()) < kSurelyLate ? where(kSurelyLate) : earliest();
  const double to = where(-1e-16);
  std::vector<double> corners = {from, to};
  for (const double offset : {injection_ / 2, earliest() + injection_ / 2}) {
    for (double j = std::max(0.0, std::ceil((from - offset) / period_)); j * period_ + offset < to; ++j) {
      if (j * period_ + offset > from) corners.push_back(j * period_ + offset);
    }
  }
  std::sort(corners.begin(), corners.end());
  double mean = from;
  double a = log_done_ramped(from);
  for (std::size_t s = 0; s + 1 < corners.size(); ++s) {
    const double b = log_done_ramped(corners[s + 1]);
    const double width = corners[s + 1] - corners[s];
    const double rise = b - a;
    const double done = std::abs(rise) < 1e-9 ? std::exp((a + b) / 2) : std::exp(a) * std::expm1(rise) / rise;
    mean += width * (1 - done);
    a = b;
  }
  return mean;
}

double SelectiveRepeat::where(double level) const {
  double low = earliest();
  double step = period_;
  while (log_done_ramped(low + step) < level) step *= 2;
  double high = low + step;
  while (high - low > period_ * 1e-3) {
    const double middle = (low + high) / 2;
    (log_done_ramped(middle) < level ? low : high) = middle;
  }
  return high;
}

}  // namespace sdr::model

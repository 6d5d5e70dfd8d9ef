#include "model/completion_time.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "model/adaptive_tail.hpp"
#include "model/erasure_code.hpp"

namespace sdr::model {
namespace {

constexpr std::size_t kMostParts = 64;  // values of F are joined to at most so many
constexpr double kNegligible = 1e-16;   // chance of a value of F
constexpr double kPrecision = 1e-10;    // seconds

struct Failures {
  double submessages;
  double chance;
};

// The binomial distribution of F of L submessages, without what is negligible: from its mode outwards.
std::vector<Failures> failures_among(double total, double chance) {
  if (chance <= 0 || total <= 0) return {{0, 1}};
  const double mode = std::min(total, std::floor((total + 1) * chance));
  const double odds = chance / (1 - chance);
  std::vector<Failures> values = {{mode, 1}};
  for (double n = mode, weight = 1; n > 0 && weight > kNegligible; --n) {
    weight *= n / (total - n + 1) / odds;
    values.push_back({n - 1, weight});
  }
  std::reverse(values.begin(), values.end());
  for (double n = mode, weight = 1; n < total && weight > kNegligible; ++n) {
    weight *= (total - n) / (n + 1) * odds;
    values.push_back({n + 1, weight});
  }
  double sum = 0;
  for (const Failures& value : values) sum += value.chance;
  for (Failures& value : values) value.chance /= sum;
  return values;
}

// Neighbouring values other than 0 joined, each group at its mean: T_SR changes with the logarithm of F.
std::vector<Failures> joined(const std::vector<Failures>& values) {
  const std::size_t group = (values.size() + kMostParts - 1) / kMostParts;
  std::vector<Failures> parts;
  std::size_t in_part = 0;
  for (const Failures& value : values) {
    const bool opens = parts.empty() || in_part == group || parts.back().submessages == 0;
    if (opens) parts.push_back({0, 0});
    in_part = opens ? 1 : in_part + 1;
    Failures& part = parts.back();
    part.chance += value.chance;
    if (part.chance > 0) part.submessages += (value.submessages - part.submessages) * value.chance / part.chance;
  }
  return parts;
}

std::shared_ptr<const LossDepths> depths_of(const Transfer& transfer) {
  return std::make_shared<const LossDepths>(transfer.loss(), transfer.chunks());
}

}  // namespace

Result<CompletionTime> CompletionTime::of(const Transfer& transfer, const SchemeSpec& scheme) {
  if (Result<void> checked = check(scheme); !checked) return checked.error();
  CompletionTime time(transfer.rtt());
  if (scheme.kind == SchemeKind::Adaptive) {
    time.add_layers(transfer, scheme);
  } else if (scheme.coded()) {
    time.add_fallbacks(transfer, scheme);
  } else {
    time.parts_.push_back(
        {1, 0, SelectiveRepeat(transfer.chunks(), transfer.injection(), scheme.period(transfer), depths_of(transfer))});
  }
  return time;
}

void CompletionTime::add_fallbacks(const Transfer& transfer, const SchemeSpec& scheme) {
  const CodedMessage message(transfer.chunks(), scheme);
  const SubmessageFailure failure(message, scheme, transfer.loss());
  fallback_ = fallback_chance(message, failure);
  const double injected = static_cast<double>(message.chunks + message.parity_chunks()) * transfer.injection();
  const double asked_again = injected + (1 + scheme.fallback_beta) * transfer.rtt();
  const auto depths = depths_of(transfer);
  const auto add = [&](double chance, double chunks) {
    if (chance <= 0) return;
    parts_.push_back({chance, chunks > 0 ? asked_again : injected,
                      SelectiveRepeat(static_cast<std::uint64_t>(std::llround(chunks)), transfer.injection(),
                                      scheme.period(transfer), depths)});
  };
  const auto whole = static_cast<double>(message.whole);
  for (const Failures& part : joined(failures_among(whole, failure.run_begins()))) {
    const double chunks = std::min(part.submessages * failure.run, whole) * message.k;
    add(part.chance * (1 - failure.last), chunks);
    add(part.chance * failure.last, chunks + message.last_k);
  }
}

// Every part is certain: a delay, and nothing left to repeat.
void CompletionTime::add_layers(const Transfer& transfer, const SchemeSpec& scheme) {
  const AdaptiveTail tail(transfer, scheme);
  const double p = transfer.loss().p();
  const SelectiveRepeat nothing(0, transfer.injection(), scheme.period(transfer), depths_of(transfer));
  const auto add = [&](double chance, double chunks, double rtts) {
    if (chance > kNegligible)
      parts_.push_back({chance, chunks * transfer.injection() + rtts * transfer.rtt(), nothing});
  };
  double data = static_cast<double>(tail.head) / (1 - p) + static_cast<double>(tail.tail);
  double covered = std::pow(1 - p, tail.exposed_repairs);  // the chance that no repair that is lost holds it up
  const bool coded_cover = tail.cover.code.submessages > 0;
  if (coded_cover) {  // parity over the repairs, before that of the tail
    data += static_cast<double>(tail.cover_parity());
    covered = 1 - tail.cover.code.failure;
  }
  const double all = data + static_cast<double>(tail.parity_chunks());
  // Without a repair that is lost in the last round trip the parity decides, else the copies behind it.
  const std::vector<double> done = tail.done_by_layer(transfer.loss());
  double before = 0;
  for (std::size_t j = 0; j < done.size(); ++j) {
    add((done[j] - before) * covered, data + static_cast<double>(j) * tail.plan.submessages, 0);
    before = done[j];
  }
  const std::uint32_t passes = coded_cover ? 0 : tail.cover.copies;
  for (std::uint32_t pass = 1; pass <= passes; ++pass) {
    const double by = std::pow(1 - std::pow(p, pass + 1), tail.exposed_repairs);
    add((by - covered) * done.back(), all + pass * tail.exposed_repairs, 0);
    covered = by;
  }
  fallback_ = std::max(0.0, 1 - covered * done.back());
  add(fallback_, all + passes * tail.exposed_repairs, 1 + kSettleRtts);
  if (parts_.empty()) add(1, data, 0);
}

double CompletionTime::survival(double seconds) const {
  double sum = 0;
  for (const Part& part : parts_) sum += part.weight * part.repeat.survival(seconds - rtt_ - part.delay);
  return sum;
}

double CompletionTime::cdf(Duration time) const {
  // Half a nanosecond, so that a time that was rounded down still counts as reached.
  return 1 - survival(to_seconds(time) + 0.5e-9);
}

Duration CompletionTime::mean() const {
  double sum = 0;
  for (const Part& part : parts_) sum += part.weight * (part.delay + part.repeat.mean());
  return to_duration(sum + rtt_);
}

double CompletionTime::quantile(double share) const {
  double low = 0;
  double step = rtt_ + parts_.front().delay + parts_.front().repeat.earliest() + parts_.front().repeat.period();
  while (survival(low + step) > 1 - share) {
    low += step;
    step *= 2;
  }
  double high = low + step;
  while (high - low > std::max(kPrecision, high * 1e-14)) {
    const double middle = low + (high - low) / 2;
    (survival(middle) > 1 - share ? low : high) = middle;
  }
  return high;
}

Result<Duration> CompletionTime::percentile(double share) const {
  if (!(share > 0 && share < 1)) {
    return Error{ErrorCode::InvalidArgument, fmt::format("percentile {} is not between 0 and 1", share)};
  }
  return to_duration(quantile(share));
}

Summary CompletionTime::summary() const {
  return {mean(), to_duration(quantile(0.5)), to_duration(quantile(0.99)), to_duration(quantile(0.999))};
}

Result<Duration> paper_mean(const Transfer& transfer, const SchemeSpec& scheme) {
  if (Result<void> checked = check(scheme); !checked) return checked.error();
  const auto depths = depths_of(transfer);
  const auto repeat_mean = [&](double chunks) {
    return SelectiveRepeat(static_cast<std::uint64_t>(chunks), transfer.injection(), scheme.period(transfer), depths)
        .mean();
  };
  if (!scheme.coded()) return to_duration(repeat_mean(static_cast<double>(transfer.chunks())) + transfer.rtt());
  const CodedMessage message(transfer.chunks(), scheme);
  const SubmessageFailure failure(message, scheme, transfer.loss());
  const double again = static_cast<double>(message.whole) * failure.whole * message.k + failure.last * message.last_k;
  const double below = std::floor(again);
  const double repeat = repeat_mean(below) + (again - below) * (repeat_mean(below + 1) - repeat_mean(below));
  const double injected = static_cast<double>(message.chunks + message.parity_chunks()) * transfer.injection();
  const double fallback = fallback_chance(message, failure) * (1 + scheme.fallback_beta) * transfer.rtt();
  return to_duration(injected + fallback + repeat + transfer.rtt());
}

}  // namespace sdr::model

// The sentence that says why: what the best scheme gives, what the best of the other kind would, and what causes the
// difference.
#include <fmt/format.h>

#include "model/planner.hpp"

namespace sdr::model {
namespace {

using sdr::to_string;  // of durations

std::string percent(double share) {
  return fmt::format("{:.3g} %", share * 100);
}

bool alike(Duration a, Duration b) {
  return to_seconds(a) <= to_seconds(b) * (1 + kSame) && to_seconds(b) <= to_seconds(a) * (1 + kSame);
}

// The best of the paper's schemes that are coded, or not; null when none keeps to the budget.
const PlannedScheme* best_of(const Plan& plan, bool coded) {
  std::vector<PlannedScheme> others;
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < plan.schemes.size(); ++i) {
    const SchemeSpec& scheme = plan.schemes[i].scheme;
    if (scheme.kind == SchemeKind::Adaptive || scheme.coded() != coded || !plan.schemes[i].within_budget) continue;
    others.push_back(plan.schemes[i]);
    places.push_back(i);
  }
  return others.empty() ? nullptr : &plan.schemes[places[choose(others)]];
}

std::string repeat_reason(const Plan& plan, const PlannedScheme& best, const PlannedScheme* coded) {
  const std::string name = to_text(best.scheme);
  const Duration ideal = plan.transfer.lossless();
  if (alike(best.time.p999, ideal)) {
    return fmt::format(
        "{}: losses cost this message no time worth mentioning: 99.9 % of Writes are done within {}, "
        "without loss it would be {}; parity would only add bytes",
        name, to_string(best.time.p999), to_string(ideal));
  }
  const std::string done =
      fmt::format("99.9 % of Writes are done within {}, {:.2f} times the lossless {}", to_string(best.time.p999),
                  to_seconds(best.time.p999) / to_seconds(ideal), to_string(ideal));
  if (coded == nullptr) return fmt::format("{}: {}; no code keeps to {} more bytes", name, done, percent(plan.budget));
  const std::string other = to_text(coded->scheme);
  if (coded->fallback > kRare) {
    return fmt::format("{}: {}; {} takes {} there, its parity within the budget does not suffice in {} of the Writes",
                       name, done, other, to_string(coded->time.p999), percent(coded->fallback));
  }
  if (alike(coded->time.p999, best.time.p999)) {
    return fmt::format("{}: {}; {} is no faster and sends {} more bytes", name, done, other,
                       percent(coded->overhead()));
  }
  const double parity = static_cast<double>(plan.transfer.chunks()) * plan.transfer.injection() * coded->parity;
  return fmt::format("{}: {}; {} takes {} there, its parity alone adds {} on the wire", name, done, other,
                     to_string(coded->time.p999), to_string(to_duration(parity)));
}

std::string cores_of(const PlannedScheme& scheme) {
  if (!scheme.encode.limited()) return "";
  return scheme.cores < 0.1 ? " and less than 0.1 sender cores" : fmt::format(" and {:.1f} sender cores", scheme.cores);
}

std::string adaptive_reason(const Plan& plan, const PlannedScheme& best, const PlannedScheme& repeat,
                            const PlannedScheme* coded) {
  const Duration ideal = plan.transfer.lossless();
  std::string other = "no code keeps to the budget";
  if (coded != nullptr)
    other = fmt::format("{} needs {} and {} more bytes", to_text(coded->scheme), to_string(coded->time.p999),
                        percent(coded->overhead()));
  return fmt::format(
      "adaptive: 99.9 % of Writes are done within {}, {:.2f} times the lossless {}, since the last round trip of {} "
      "has "
      "parity for the losses of this path; {} needs {}, {}; the price is {} more bytes{} for encoding",
      to_string(best.time.p999), to_seconds(best.time.p999) / to_seconds(ideal), to_string(ideal),
      to_string(to_duration(plan.transfer.rtt())), to_text(repeat.scheme), to_string(repeat.time.p999), other,
      percent(best.overhead()), cores_of(best));
}

std::string code_reason(const Plan& plan, const PlannedScheme& best, const PlannedScheme& repeat) {
  const bool tails_alike = alike(best.time.p999, repeat.time.p999);
  const Duration time = tails_alike ? best.time.mean : best.time.p999;
  const Duration other = tails_alike ? repeat.time.mean : repeat.time.p999;
  const Duration ideal = plan.transfer.lossless();
  return fmt::format(
      "{}: {} within {}, {:.2f} times the lossless {}; {}, which sends lost packets again and waits "
      "a round trip of {} for each try, needs {}; the price is {} more bytes{} for encoding",
      to_text(best.scheme), tails_alike ? "Writes are done in the mean" : "99.9 % of Writes are done", to_string(time),
      to_seconds(time) / to_seconds(ideal), to_string(ideal), to_text(repeat.scheme),
      to_string(to_duration(plan.transfer.rtt())), to_string(other), percent(best.overhead()), cores_of(best));
}

}  // namespace

std::string reason(const Plan& plan) {
  const PlannedScheme& best = plan.schemes[plan.best];
  if (best.scheme.kind == SchemeKind::Adaptive)
    return adaptive_reason(plan, best, *best_of(plan, false), best_of(plan, true));
  if (!best.scheme.coded()) return repeat_reason(plan, best, best_of(plan, true));
  return code_reason(plan, best, *best_of(plan, false));
}

}  // namespace sdr::model

#include "model/planner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "model/adaptive_tail.hpp"
#include "model/erasure_code.hpp"

namespace sdr::model {
namespace {

// Beyond this chance of a fallback, more parity costs more time than it can save.
constexpr double kParityDone = 1e-9;
// An overhead that reads the same as the budget, to a hundredth of a percent, keeps to it.
constexpr double kBudgetSlack = 5e-5;
constexpr double kRepeatAfterNack = 1;  // RTTs: what coded schemes of this library fall back to

struct Shape {
  std::uint64_t submessages = 0;
  std::uint64_t parity_chunks = 0;
  SchemeSpec scheme;  // with the k that submessages really have
};

// ceil(M / k) submessages of nearly equal size. The theory wants k of XOR to be a multiple of m: it gets the next one.
Shape shape_of(const SchemeSpec& scheme, std::uint64_t chunks) {
  Shape shape;
  shape.scheme = scheme;
  shape.submessages = (chunks + scheme.data_chunks - 1) / scheme.data_chunks;
  const std::uint64_t longest = (chunks + shape.submessages - 1) / shape.submessages;
  auto k = static_cast<unsigned>(longest);
  unsigned m = scheme.parity_chunks;
  if (scheme.kind == SchemeKind::EcXor) {
    m = std::min(m, k);  // a parity of no data protects nothing
    k = (k + m - 1) / m * m;
  }
  shape.parity_chunks = shape.submessages * m;
  shape.scheme.data_chunks = k;
  shape.scheme.parity_chunks = m;
  return shape;
}

double share_of(const Transfer& transfer, double chunks) {
  return chunks / static_cast<double>(transfer.chunks());
}

// E[losses beyond `bearable`] among n chunks: the sum of the tails.
double expected_excess(unsigned n, unsigned bearable, double p) {
  double sum = 0;
  for (unsigned above = bearable; above < n; ++above) {
    const double tail = binomial_tail(n, p, above);
    sum += tail;
    if (tail <= sum * 1e-12) break;
  }
  return sum;
}

// Chunks that a coded Write sends again, per chunk of the message. The receiver asks for as few as make everything
// decodable: never more than were lost, nor more than the submessages that fail have.
double coded_repairs(const Transfer& transfer, const Shape& shape) {
  const unsigned k = shape.scheme.data_chunks;
  const unsigned m = shape.scheme.parity_chunks;
  const ChunkLoss& loss = transfer.loss();
  double each = 0;
  if (!loss.independent()) {
    const CodedMessage message(transfer.chunks(), shape.scheme);
    const SubmessageFailure failure(message, shape.scheme, loss);
    each = std::min((k + m) * loss.p(), std::max(failure.whole, failure.last) * k);
  } else if (shape.scheme.kind == SchemeKind::EcXor) {
    each = m * expected_excess(k / m + 1, 1, loss.p());
  } else {
    each = expected_excess(k + m, m, loss.p());
  }
  return share_of(transfer, each * static_cast<double>(shape.submessages)) / (1 - loss.p());
}

struct Fallback {
  double chance = 0;
  double chunks = 0;  // that half of the Writes or more send again: the median of a binomial is at least floor(n p)
};

Fallback fallback_of(const Transfer& transfer, const SchemeSpec& scheme) {
  const CodedMessage message(transfer.chunks(), scheme);
  const SubmessageFailure failure(message, scheme, transfer.loss());
  const double runs = std::floor(static_cast<double>(message.whole) * failure.run_begins());
  return {fallback_chance(message, failure), runs * failure.run * message.k};
}

struct Candidate {
  SchemeSpec scheme;
  SchemeSpec as_run;
  double p999 = 0;
  double least_mean = 0;  // a bound
};

// Of `places`, those that are at most a share above the least.
template <typename Value>
void keep_least(std::vector<std::size_t>& places, double share, Value value) {
  double least = std::numeric_limits<double>::infinity();
  for (const std::size_t i : places) least = std::min(least, value(i));
  std::erase_if(places, [&](std::size_t i) { return value(i) > least * (1 + share); });
}

// Looks at the shapes of one code, and skips those that cannot win.
class ShapeSearch {
 public:
  ShapeSearch(SchemeKind code, const Transfer& transfer, double budget)
      : code_(code), transfer_(transfer), budget_(budget) {}

  void look_at(unsigned k) {
    const unsigned most = std::min(code_ == SchemeKind::EcXor ? k : 255 - k, 255 - k);
    for (unsigned m = 1; m <= most; ++m) {
      if (code_ == SchemeKind::EcXor && k % m != 0) continue;
      if (!look_at(k, m)) return;
    }
  }

  [[nodiscard]] std::optional<SchemeSpec> found() const {
    if (candidates_.empty()) return std::nullopt;
    std::vector<Candidate> alike = candidates_;
    std::erase_if(alike, [&](const Candidate& candidate) { return !may_win(candidate.p999); });
    std::stable_sort(alike.begin(), alike.end(),
                     [](const Candidate& a, const Candidate& b) { return a.least_mean < b.least_mean; });
    const Candidate* best = nullptr;
    double least = std::numeric_limits<double>::infinity();
    for (const Candidate& candidate : alike) {
      if (candidate.least_mean >= least) break;
      const double mean = to_seconds(CompletionTime::of(transfer_, candidate.as_run).value().mean());
      if (mean >= least) continue;
      best = &candidate;
      least = mean;
    }
    return best->scheme;
  }

 private:
  // False: more parity cannot do better.
  bool look_at(unsigned k, unsigned m) {
    SchemeSpec scheme{.kind = code_, .data_chunks = k, .parity_chunks = m, .rto_rtts = kRepeatAfterNack};
    const Shape shape = shape_of(scheme, transfer_.chunks());
    const double parity = share_of(transfer_, static_cast<double>(shape.parity_chunks));
    if (parity > budget_ + kBudgetSlack) return false;
    const double sent =
        static_cast<double>(transfer_.chunks() + shape.parity_chunks) * transfer_.injection() + transfer_.rtt();
    if (!may_win(sent)) return false;
    const Fallback fallback = fallback_of(transfer_, shape.scheme);
    const bool rare = fallback.chance < kRare;
    const double again = (1 + scheme.fallback_beta) * transfer_.rtt();
    if (!rare && !may_win(sent + again + fallback.chunks * transfer_.injection())) return true;
    if (parity + coded_repairs(transfer_, shape) > budget_ + kBudgetSlack) return true;
    // A rare fallback is beyond the 99.9th percentile.
    const double p999 = rare ? sent : p999_of(shape.scheme);
    candidates_.push_back({scheme, shape.scheme, p999, sent + fallback.chance * again});
    least_p999_ = std::min(least_p999_, p999);
    return fallback.chance > kParityDone;
  }

  [[nodiscard]] bool may_win(double p999) const { return p999 <= least_p999_ * (1 + kAlike); }
  [[nodiscard]] double p999_of(const SchemeSpec& scheme) const {
    return to_seconds(CompletionTime::of(transfer_, scheme).value().percentile(0.999).value());
  }

  SchemeKind code_;
  const Transfer& transfer_;
  double budget_;
  double least_p999_ = std::numeric_limits<double>::infinity();
  std::vector<Candidate> candidates_;
};

// The loss of packets up to which fewer than kRare of the Writes fall back.
double holds_to(const PathSpec& path, Bytes message, const SchemeSpec& scheme) {
  const auto holds = [&](double loss) {
    PathSpec at = path;
    at.loss = loss;
    const Result<Transfer> transfer = Transfer::create(at, message);
    return transfer && fallback_of(*transfer, scheme).chance < kRare;
  };
  double low = std::log(1e-12);
  double high = std::log(0.9);
  if (!holds(std::exp(low))) return 0;
  while (high - low > 1e-3) {
    const double middle = (low + high) / 2;
    (holds(std::exp(middle)) ? low : high) = middle;
  }
  return std::exp(low);
}

Summary at_least(const Summary& time, Duration floor) {
  return {std::max(time.mean, floor), std::max(time.p50, floor), std::max(time.p99, floor), std::max(time.p999, floor)};
}

Result<PlannedScheme> assess(const PathSpec& path, Bytes message, const Transfer& transfer, const SchemeSpec& scheme,
                             double budget, const EncodeSpeed& encode_speed) {
  PlannedScheme planned;
  planned.scheme = scheme;
  SchemeSpec as_run = scheme;
  const double p = transfer.loss().p();
  if (scheme.coded()) {
    const Shape shape = shape_of(scheme, transfer.chunks());
    as_run = shape.scheme;
    planned.parity = share_of(transfer, static_cast<double>(shape.parity_chunks));
    planned.repairs = coded_repairs(transfer, shape);
    planned.within_budget = planned.overhead() <= budget + kBudgetSlack;
    planned.holds_to = holds_to(path, message, as_run);
    planned.encode = encode_speed(scheme);
    if (planned.encode.limited()) planned.cores = path.rate.bits_per_second / planned.encode.bits_per_second;
  } else if (scheme.kind == SchemeKind::Adaptive) {
    const AdaptiveTail tail(transfer, scheme);
    const bool coded_cover = tail.cover.code.submessages > 0;
    const double copies = coded_cover ? 0 : tail.cover.copies * tail.exposed_repairs;
    planned.parity = share_of(transfer, static_cast<double>(tail.parity_chunks() + tail.cover_parity()));
    planned.repairs = share_of(transfer, static_cast<double>(tail.head) * p / (1 - p) + copies);
    planned.within_budget = planned.overhead() <= budget + kBudgetSlack;
    if (tail.plan.parity_each > 0) {
      planned.encode = encode_speed({.kind = SchemeKind::EcRs,
                                     .data_chunks = static_cast<unsigned>(tail.longest),
                                     .parity_chunks = tail.plan.parity_each});
      const double coded = share_of(transfer, static_cast<double>(tail.tail));
      if (planned.encode.limited()) planned.cores = path.rate.bits_per_second * coded / planned.encode.bits_per_second;
    }
  } else {
    planned.repairs = p / (1 - p);
  }
  const Result<CompletionTime> time = CompletionTime::of(transfer, as_run);
  if (!time) return time.error();
  planned.time = time->summary();
  planned.fallback = time->fallback();
  if (planned.time.mean < transfer.floor()) {
    planned.at_floor = true;
    planned.time = at_least(planned.time, transfer.floor());
  }
  planned.slowdown = to_seconds(planned.time.mean) / to_seconds(transfer.lossless());
  return planned;
}

}  // namespace

std::optional<SchemeSpec> tune(SchemeKind code, const Transfer& transfer, double budget) {
  ShapeSearch search(code, transfer, budget);
  // From the largest on: they need the least parity, and what is found early spares looking at others.
  for (unsigned k = kMostTunedK; k >= kLeastTunedK; --k) {
    // A smaller k gives as many submessages.
    const std::uint64_t submessages = (transfer.chunks() + k - 1) / k;
    const std::uint64_t longest = (transfer.chunks() + submessages - 1) / submessages;
    const bool same = k > kLeastTunedK && longest < k;
    if (!same || code == SchemeKind::EcXor) search.look_at(k);
  }
  return search.found();
}

std::size_t choose(const std::vector<PlannedScheme>& schemes) {
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < schemes.size(); ++i) {
    if (schemes[i].within_budget) places.push_back(i);
  }
  const auto rank = [&](std::size_t i) {
    const SchemeKind kind = schemes[i].scheme.kind;
    return kind == SchemeKind::SrNack ? 0 : kind == SchemeKind::Adaptive ? 1 : 2;
  };
  std::stable_sort(places.begin(), places.end(), [&](std::size_t a, std::size_t b) { return rank(a) < rank(b); });
  keep_least(places, kSame, [&](std::size_t i) { return to_seconds(schemes[i].time.p999); });
  keep_least(places, kSame, [&](std::size_t i) { return to_seconds(schemes[i].time.mean); });
  keep_least(places, 0, [&](std::size_t i) { return std::floor(schemes[i].overhead() / kSame); });
  return places.front();
}

Result<Plan> plan(const PathSpec& path, Bytes message, double budget, const EncodeSpeed& encode_speed) {
  if (!(budget >= 0 && budget <= 1)) {
    return Error{ErrorCode::InvalidArgument, fmt::format("budget {:.4g} % is not from 0 to 100 %", budget * 100)};
  }
  const Result<Transfer> transfer = Transfer::create(path, message);
  if (!transfer) return transfer.error();
  Plan plan{.transfer = *transfer, .rate = path.rate, .budget = budget};
  const auto add = [&](const SchemeSpec& scheme, bool tuned) -> Result<void> {
    Result<PlannedScheme> planned = assess(path, message, *transfer, scheme, budget, encode_speed);
    if (!planned) return planned.error();
    planned->tuned = tuned;
    plan.schemes.push_back(*planned);
    return {};
  };
  for (const SchemeKind kind : {SchemeKind::SrRto, SchemeKind::SrNack, SchemeKind::EcXor, SchemeKind::EcRs}) {
    SchemeSpec scheme{.kind = kind};
    if (scheme.coded()) scheme.rto_rtts = kRepeatAfterNack;
    if (Result<void> added = add(scheme, false); !added) return added.error();
    if (!scheme.coded()) continue;
    const std::optional<SchemeSpec> tuned = tune(kind, *transfer, budget);
    if (!tuned) plan.untunable.push_back(kind);
    if (!tuned) continue;
    if (Result<void> added = add(*tuned, true); !added) return added.error();
  }
  if (Result<void> added = add({.kind = SchemeKind::Adaptive}, false); !added) return added.error();
  plan.best = choose(plan.schemes);
  return plan;
}

std::string to_text(const SchemeSpec& scheme) {
  if (!scheme.coded()) return std::string(to_string(scheme.kind));
  return fmt::format("{}:{}:{}", to_string(scheme.kind), scheme.data_chunks, scheme.parity_chunks);
}

}  // namespace sdr::model

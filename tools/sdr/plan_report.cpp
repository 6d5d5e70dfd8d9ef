#include "sdr/plan_report.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstdio>

namespace sdr::cli {
namespace {

using model::PlannedScheme;

constexpr std::size_t kColumns = 11;
using Row = std::array<std::string, kColumns>;

// A share for people: "0 %", "0.45 %", "8e-04 %", "< 1e-09 %".
std::string percent(double share) {
  if (share <= 0) return "0 %";
  if (share * 100 < 1e-9) return "< 1e-09 %";
  return share * 100 < 1e-2 ? fmt::format("{:.0e} %", share * 100) : fmt::format("{:.2f} %", share * 100);
}

std::string chunks_of(const model::Plan& plan) {
  return fmt::format("{} chunk{}", plan.transfer.chunks(), plan.transfer.chunks() == 1 ? "" : "s");
}

// What decides the unit of a table: its largest time.
struct TimeUnit {
  explicit TimeUnit(Duration longest) {
    if (longest >= std::chrono::seconds(100)) {
      name = "s", scale = 1e9;
    } else if (longest < std::chrono::microseconds(1000)) {
      name = "us", scale = 1e3;
    }
  }
  [[nodiscard]] std::string operator()(Duration time) const {
    return fmt::format("{:.2f}", static_cast<double>(time.count()) / scale);
  }

  std::string name = "ms";
  double scale = 1e6;
};

std::string cores_of(const PlannedScheme& scheme) {
  if (!scheme.scheme.coded() && scheme.scheme.kind != model::SchemeKind::Adaptive) return "0";
  if (!scheme.encode.limited()) return "?";
  return scheme.cores < 0.01 ? "< 0.01" : fmt::format("{:.2f}", scheme.cores);
}

Row row_of(const PlannedScheme& scheme, bool best, const TimeUnit& unit) {
  const bool coded = scheme.scheme.coded();
  return {best ? "->" : "",
          model::to_text(scheme.scheme) + (scheme.tuned ? " tuned" : ""),
          unit(scheme.time.mean),
          unit(scheme.time.p50),
          unit(scheme.time.p99),
          unit(scheme.time.p999),
          fmt::format("{:.2f}x", scheme.slowdown),
          percent(scheme.overhead()) + (scheme.within_budget ? "  " : " !"),
          coded ? percent(scheme.fallback) : "-",
          coded ? fmt::format("{:.1e}", *scheme.holds_to) : "-",
          cores_of(scheme)};
}

// Names to the left, numbers to the right.
void print_rows(const std::vector<Row>& rows) {
  std::array<std::size_t, kColumns> widths{};
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < kColumns; ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  for (const Row& row : rows) {
    fmt::print("{:<{}} {:<{}}", row[0], widths[0], row[1], widths[1]);
    for (std::size_t i = 2; i < kColumns; ++i) fmt::print("  {:>{}}", row[i], widths[i]);
    fmt::print("\n");
  }
}

std::vector<std::string> notes_of(const PlanQuestion& question, const model::Plan& plan) {
  std::vector<std::string> notes = question.notes;
  for (const model::SchemeKind kind : plan.untunable) {
    notes.push_back(fmt::format("no k:m of {} keeps to {} more bytes for a message of {}", model::to_string(kind),
                                percent(plan.budget), chunks_of(plan)));
  }
  std::string at_floor;
  for (const PlannedScheme& scheme : plan.schemes) {
    if (scheme.at_floor) at_floor += (at_floor.empty() ? "" : ", ") + model::to_text(scheme.scheme);
  }
  if (!at_floor.empty()) {
    notes.push_back(
        fmt::format("the theory's mean was below the floor for {}: the floor is shown (a message this long "
                    "waits for its own retransmissions, which the theory leaves out)",
                    at_floor));
  }
  return notes;
}

Json scheme_to_json(const PlannedScheme& scheme, const model::Plan& plan, bool best) {
  const bool coded = scheme.scheme.coded();
  const double ideal = milliseconds(plan.transfer.lossless());
  const model::Summary& time = scheme.time;
  return {{"name", model::to_string(scheme.scheme.kind)},
          {"scheme", model::to_text(scheme.scheme)},
          {"tuned", scheme.tuned},
          {"best", best},
          {"k", coded ? Json(scheme.scheme.data_chunks) : Json(nullptr)},
          {"m", coded ? Json(scheme.scheme.parity_chunks) : Json(nullptr)},
          {"mean_ms", milliseconds(time.mean)},
          {"p50_ms", milliseconds(time.p50)},
          {"p99_ms", milliseconds(time.p99)},
          {"p999_ms", milliseconds(time.p999)},
          {"slowdown",
           {{"mean", milliseconds(time.mean) / ideal},
            {"p50", milliseconds(time.p50) / ideal},
            {"p99", milliseconds(time.p99) / ideal},
            {"p999", milliseconds(time.p999) / ideal}}},
          {"overhead", scheme.overhead()},
          {"parity_overhead", scheme.parity},
          {"repair_overhead", scheme.repairs},
          {"within_budget", scheme.within_budget},
          {"fallback", scheme.fallback},
          {"holds_to_loss", coded ? Json(*scheme.holds_to) : Json(nullptr)},
          {"encode_gbps", scheme.encode.limited() ? Json(scheme.encode.bits_per_second / 1e9) : Json(nullptr)},
          {"encode_cores", coded && !scheme.encode.limited() ? Json(nullptr) : Json(scheme.cores)},
          {"at_floor", scheme.at_floor}};
}

}  // namespace

Json plan_to_json(const PlanQuestion& question, const model::Plan& plan) {
  const PlannedScheme& best = plan.schemes[plan.best];
  Json schemes = Json::array();
  for (std::size_t i = 0; i < plan.schemes.size(); ++i) {
    schemes.push_back(scheme_to_json(plan.schemes[i], plan, i == plan.best));
  }
  return {{"size_bytes", question.message.count},
          {"mtu", question.path.packet.count},
          {"chunk_bytes", question.path.chunk.count},
          {"chunks", plan.transfer.chunks()},
          {"rtt_ms", milliseconds(question.path.rtt)},
          {"rate_gbps", question.path.rate.bits_per_second / 1e9},
          {"loss", question.path.loss},
          {"burst", question.path.burst},
          {"chunk_loss", plan.transfer.loss().p()},
          {"budget_overhead", plan.budget},
          {"ideal_ms", milliseconds(plan.transfer.lossless())},
          {"floor_ms", milliseconds(plan.transfer.floor())},
          {"best", model::to_string(best.scheme.kind)},
          {"best_scheme", model::to_text(best.scheme)},
          {"why", model::reason(plan)},
          {"schemes", schemes},
          {"notes", notes_of(question, plan)}};
}

void print_plan(const PlanQuestion& question, const model::Plan& plan) {
  const model::PathSpec& path = question.path;
  const std::string runs = path.burst > 1 ? fmt::format("in runs of {:.3g}", path.burst) : std::string("independent");
  fmt::print("{} at {} over an RTT of {}, {:.3g} of the packets lost ({}), {} of {}\n", to_string(question.message),
             to_string(path.rate), to_string(path.rtt), path.loss, runs, chunks_of(plan), to_string(path.chunk));
  fmt::print("without loss {}; no scheme can be faster in the mean than {} (floor)\n\n",
             to_string(plan.transfer.lossless()), to_string(plan.transfer.floor()));

  Duration longest{0};
  bool over_budget = false;
  for (const PlannedScheme& scheme : plan.schemes) {
    longest = std::max(longest, scheme.time.p999);
    over_budget |= !scheme.within_budget;
  }
  const TimeUnit unit(longest);
  std::vector<Row> rows = {{"", "scheme", "mean " + unit.name, "p50 " + unit.name, "p99 " + unit.name,
                            "p99.9 " + unit.name, "slowdown", "more bytes", "fallback", "holds to", "cores"}};
  for (std::size_t i = 0; i < plan.schemes.size(); ++i) {
    rows.push_back(row_of(plan.schemes[i], i == plan.best, unit));
  }
  print_rows(rows);

  fmt::print("\nBest: {}.\n", model::reason(plan));
  if (over_budget) fmt::print("! more bytes than the budget of {}: not chosen.\n", percent(plan.budget));
  for (const std::string& note : notes_of(question, plan)) fmt::print("Note: {}.\n", note);
  std::fflush(stdout);
}

}  // namespace sdr::cli

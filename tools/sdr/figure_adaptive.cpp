// Figures adaptive and adaptive-bursts: our scheme beside those of the paper, over size, loss and the length of bursts.
//
// Counted in floors. Of all the adaptive Writes the mean is checked, of the smaller ones the 99.9th percentile too; in
// bursts there is only the protocol, because the theory takes the submessages of the tail as independent.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

#include "sdr/figure_catalogue.hpp"
#include "sdr/figure_parts.hpp"

namespace sdr::cli {
namespace {

constexpr std::array kLosses = {1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 5e-2};
constexpr std::array kBursts = {1, 8, 32, 256};
constexpr double kBurstLoss = 1e-3;
constexpr Bytes kChecked[] = {128_KiB, 1_MiB, 8_MiB, 32_MiB, 128_MiB, 1_GiB, 8_GiB, 32_GiB};
constexpr Bytes kMostSimulated = 128_MiB;
constexpr Bytes kMostSimulatedTail = 8_MiB;
constexpr Bytes kMostClaimed = 1_GiB;
constexpr Bytes kMost = 32_GiB;

constexpr const char* kMean = "mean";
constexpr const char* kTail = "p99.9";

std::string name_of(const Contender& who, const char* statistic) {
  return fmt::format("{}, {}", who.name, statistic);
}

bool is_checked(Bytes size) {
  return std::find(std::begin(kChecked), std::end(kChecked), size) != std::end(kChecked);
}

// A curve for each scheme and statistic. `theory_holds`: of the adaptive scheme, too.
void add_panel(Figure& figure, const std::string& title, const model::PathSpec& path, Bytes most, bool theory_holds,
               double high) {
  const std::size_t panel = figure.panels.size();
  figure.panels.push_back({title, {"slowdown (completion time / floor)", Unit::Number, true, 0.95, high}});
  for (const Contender& who : {sr_rto(), sr_nack(), ec_mds(), adaptive()}) {
    const bool ours = who.scheme.kind == model::SchemeKind::Adaptive;
    for (const char* statistic : {kMean, kTail}) {
      Series series{name_of(who, statistic), who.colour, {}, panel, statistic == kTail};
      for (Bytes size = kLeastSize; size <= most; size = size * 2) {
        Point point;
        point.x = static_cast<double>(size.count);
        const bool tail_simulated = size <= (theory_holds ? kMostSimulatedTail : kMostSimulated);
        const Question question{series.dashed ? Statistic::P999 : Statistic::Mean,
                                {who.scheme, path, size},
                                {},
                                Yardstick::Floor,
                                tail_simulated};
        if (theory_holds || !ours) point.theory = theory(question);
        if (ours && is_checked(size)) {
          point.question = question;
          point.simulate = series.dashed ? tail_simulated : size <= kMostSimulated;
        }
        series.points.push_back(point);
      }
      figure.series.push_back(std::move(series));
    }
  }
}

const Series& series_in(const Figure& figure, std::size_t panel, const std::string& name) {
  return *std::find_if(figure.series.begin(), figure.series.end(),
                       [&](const Series& series) { return series.panel == panel && series.name == name; });
}

double by_theory(const Point& point) {
  return point.theory;
}
double by_protocol(const Point& point) {
  return point.simulated.value;
}
using Value = double (*)(const Point& point);

// The largest of what `value` makes of the adaptive curves of panels `from` to `to`, as far as it is known.
struct Worst {
  double value = kUnknown;
  std::string at = "nowhere";
};
Worst worst_of(const Figure& figure, const char* statistic, std::size_t from, std::size_t to, Bytes most,
               const std::function<double(std::size_t panel, std::size_t row, const Point& point)>& value) {
  Worst worst;
  for (std::size_t panel = from; panel <= to; ++panel) {
    const Series& series = series_in(figure, panel, name_of(adaptive(), statistic));
    for (std::size_t row = 0; row < series.points.size(); ++row) {
      const Point& point = series.points[row];
      if (point.x > static_cast<double>(most.count)) continue;
      const double here = value(panel, row, point);
      if (!std::isfinite(here) || here <= worst.value) continue;
      worst = {here, fmt::format("{}, {}", to_string(point.x, Unit::Size), figure.panels[panel].title)};
    }
  }
  return worst;
}

// How many lossless times a floor is.
double lossless_times(double loss, double size) {
  const Cell cell{adaptive().scheme, paper_path(loss), Bytes{static_cast<std::uint64_t>(size)}};
  return seconds_of(Yardstick::Floor, cell) / seconds_of(Yardstick::Lossless, cell);
}

const char* means_of(Value value) {
  return value == by_theory ? "by theory" : "by the simulated protocol, as far as it was run";
}

Statement at_most(std::string text, double bound, const Worst& worst) {
  return {std::move(text),
          fmt::format("at most {:g}", bound),
          Unit::Number,
          0,
          bound,
          worst.value,
          fmt::format("The largest is at {}.", worst.at)};
}

// Against the better of SR NACK and EC (32, 8), both by theory.
Statement against_others(const Figure& figure, const char* statistic, Value value) {
  const Bytes all{static_cast<std::uint64_t>(figure.x.high)};
  const Worst worst = worst_of(figure, statistic, 0, figure.panels.size() - 1, all,
                               [&](std::size_t panel, std::size_t row, const Point& point) {
                                 const auto other = [&](const Contender& who) {
                                   return series_in(figure, panel, name_of(who, statistic)).points[row].theory;
                                 };
                                 return value(point) / std::min(other(sr_nack()), other(ec_mds()));
                               });
  return at_most(fmt::format("Never worse than the better of SR NACK and EC (32, 8), both by theory, by more than 1 %: "
                             "{} over theirs, {}",
                             statistic, means_of(value)),
                 1.01, worst);
}

void claim_of_losses(Figure& figure, Value value) {
  const std::size_t high = kLosses.size() - 1;
  const auto in_lossless_times = [&](std::size_t panel, std::size_t, const Point& point) {
    return value(point) * lossless_times(kLosses[panel], point.x);
  };
  const auto in_floors = [&](std::size_t, std::size_t, const Point& point) { return value(point); };
  const auto claim = [&](const char* losses, const char* unit, const char* statistic, double bound,
                         auto&& worst_up_to) {
    const Worst all = worst_up_to(kMost);
    Statement claimed = at_most(fmt::format("Known loss of {}, up to {}: {} in {}, {}", losses, to_string(kMostClaimed),
                                            statistic, unit, means_of(value)),
                                bound, worst_up_to(kMostClaimed));
    if (value == by_theory) {
      claimed.why += fmt::format(" Up to {}, which is not claimed, {} at {}.", to_string(kMost),
                                 to_string(all.value, Unit::Number), all.at);
    }
    figure.statements.push_back(std::move(claimed));
  };
  for (const char* statistic : {kMean, kTail}) {
    claim("1e-6 to 1e-2", "lossless times", statistic, statistic == kMean ? 1.03 : 1.05,
          [&](Bytes most) { return worst_of(figure, statistic, 0, high - 1, most, in_lossless_times); });
  }
  for (const char* statistic : {kMean, kTail}) {
    claim("5e-2", "floors", statistic, statistic == kMean ? 1.06 : 1.10,
          [&](Bytes most) { return worst_of(figure, statistic, high, high, most, in_floors); });
  }
  for (const char* statistic : {kMean, kTail}) figure.statements.push_back(against_others(figure, statistic, value));
}

void conclude_losses(Figure& figure) {
  claim_of_losses(figure, by_protocol);
}

void conclude_bursts(Figure& figure) {
  const auto in_floors = [](std::size_t, std::size_t, const Point& point) { return by_protocol(point); };
  for (const char* statistic : {kMean, kTail}) {
    figure.statements.push_back(at_most(
        fmt::format("Bursts of up to 256 packets on average, a loss of 1e-3, up to 128 MiB: {} in floors", statistic),
        statistic == kMean ? 1.10 : 1.3,
        worst_of(figure, statistic, 0, kBursts.size() - 1, kMostSimulated, in_floors)));
  }
  for (const char* statistic : {kMean, kTail}) {
    figure.statements.push_back(against_others(figure, statistic, by_protocol));
  }
}

}  // namespace

Figure figure_adaptive(const FigureOptions&) {
  Figure figure;
  figure.id = "adaptive";
  figure.title = "Slowdown over the floor, by message size, for losses of 1e-6 to 5e-2 (25 ms, 400 Gbit/s)";
  figure.caption =
      "Our adaptive scheme, which knows the loss, beside those of the paper. A solid line is a mean, a dashed "
      "one of the same colour the 99.9th percentile. Where the theory of selective repeat falls below the floor "
      "(long messages at a high loss, because the paper's retransmissions take no time on the wire), the floor "
      "is drawn. EC falls back as in the paper. Diamonds are the real protocol in virtual time: the mean up to "
      "128 MiB, of the large ones some tens of Writes, and the 99.9th percentile (hollow) of 1000 Writes up to "
      "8 MiB. docs/model.md has a few of larger ones.";
  figure.shape = Shape::Panels;
  figure.ours = true;
  figure.x = size_axis(kLeastSize, kMost);
  for (const double loss : kLosses) {
    add_panel(figure, fmt::format("loss {}", to_string(loss, Unit::Probability)), paper_path(loss), kMost, true, 20);
  }
  claim_of_losses(figure, by_theory);
  figure.conclude = conclude_losses;
  return figure;
}

Figure figure_adaptive_bursts(const FigureOptions&) {
  Figure figure;
  figure.id = "adaptive-bursts";
  figure.title = "Slowdown over the floor where losses come in bursts (mean loss 1e-3, 25 ms, 400 Gbit/s)";
  figure.caption =
      "Gilbert-Elliott losses with a mean run of 1 to 256 packets. The curves of the paper's schemes are "
      "theory. Those of the adaptive scheme, which knows loss and burst, are the real protocol in virtual time, "
      "1000 Writes a point.";
  figure.shape = Shape::Panels;
  figure.ours = true;
  figure.x = size_axis(kLeastSize, kMostSimulated);
  for (const int burst : kBursts) {
    model::PathSpec path = paper_path(kBurstLoss);
    path.burst = burst;
    add_panel(figure, burst == 1 ? "independent losses" : fmt::format("mean run of {} packets", burst), path,
              kMostSimulated, false, 8);
  }
  figure.conclude = conclude_bursts;
  return figure;
}

}  // namespace sdr::cli

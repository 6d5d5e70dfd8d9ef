// Figure adaptive-estimate: what it costs to be wrong about the loss, in time and in parity.
//
// All of it by the protocol: the theory is of a sender that knows. SR NACK, which has nothing to believe, is theory.
#include <fmt/format.h>

#include <array>
#include <cmath>

#include "sdr/figure_catalogue.hpp"
#include "sdr/figure_parts.hpp"

namespace sdr::cli {
namespace {

constexpr std::array kBeliefs = {0.01, 0.1, 0.5, 1.0, 2.0, 10.0, 100.0};
constexpr std::array kSizes = {8_MiB, 128_MiB};

struct Truth {
  double loss;
  const char* colour;
};
constexpr std::array<Truth, 3> kTruths = {{{1e-4, kSky}, {1e-3, kBlack}, {1e-2, kVermillion}}};

std::string name_of(const Contender& who, double loss) {
  return fmt::format("{}, loss {}", who.name, to_string(loss, Unit::Probability));
}

Series over_belief(const Contender& who, const Truth& truth, std::size_t panel, Bytes size, Statistic statistic) {
  const bool ours = who.scheme.kind == model::SchemeKind::Adaptive;
  Series series{name_of(who, truth.loss), truth.colour, {}, panel, !ours};
  for (const double belief : kBeliefs) {
    Point point;
    point.x = belief;
    Question question{statistic, {who.scheme, paper_path(truth.loss), size}, {}, Yardstick::Floor};
    if (ours) {
      question.cell.belief = belief;
      point.question = question;
      point.simulate = true;
    } else {
      point.theory = theory(question);
    }
    series.points.push_back(point);
  }
  return series;
}

struct Worst {
  double value = kUnknown;
  std::string at = "nowhere";
};

// The largest of the simulated slowdowns for beliefs of `from` to `to`, in those of SR NACK if `over_nack`.
Worst worst_of(const Figure& figure, double from, double to, bool over_nack) {
  Worst worst;
  for (const Series& series : figure.series) {
    if (series.dashed || series.panel >= kSizes.size()) continue;
    const Series& nack = *(&series + 1);
    for (std::size_t i = 0; i < kBeliefs.size(); ++i) {
      if (kBeliefs[i] < from || kBeliefs[i] > to) continue;
      const double value = series.points[i].simulated.value / (over_nack ? nack.points[i].theory : 1);
      if (!std::isfinite(value) || value <= worst.value) continue;
      worst = {value, fmt::format("{} times the true loss, {}, {}", kBeliefs[i], to_string(kSizes[series.panel]),
                                  series.name)};
    }
  }
  return worst;
}

void conclude(Figure& figure) {
  const auto at_most = [&](std::string text, double bound, const Worst& worst, const std::string& more) {
    figure.statements.push_back({std::move(text), fmt::format("at most {:g}", bound), Unit::Number, 0, bound,
                                 worst.value, fmt::format("The largest is at {}.{}", worst.at, more)});
  };
  const auto beyond = [&](const char* what, double factor) {
    const Worst worst = worst_of(figure, factor, factor, false);
    return fmt::format(" {}: up to {} floors, at {}.", what, to_string(worst.value, Unit::Number), worst.at);
  };
  at_most("A belief of half to twice the true loss costs no time: mean in floors", 1.03,
          worst_of(figure, 0.5, 2, false), "");
  at_most("Nor does one up to ten times too high, which costs parity: mean in floors", 1.03,
          worst_of(figure, 1, 10, false),
          beyond("Not so ten times too low", 0.1) + beyond("A hundred times too high, but at most a loss of 1", 100));
  at_most("However wrong, not slower than SR NACK, by its theory, by more than 1 %: mean over its mean", 1.01,
          worst_of(figure, kBeliefs.front(), kBeliefs.back(), true), "");
}

}  // namespace

Figure figure_adaptive_estimate(const FigureOptions&) {
  Figure figure;
  figure.id = "adaptive-estimate";
  figure.title = "A wrong estimate: what the adaptive scheme costs in time and in parity (25 ms, 400 Gbit/s)";
  figure.caption =
      "The sender believes in a loss of 0.01 to 100 times the true one (at most a loss of 1), as firmly as "
      "after 100 million packets. Too low a belief is paid for in round trips, too high a one in parity. Solid "
      "lines are the real protocol in virtual time, dashed ones SR NACK by theory, for the same loss. A "
      "connection corrects its belief from Write to Write; each Write here is the first.";
  figure.shape = Shape::Panels;
  figure.ours = true;
  figure.x = {"believed loss / true loss", Unit::Factor, true, kBeliefs.front(), kBeliefs.back()};
  for (const Statistic statistic : {Statistic::Mean, Statistic::Parity}) {
    const bool time = statistic == Statistic::Mean;
    for (const Bytes size : kSizes) {
      const std::size_t panel = figure.panels.size();
      const std::string text = to_string(static_cast<double>(size.count), Unit::Size);
      figure.panels.push_back({text + (time ? ": mean slowdown" : ": parity"),
                               time ? Axis{"slowdown (completion time / floor)", Unit::Number, true, 0.95, 4}
                                    : Axis{"parity chunks / data chunks", Unit::Probability, true, 1e-3, 1}});
      for (const Truth& truth : kTruths) {
        figure.series.push_back(over_belief(adaptive(), truth, panel, size, statistic));
        if (time) figure.series.push_back(over_belief(sr_nack(), truth, panel, size, statistic));
      }
    }
  }
  figure.conclude = conclude;
  return figure;
}

}  // namespace sdr::cli

// The paper's figures, and ours, as data: their shapes, their statements, and what the writers make of them. No file is
// touched.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <string>
#include <vector>

#include "sdr/figure_catalogue.hpp"
#include "sdr/figure_checks.hpp"
#include "sdr/figure_parts.hpp"
#include "sdr/figure_writers.hpp"

namespace sdr::cli {
namespace {

using ::testing::HasSubstr;

const FigureOptions kFew{1000, 1, 2};

std::vector<Figure> all_figures() {
  std::vector<Figure> figures;
  for (const CatalogueEntry& entry : figure_catalogue()) figures.push_back(entry.make(kFew));
  return figures;
}

bool rises(const Series& series) {
  return std::is_sorted(series.points.begin(), series.points.end(),
                        [](const Point& a, const Point& b) { return a.theory < b.theory * (1 - 1e-9); });
}

const Statement& statement(const Figure& figure, const std::string& part) {
  const auto found = std::find_if(figure.statements.begin(), figure.statements.end(),
                                  [&](const Statement& s) { return s.text.find(part) != std::string::npos; });
  EXPECT_NE(found, figure.statements.end()) << part;
  return *found;
}

double computed(const Figure& figure, const std::string& part) {
  return statement(figure, part).computed;
}

TEST(Figures, EveryNumber_IsFiniteAndInsideItsAxes) {
  for (const Figure& figure : all_figures()) {
    SCOPED_TRACE(figure.id);
    ASSERT_FALSE(figure.series.empty());
    EXPECT_TRUE(!figure.statements.empty() || figure.conclude != nullptr);
    for (const Series& series : figure.series) {
      EXPECT_EQ(series.points.size(), figure.series[0].points.size());
      for (std::size_t i = 0; i < series.points.size(); ++i) {
        const Point& point = series.points[i];
        // What only the protocol answers is known once it is checked.
        EXPECT_TRUE(std::isfinite(point.theory) || std::isfinite(point.monte_carlo.value) || point.simulate ||
                    figure.id == "adaptive-bursts")
            << series.name << point.x;
        EXPECT_EQ(point.x, figure.series[0].points[i].x) << "one table holds all curves";
        EXPECT_GE(point.x, figure.x.low * 0.999);
        EXPECT_LE(point.x, figure.x.high * 1.001);
      }
    }
    for (const Statement& stated : figure.statements) {
      EXPECT_TRUE(std::isfinite(stated.computed)) << stated.text;
      EXPECT_FALSE(stated.why.empty()) << stated.text;
      EXPECT_LT(stated.low, stated.high) << stated.text;
    }
  }
}

TEST(Figures, Figure3a_PeaksAt512MiBAndCrossesAt12GiB) {
  const Figure figure = figure_3a(kFew);
  const Point peak = peak_of(figure.series[0]);
  EXPECT_NEAR(peak.theory, 2.46, 0.02);
  EXPECT_TRUE(rises(figure.series[1])) << "EC";
  EXPECT_NEAR(computed(figure, "cross") / (1U << 30), 12.4, 0.1);
  EXPECT_NEAR(computed(figure, "rises to"), 1.25, 0.001);
  EXPECT_FALSE(statement(figure, "cross").agrees()) << "the paper says 32 GiB";
  EXPECT_TRUE(statement(figure, "SR RTO peaks").agrees());
}

TEST(Figures, Figure3b_SelectiveRepeatRisesThroughErasureCoding) {
  const Figure figure = figure_3b(kFew);
  EXPECT_TRUE(rises(figure.series[0]));
  EXPECT_NEAR(computed(figure, "at 75 km"), 1.249, 0.001);
  EXPECT_NEAR(computed(figure, "at 6000 km"), 1.203, 0.001);
  EXPECT_GT(computed(figure, "crosses"), 2000);
  EXPECT_LT(computed(figure, "crosses"), 3000);
}

TEST(Figures, OverLoss_NoCurveFalls) {
  for (const auto make : {figure_3c, figure_10b, figure_10c, figure_10d, figure_11}) {
    const Figure figure = make(kFew);
    for (const Series& series : figure.series) EXPECT_TRUE(rises(series)) << figure.id << " " << series.name;
  }
}

TEST(Figures, StatedNumbers_AreThoseOfTheModelsDocumentation) {
  const Figure steps = figure_3c(kFew);
  EXPECT_NEAR(steps.statements[0].computed, 3.71, 0.01);
  EXPECT_NEAR(steps.statements[1].computed, 6.41, 0.01);
  EXPECT_NEAR(steps.statements[2].computed, 9.12, 0.01);
  const Figure means = figure_10b(kFew);
  EXPECT_NEAR(computed(means, "between 1e-2 and 3e-2"), 6.53, 0.01);
  EXPECT_NEAR(computed(means, "the most there is"), 8.2, 0.01);
  EXPECT_FALSE(statement(means, "the most there is").agrees());
  EXPECT_NEAR(computed(means, "NACK"), 2.75, 0.005);
  EXPECT_FALSE(statement(means, "NACK").agrees());
  EXPECT_NEAR(computed(figure_10c(kFew), "99.9th"), 11.55, 0.01);
  const Figure splits = figure_10d(kFew);
  EXPECT_TRUE(statement(splits, "best balance").agrees());
  EXPECT_NEAR(computed(splits, "tolerates"), 2.7e-2, 0.1e-2);
}

TEST(Figures, Figure9_IsWonByErasureCodingInsideAndBySelectiveRepeatOutside) {
  const Figure figure = figure_9(kFew);
  EXPECT_EQ(figure.shape, Shape::Map);
  EXPECT_GT(computed(figure, "EC wins"), 1);
  EXPECT_LT(computed(figure, "SR wins"), 1);
}

TEST(Figures, Figure12_GainsWithDistanceAndRate) {
  const Figure figure = figure_12(kFew);
  for (const Series& series : figure.series) EXPECT_TRUE(rises(series)) << series.name;
  EXPECT_TRUE(figure.statements[0].agrees());
}

TEST(Figures, Figure13_GrowsWithTheLossFrom3ToMoreThan6) {
  const Figure figure = figure_13a({4000, 1, 2});
  for (const Statement& stated : figure.statements) EXPECT_TRUE(stated.agrees()) << stated.text << stated.computed;
  const std::vector<Point> other = figure_13a({4000, 1, 1}).series[0].points;
  for (std::size_t i = 0; i < other.size(); ++i) {
    EXPECT_EQ(figure.series[0].points[i].monte_carlo.value, other[i].monte_carlo.value) << "any number of threads";
  }
}

TEST(Figures, Adaptive_KeepsItsClaimsInTheory_AndNothingIsBelowTheFloor) {
  const Figure figure = figure_adaptive(kFew);
  EXPECT_TRUE(figure.ours);
  ASSERT_EQ(figure.panels.size(), 6U);
  EXPECT_EQ(figure.statements.size(), 6U);
  for (const Statement& stated : figure.statements) {
    EXPECT_TRUE(stated.agrees()) << stated.text << " " << stated.computed << " " << stated.why;
  }
  for (const Series& series : figure.series) {
    for (const Point& point : series.points) EXPECT_GE(point.theory, 0.999) << series.name << " " << point.x;
  }
}

TEST(Figures, AdaptiveBursts_LeaveOursToTheProtocol) {
  const Figure figure = figure_adaptive_bursts(kFew);
  ASSERT_EQ(figure.panels.size(), 4U);
  for (const Series& series : figure.series) {
    const bool ours = series.name.starts_with("adaptive");
    const auto simulated =
        std::count_if(series.points.begin(), series.points.end(), [](const Point& point) { return point.simulate; });
    EXPECT_EQ(simulated, ours ? 5 : 0) << series.name;
    for (const Point& point : series.points) EXPECT_EQ(std::isfinite(point.theory), !ours) << series.name;
  }
}

TEST(Figures, ConclusionsFromChecks_TakeTheLargestAndSayWhere) {
  for (const auto make : {figure_adaptive, figure_adaptive_bursts, figure_adaptive_estimate}) {
    Figure figure = make(kFew);
    SCOPED_TRACE(figure.id);
    const std::size_t before = figure.statements.size();
    Figure unchecked = figure;
    unchecked.conclude(unchecked);
    ASSERT_GT(unchecked.statements.size(), before);
    EXPECT_TRUE(std::isnan(unchecked.statements.back().computed));
    EXPECT_FALSE(unchecked.statements.back().agrees());
    EXPECT_EQ(to_string(unchecked.statements.back().computed, Unit::Number), "not measured");
    for (Series& series : figure.series) {
      for (Point& point : series.points) {
        if (point.simulate) point.simulated = {1.001, 0.0001, 10};
      }
    }
    Series& slow = *std::find_if(figure.series.begin(), figure.series.end(),
                                 [](const Series& series) { return series.name.starts_with("adaptive"); });
    slow.points[3].simulated = {7, 0.01, 10};
    figure.conclude(figure);
    const Statement& first = figure.statements[before];
    EXPECT_NEAR(first.computed, 7, 0.01) << first.text;
    EXPECT_FALSE(first.agrees());
    EXPECT_THAT(first.why, HasSubstr(figure.id == "adaptive-estimate" ? "1 times the true loss, 8 MiB" : "1 MiB, "));
    EXPECT_LT(figure.statements[before + 1].computed, figure.id == "adaptive-estimate" ? 7.1 : 1.1) << "another curve";
  }
}

TEST(ChooseFigures, OursGoByTheirNames) {
  const auto chosen = choose_figures({"adaptive"}).value();
  ASSERT_EQ(chosen.size(), 1U);
  EXPECT_EQ(chosen[0].id, "adaptive");
  EXPECT_EQ(choose_figures({"adaptive-estimate", "adaptive-bursts"}).value().front().id, "adaptive-bursts");
  EXPECT_FALSE(choose_figures({"adaptiv"}).ok());
  EXPECT_FALSE(choose_figures({"adaptive-"}).ok());
}

TEST(ChooseFigures, ANumberWithoutALetter_TakesInItsParts) {
  EXPECT_EQ(choose_figures({})->size(), figure_catalogue().size());
  const auto chosen = choose_figures({"10", "3a", "3a"}).value();
  ASSERT_EQ(chosen.size(), 5U);
  EXPECT_EQ(chosen[0].id, "3a") << "in the paper's order";
  EXPECT_EQ(chosen[4].id, "10d");
  for (const std::string id : {"1", "7", "10e", "", "3A", "a"}) {
    const auto refused = choose_figures({"3a", id});
    ASSERT_FALSE(refused.ok()) << id;
    EXPECT_EQ(refused.error().code, ErrorCode::InvalidArgument);
    EXPECT_THAT(refused.error().message, HasSubstr("no figure \"" + id + "\"; there are 3a, 3b"));
  }
}

// Two points of which one is too large to be checked.
std::vector<Figure> small_figure() {
  Figure figure;
  figure.id = "3a";
  figure.title = "a < b";
  figure.x = size_axis(128_KiB, 1_GiB);
  figure.y = slowdown_axis(false, 3);
  const std::vector<Place> places = {{131072, true, true}, {1073741824, true, false}};
  figure.series.push_back(series_of("one", kBlue, places, [](double size) {
    return slowdown_of(sr_rto().scheme, paper_path(1e-5), Bytes{static_cast<std::uint64_t>(size)});
  }));
  figure.series.push_back(figure.series[0]);
  figure.series[1].name = "two \"quoted\"";
  return {figure};
}

TEST(CheckFigures, ACellIsAskedForOnce_AndOnlyWhereWanted) {
  std::vector<Figure> figures = small_figure();
  std::atomic<int> drawn{0};
  std::atomic<int> simulated{0};
  const Check monte_carlo = [&](const Cell& cell, bool) -> Result<std::optional<Estimate>> {
    ++drawn;
    if (cell.size > 1_MiB) return std::optional<Estimate>();
    Estimate estimate;
    estimate.runs = 10;
    estimate.mean = 0.05;
    return std::optional(estimate);
  };
  const Check protocol = [&](const Cell&, bool) -> Result<std::optional<Estimate>> {
    ++simulated;
    return std::optional<Estimate>();
  };
  ASSERT_TRUE(check_figures(figures, monte_carlo, protocol, 3).ok());
  EXPECT_EQ(drawn, 2);
  EXPECT_EQ(simulated, 1);
  EXPECT_NEAR(figures[0].series[1].points[0].monte_carlo.value, 2, 0.001) << "0.05 s are two RTTs";
  EXPECT_TRUE(std::isnan(figures[0].series[0].points[1].monte_carlo.value));
  EXPECT_EQ(agreement_of(figures[0], &Point::monte_carlo).points, 2U);
  EXPECT_EQ(agreement_of(figures[0], &Point::simulated).points, 0U);
}

TEST(CheckFigures, APercentileThatIsTooDear_LeavesTheMean) {
  std::vector<Figure> figures = small_figure();
  figures[0].series[0].points[0].question->statistic = Statistic::P999;
  figures[0].series[1].points[0].question->of_percentile_runs = true;
  std::atomic<int> with_tail{0};
  const Check check = [&](const Cell&, bool tail) -> Result<std::optional<Estimate>> {
    if (tail) {
      ++with_tail;
      return std::optional<Estimate>();
    }
    Estimate estimate;
    estimate.mean = 0.05;
    return std::optional(estimate);
  };
  ASSERT_TRUE(check_figures(figures, check, check, 2).ok());
  EXPECT_EQ(with_tail, 2) << "once by either means";
  EXPECT_TRUE(std::isnan(figures[0].series[0].points[0].simulated.value));
  EXPECT_NEAR(figures[0].series[1].points[0].simulated.value, 2, 0.001);
}

TEST(CheckFigures, AnErrorOfACheck_IsTheResult) {
  std::vector<Figure> figures = small_figure();
  const Check fails = [](const Cell&, bool) -> Result<std::optional<Estimate>> {
    return Error{ErrorCode::Closed, "no"};
  };
  EXPECT_EQ(check_figures(figures, fails, fails, 2).error().message, "no");
}

TEST(Checks, MonteCarloAndTheProtocol_AgreeWithTheory) {
  const Question question = slowdown_of(sr_rto().scheme, paper_path(1e-3), 2_MiB);
  const double expected = theory(question);
  const auto drawn = monte_carlo_check(5000, 7)(question.cell, false).value();
  const auto simulated = protocol_check(400, 7)(question.cell, false).value();
  ASSERT_TRUE(drawn && simulated);
  const Answer by_drawing = answer(question, *drawn, {});
  const Answer by_protocol = answer(question, *simulated, {});
  EXPECT_NEAR(by_drawing.value / expected, 1, 5 * by_drawing.error + 0.001);
  EXPECT_NEAR(by_protocol.value / expected, 1, 5 * by_protocol.error + 0.02);
  EXPECT_FALSE(protocol_check(400, 7)({sr_rto().scheme, paper_path(1e-3), 64_GiB}, false).value().has_value());
  EXPECT_FALSE(monte_carlo_check(100, 7)(question.cell, true).value().has_value()) << "the slowest of 1000, of 100";
}

TEST(Checks, WhoBelievesInMoreLoss_SendsMoreParity) {
  Cell cell{adaptive().scheme, paper_path(1e-3), 1_MiB};
  const Check protocol = protocol_check(50, 7);
  const Estimate right = protocol(cell, false).value().value();
  cell.belief = 100;
  const Estimate wrong = protocol(cell, false).value().value();
  EXPECT_GT(right.parity, 0.001);
  EXPECT_GT(wrong.parity, 3 * right.parity);
  EXPECT_FALSE(monte_carlo_check(1000, 7)(cell, false).value().has_value()) << "the model knows the loss";
  const Question question{Statistic::Parity, cell, {}, Yardstick::Floor};
  EXPECT_EQ(answer(question, wrong, {}).value, wrong.parity);
  EXPECT_TRUE(std::isnan(theory(question)));
}

TEST(Writers, Panels_ShareATableAndAKey) {
  Figure figure = figure_adaptive_estimate(kFew);
  figure.series[0].points[0].simulated = {1.25, 0.01, 10};
  const std::string csv = to_csv(figure);
  EXPECT_THAT(csv, HasSubstr("\"panel\",\"believed loss / true loss\",\"adaptive, loss 1e-4: theory\""));
  EXPECT_THAT(csv, HasSubstr("\n\"8 MiB: mean slowdown\",0.01,,,1.25,0.0125,1"));
  EXPECT_THAT(csv, HasSubstr("\n\"128 MiB: parity\",100,,"));
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 1 + 4 * 7);
  const std::string script = to_gnuplot(figure);
  EXPECT_THAT(script, HasSubstr("set multiplot title \"A wrong estimate"));
  EXPECT_THAT(script, HasSubstr("strcol(1) eq \"8 MiB: mean slowdown\""));
  figure.conclude(figure);
  const std::string page = to_page({figure}, kFew);
  EXPECT_THAT(page, HasSubstr("we claim"));
  EXPECT_THAT(page, HasSubstr("not measured"));
  EXPECT_EQ(page.find("the paper states"), std::string::npos);
  EXPECT_EQ(page.find("nan"), std::string::npos);
}

TEST(Writers, TextsHoldEveryNumberAndNameEveryFile) {
  std::vector<Figure> figures = small_figure();
  figures[0].series[0].points[0].monte_carlo = {1.5, 0.01, 200};
  const std::string csv = to_csv(figures[0]);
  EXPECT_THAT(csv, HasSubstr("\"message size (bytes)\",\"one: theory\",\"one: Monte Carlo\""));
  EXPECT_THAT(csv, HasSubstr("\"two \"\"quoted\"\": theory\""));
  EXPECT_THAT(csv, HasSubstr("\n131072,1.0"));
  EXPECT_THAT(csv, HasSubstr(",1.5,,,"));
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 3);
  EXPECT_EQ(csv.find("nan"), std::string::npos);
  const std::string script = to_gnuplot(figures[0]);
  EXPECT_THAT(script, HasSubstr("\"figure-3a.csv\""));
  EXPECT_THAT(script, HasSubstr("set logscale x"));
  EXPECT_THAT(script, HasSubstr("pngcairo"));
  const std::string page = to_page(figures, kFew);
  EXPECT_THAT(page, HasSubstr("a &lt; b"));
  EXPECT_THAT(page, HasSubstr("figure-3a.svg"));
  EXPECT_THAT(page, HasSubstr("(200 runs)"));
}

}  // namespace
}  // namespace sdr::cli

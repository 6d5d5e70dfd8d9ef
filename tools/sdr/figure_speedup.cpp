// Figures 9 and 12: how many times faster EC(32, 8) is than SR RTO, over size and loss, distance and rate.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sdr/figure_catalogue.hpp"
#include "sdr/figure_parts.hpp"

namespace sdr::cli {
namespace {

constexpr double kPaperLoss = 1e-5;

// Mean speed-up where `in` holds, the least and the most.
struct Range {
  double least = 1e9;
  double most = 0;
};
template <typename In>
Range range_of(const Series& map, In in) {
  Range range;
  for (const Point& point : map.points) {
    if (!in(point.x, point.y)) continue;
    range.least = std::min(range.least, point.theory);
    range.most = std::max(range.most, point.theory);
  }
  return range;
}

}  // namespace

Figure figure_9(const FigureOptions&) {
  constexpr int kSizes = 25;   // 128 KiB to 2 TiB
  constexpr int kLosses = 15;  // 1e-8 to 1e-1, two a decade
  Figure figure;
  figure.id = "9";
  figure.title = "Mean speed-up of EC MDS (32, 8) over SR RTO (25 ms, 400 Gbit/s)";
  figure.caption = "Above 1 (orange) erasure coding is faster, below 1 (blue) selective repeat.";
  figure.shape = Shape::Map;
  figure.x = size_axis(kLeastSize, kMostSize);
  figure.y = loss_axis(1e-8, 1e-1);
  Series map{"EC MDS (32, 8) over SR RTO", kOrange, {}};
  for (int i = 0; i < kLosses; ++i) {
    const double loss = std::pow(10, -8 + i / 2.0);
    for (int j = 0; j < kSizes; ++j) {
      const Bytes size = kLeastSize * (std::uint64_t{1} << j);
      Point point;
      point.x = static_cast<double>(size.count);
      point.y = loss;
      const Question question = speedup_of(paper_path(loss), size);
      point.theory = theory(question);
      if (i % 2 == 0 && j % 2 == 0) point.question = question;
      point.simulate = size <= 32_MiB && j % 4 == 0 && i >= 8 && i % 2 == 0 && loss <= 1.1e-2;
      map.points.push_back(point);
    }
  }
  const Range inside = range_of(map, [](double size, double loss) {
    return size <= 1.01 * static_cast<double>((1_GiB).count) && loss >= 0.99e-6 && loss <= 1.01e-2;
  });
  figure.statements.push_back(
      {"EC wins from 128 KiB to 1 GiB and 1e-6 to 1e-2: least speed-up", "above 1", Unit::Number, 1, 1e9, inside.least,
       fmt::format(
           "In every cell; by almost nothing at 128 KiB and 1e-6, where hardly a Write loses anything, and by up "
           "to {:.1f}x.",
           inside.most)});
  const Range outside = range_of(
      map, [](double size, double loss) { return size > 1.01 * static_cast<double>((1_GiB).count) && loss < 0.99e-6; });
  figure.statements.push_back(
      {"SR wins above 1 GiB below 1e-6: largest speed-up of EC there", "below 1", Unit::Number, 0, 1, outside.most,
       "In every cell: from 2 GiB and 1e-8 to 3e-7. At 1e-6 itself SR is ahead from 8 GiB on."});
  figure.series.push_back(std::move(map));
  return figure;
}

Figure figure_12(const FigureOptions&) {
  struct Rate {
    double gigabits;
    const char* colour;
  };
  constexpr Rate kRates[] = {{100, kBlack}, {200, kSky}, {400, kGreen}, {800, kOrange}, {1600, kVermillion}};
  Figure figure;
  figure.id = "12";
  figure.title = "Mean speed-up of EC MDS (32, 8) over SR RTO, 128 MiB, over distance and rate (loss 1e-5)";
  figure.caption = "The longer the path is beside the message, the more a timeout weighs.";
  figure.x = distance_axis();
  figure.y = speedup_axis("mean speed-up of EC over SR RTO", 0.8, 2);
  double least_step = 1e9;
  for (const Rate& rate : kRates) {
    std::vector<Place> places = distance_places();
    if (rate.gigabits != 100 && rate.gigabits != 1600) {
      for (Place& place : places) place.simulate = false;
    }
    Series series = series_of(fmt::format("{:.0f} Gbit/s", rate.gigabits), rate.colour, places, [&](double kilometres) {
      model::PathSpec path = paper_path(kPaperLoss);
      path.rtt = model::rtt_over({kilometres}).value();
      path.rate = {rate.gigabits * 1e9};
      return speedup_of(path, kPaperMessage);
    });
    for (std::size_t i = 0; i < series.points.size(); ++i) {
      const double here = series.points[i].theory;
      if (i > 0) least_step = std::min(least_step, here / series.points[i - 1].theory);
      if (!figure.series.empty()) least_step = std::min(least_step, here / figure.series.back().points[i].theory);
    }
    figure.series.push_back(std::move(series));
  }
  figure.statements.push_back(
      {"EC gains as the bandwidth-delay product grows: the least that a step further or faster multiplies it by",
       "at least 1", Unit::Number, 1, 1e9, least_step,
       fmt::format("From {:.2f}x (75 km, 100 Gbit/s) to {:.2f}x (6000 km, 1600 Gbit/s), without a step back.",
                   figure.series.front().points.front().theory, figure.series.back().points.back().theory)});
  return figure;
}

}  // namespace sdr::cli

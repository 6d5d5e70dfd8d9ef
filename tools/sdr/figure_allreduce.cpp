// Figures 13a and 13b: ring Allreduce, the 99.9th percentile of SR RTO over that of EC(32, 8), by Monte Carlo: the
// rounds of a ring wait for one another, and that has no closed form.
#include <fmt/format.h>

#include <algorithm>

#include "model/allreduce.hpp"
#include "sdr/figure_catalogue.hpp"
#include "sdr/figure_parts.hpp"

namespace sdr::cli {
namespace {

struct Loss {
  double p;
  const char* name;
  const char* colour;
};
constexpr Loss kLosses[] = {{1e-5, "loss 1e-5", kBlue},
                            {1e-4, "loss 1e-4", kGreen},
                            {1e-3, "loss 1e-3", kOrange},
                            {1e-2, "loss 1e-2", kVermillion}};

double p999_of_ring(const Contender& who, double loss, std::uint32_t datacenters, Bytes buffer,
                    const FigureOptions& options) {
  const model::AllreduceSpec ring{model::Topology::Ring, datacenters, buffer, Duration(0)};
  const model::Allreduce allreduce = model::Allreduce::create(paper_path(loss), who.scheme, ring).value();
  const model::Samples drawn = allreduce.samples({options.samples, options.seed, options.threads}).value();
  return model::to_seconds(drawn.summary().p999);
}

Point speedup_of_ring(double x, double loss, std::uint32_t datacenters, Bytes buffer, const FigureOptions& options) {
  Point point;
  point.x = x;
  point.monte_carlo.value = p999_of_ring(sr_rto(), loss, datacenters, buffer, options) /
                            p999_of_ring(ec_mds(), loss, datacenters, buffer, options);
  point.monte_carlo.runs = static_cast<double>(options.samples);
  return point;
}

// What each loss comes to at one x.
std::vector<double> at(const Figure& figure, double x) {
  std::vector<double> values;
  for (const Series& series : figure.series) {
    for (const Point& point : series.points) {
      if (point.x == x) values.push_back(point.monte_carlo.value);
    }
  }
  return values;
}

}  // namespace

Figure figure_13a(const FigureOptions& options) {
  Figure figure;
  figure.id = "13a";
  figure.title = "Ring Allreduce of 128 MiB: 99.9th percentile speed-up of EC MDS (32, 8) over SR RTO";
  figure.caption =
      "2N - 2 rounds of 1/N of the buffer, each a reliable Write that waits for the one before. 25 ms, 400 "
      "Gbit/s. Monte Carlo: the percentile of a ring has no closed form.";
  figure.x = {"datacenters", Unit::Count, true, 2, 16};
  figure.y = speedup_axis("speed-up of EC over SR RTO, 99.9th percentile", 0, 10);
  for (const Loss& loss : kLosses) {
    Series series{loss.name, loss.colour, {}};
    for (const std::uint32_t datacenters : {2U, 4U, 8U, 16U}) {
      series.points.push_back(speedup_of_ring(datacenters, loss.p, datacenters, kPaperMessage, options));
    }
    figure.series.push_back(std::move(series));
  }
  const std::vector<double> of_four = at(figure, 4);
  double step = 1e9;
  for (std::size_t i = 1; i < of_four.size(); ++i) step = std::min(step, of_four[i] / of_four[i - 1]);
  const std::vector<double> of_most = at(figure, 16);
  figure.statements.push_back(
      {"4 datacenters: the least, at the lowest loss drawn (1e-5), is at least", "3x", Unit::Times, 3, 1e9,
       of_four.front(),
       fmt::format("Some of the 6 rounds of 4 datacenters wait a timeout. Rings of more datacenters gain less, because "
                   "their Writes are shorter: {:.1f}x with 16 at 1e-5.",
                   of_most.front())});
  figure.statements.push_back({"4 datacenters: the most, at the highest (1e-2), is more than", "6x", Unit::Times, 6,
                               1e9, of_four.back(), "Several rounds in a row wait two or three timeouts."});
  figure.statements.push_back(
      {"It grows with the loss: the least that a decade more multiplies it by", "above 1", Unit::Times, 1, 1e9, step,
       fmt::format("{:.1f}x, {:.1f}x, {:.1f}x, {:.1f}x.", of_four[0], of_four[1], of_four[2], of_four[3])});
  return figure;
}

Figure figure_13b(const FigureOptions& options) {
  Figure figure;
  figure.id = "13b";
  figure.title = "Ring Allreduce of 4 datacenters: 99.9th percentile speed-up of EC MDS (32, 8) over SR RTO";
  figure.caption = "As 13a, over the size of the buffer.";
  figure.x = size_axis(1_MiB, 4_GiB);
  figure.x.label = "buffer size (bytes)";
  figure.y = speedup_axis("speed-up of EC over SR RTO, 99.9th percentile", 0, 10);
  for (const Loss& loss : kLosses) {
    Series series{loss.name, loss.colour, {}};
    for (Bytes size = 1_MiB; size <= 4_GiB; size = size * 4) {
      series.points.push_back(speedup_of_ring(static_cast<double>(size.count), loss.p, 4, size, options));
    }
    figure.series.push_back(std::move(series));
  }
  double most = 0;
  for (const Series& series : figure.series) {
    for (const Point& point : series.points) most = std::max(most, point.monte_carlo.value);
  }
  figure.statements.push_back({"Over all sizes and losses it reaches more than", "6x", Unit::Times, 6, 1e9, most,
                               "At a loss of 1e-2 and sizes that do not hide a timeout."});
  return figure;
}

}  // namespace sdr::cli

#include "sdr/sim_flows_plot.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "sdr/report.hpp"
#include "sdr/svg.hpp"

namespace sdr::cli {
namespace {

using experiment::FlowResult;
using experiment::SharedResult;

constexpr int kWidth = 960;
constexpr double kLeft = 80;
constexpr double kRight = 930;
constexpr double kHead = 84;  // title and legend
constexpr double kGap = 34;
constexpr std::array kHeights = {240.0, 130.0, 180.0};
constexpr int kHeight = static_cast<int>(kHead + kHeights[0] + kHeights[1] + kHeights[2] + 2 * kGap + 50);
constexpr double kHeadroom = 1.08;
constexpr std::size_t kLegendLine = 5;

constexpr std::string_view kCapacity = "stroke=\"#999\" stroke-width=\"1.5\" stroke-dasharray=\"5 3\"";
constexpr std::string_view kQueue = "stroke=\"#333\" stroke-width=\"1.2\" stroke-linejoin=\"round\"";
constexpr std::string_view kDark = "stroke=\"#f0e0e0\" stroke-linecap=\"butt\"";
// Colours that are told apart with red-green blindness, too (Okabe and Ito, 2008).
constexpr std::array kColours = {"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000"};

double seconds(Duration time) {
  return milliseconds(time) / 1e3;
}

// 1, 2 or 5 times a power of ten, so that at most `most` of it fit.
double nice_step(double span, int most) {
  const double raw = span / most;
  const double power = std::pow(10, std::floor(std::log10(raw)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= raw) return factor * power;
  }
  return 10 * power;
}

std::string style_of(std::size_t flow) {
  // The colours again, in dashes.
  return fmt::format("stroke=\"{}\" stroke-width=\"1.6\" stroke-linejoin=\"round\"{}", kColours[flow % kColours.size()],
                     flow / kColours.size() % 2 == 1 ? " stroke-dasharray=\"6 2\"" : "");
}

struct Panel {
  double top = 0;
  double height = 0;
  double most = 1;

  [[nodiscard]] double y(double value) const { return top + height * (1 - std::clamp(value / most, 0.0, 1.0)); }
};

class Drawing {
 public:
  explicit Drawing(const SharedResult& result)
      : result_(result),
        span_(seconds(result.duration)),
        interval_(seconds(result.interval)),
        picture_(kWidth, kHeight) {
    double top = kHead;
    for (std::size_t i = 0; i < panels_.size(); ++i) {
      panels_[i] = {.top = top, .height = kHeights[i]};
      top += kHeights[i] + kGap;
    }
  }

  void draw(std::ostream& out) {
    collect();
    shade_outages();
    axes();
    capacity();
    for (std::size_t i = 0; i < result_.flows.size(); ++i) {
      curve(panels_[0], rates_[i], style_of(i));
      curve(panels_[2], rtts_[i], style_of(i));
    }
    curve(panels_[1], queue_, kQueue);
    legend();
    picture_.write(out);
  }

 private:
  [[nodiscard]] double x(double at) const { return kLeft + (kRight - kLeft) * at / span_; }

  // A value for each interval; none where there is nothing to show.
  void collect() {
    const double unknown = std::nan("");
    for (const FlowResult& flow : result_.flows) {
      std::vector<double> rates;
      std::vector<double> rtts;
      for (std::size_t n = 0; n < flow.series.wire_bytes.size(); ++n) {
        const double at = (static_cast<double>(n) + 0.5) * interval_;
        const bool there = at >= seconds(flow.start) - interval_ && at <= seconds(flow.stop) + interval_;
        rates.push_back(there ? flow.series.wire_bytes[n] * 8e-6 / interval_ : unknown);
        rtts.push_back(flow.series.rtt_sum_ms[n] / flow.series.packets[n]);
      }
      rates_.push_back(std::move(rates));
      rtts_.push_back(std::move(rtts));
    }
    for (Duration at{0}; at < result_.duration; at += result_.interval) {
      const Duration end = std::min(result_.duration, at + result_.interval);
      queue_.push_back(milliseconds(result_.mean_queue(at, end)));
      panels_[0].most = std::max(panels_[0].most, result_.rate_at(at).bits_per_second * 1e-6);
    }
    const auto raise = [](double& most, const std::vector<double>& values) {
      for (const double value : values) most = std::isfinite(value) ? std::max(most, value) : most;
    };
    panels_[1].most = panels_[2].most = 0.1;
    for (const auto& rates : rates_) raise(panels_[0].most, rates);
    for (const auto& rtts : rtts_) raise(panels_[2].most, rtts);
    raise(panels_[1].most, queue_);
    for (Panel& panel : panels_) panel.most *= kHeadroom;
    giga_ = panels_[0].most >= 2000;
  }

  void shade_outages() {
    for (const simulation::Outage& outage : result_.path.link.outages) {
      const double from = x(std::min(span_, seconds(outage.begin)));
      const double to = x(std::min(span_, seconds(outage.begin + outage.length)));
      if (from >= to) continue;
      for (const Panel& panel : panels_) {
        const double middle = (from + to) / 2;
        picture_.line({middle, panel.top}, {middle, panel.top + panel.height},
                      fmt::format("{} stroke-width=\"{:.1f}\"", kDark, to - from));
      }
    }
  }

  void axes() {
    const std::array titles = {std::string(giga_ ? "rate, Gbit/s" : "rate, Mbit/s"), std::string("queue, ms"),
                               std::string("RTT, ms")};
    const double step = nice_step(span_, 12);
    for (std::size_t i = 0; i < panels_.size(); ++i) {
      const Panel& panel = panels_[i];
      const double bottom = panel.top + panel.height;
      for (int n = 0; n * step <= span_ * (1 + 1e-9); ++n) {
        picture_.line({x(n * step), panel.top}, {x(n * step), bottom}, kGrid);
        if (i + 1 == panels_.size()) {
          picture_.text({x(n * step), bottom + 15}, fmt::format("{:g}", n * step), 12, Anchor::Middle);
        }
      }
      const double unit = nice_step(panel.most, panel.height > 150 ? 6 : 4);
      for (int n = 0; n * unit <= panel.most; ++n) {
        picture_.line({kLeft, panel.y(n * unit)}, {kRight, panel.y(n * unit)}, kGrid);
        const double shown = giga_ && i == 0 ? n * unit / 1000 : n * unit;
        picture_.text({kLeft - 8, panel.y(n * unit)}, fmt::format("{:g}", shown), 12, Anchor::End);
      }
      picture_.line({kLeft, panel.top}, {kLeft, bottom}, kInk);
      picture_.line({kLeft, bottom}, {kRight, bottom}, kInk);
      picture_.text({kLeft, panel.top - 11}, titles[i], 13);
    }
    picture_.text({(kLeft + kRight) / 2, panels_.back().top + panels_.back().height + 36}, "time, s", 13,
                  Anchor::Middle);
  }

  void capacity() {
    Strokes line(kRight);
    double from = 0;
    double rate = result_.path.link.rate.bits_per_second * 1e-6;
    const auto until = [&](double to, double next) {
      line.line({x(from), panels_[0].y(rate)}, {x(to), panels_[0].y(rate)});
      line.line({x(to), panels_[0].y(rate)}, {x(to), panels_[0].y(next)});
      from = to;
      rate = next;
    };
    for (const simulation::PathChange& change : result_.path.changes) {
      if (change.at < result_.duration) until(seconds(change.at), change.link.rate.bits_per_second * 1e-6);
    }
    until(span_, rate);
    picture_.strokes(line, kCapacity);
  }

  void curve(const Panel& panel, const std::vector<double>& values, std::string_view style) {
    Strokes strokes(kRight);
    for (std::size_t n = 1; n < values.size(); ++n) {
      if (!std::isfinite(values[n - 1]) || !std::isfinite(values[n])) continue;
      const double at = (static_cast<double>(n) - 0.5) * interval_;
      strokes.line({x(at), panel.y(values[n - 1])}, {x(at + interval_), panel.y(values[n])});
    }
    picture_.strokes(strokes, style);
  }

  void legend() {
    picture_.text(
        {kLeft, 18},
        fmt::format("{}; {}", simulation::to_string(result_.path.link), simulation::to_string(result_.path.queue)), 13);
    const double width = (kRight - kLeft) / kLegendLine;
    const std::size_t shown = std::min<std::size_t>(result_.flows.size(), 2 * kLegendLine);
    for (std::size_t i = 0; i < shown; ++i) {
      const double at = kLeft + width * static_cast<double>(i % kLegendLine);
      const std::size_t line = i / kLegendLine;
      const double y = 38 + 16 * static_cast<double>(line);
      picture_.line({at, y}, {at + 22, y}, style_of(i));
      picture_.text({at + 28, y}, result_.flows[i].name, 12);
    }
    if (shown < result_.flows.size()) {
      picture_.text({kRight, 70}, fmt::format("and {} more", result_.flows.size() - shown), 12, Anchor::End, kQuiet);
    }
  }

  const SharedResult& result_;
  double span_;
  double interval_;
  bool giga_ = false;
  std::array<Panel, 3> panels_;
  std::vector<std::vector<double>> rates_;
  std::vector<std::vector<double>> rtts_;
  std::vector<double> queue_;
  SvgPicture picture_;
};

}  // namespace

void draw_flows(const SharedResult& result, std::ostream& out) {
  Drawing(result).draw(out);
}

}  // namespace sdr::cli

// A figure's numbers: curves with a row an x and four columns a curve, panels with such rows for each, a map with a row
// a cell. What is not known is empty.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sdr/figure_writers.hpp"

namespace sdr::cli {
namespace {

std::string number(double value) {
  return std::isfinite(value) ? fmt::format("{:.7g}", value) : std::string();
}

// "loss probability of a packet" has no comma or quote, but a caller's text may.
std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + "\"";
}

std::string columns(const Point& point) {
  return fmt::format(",{},{},{},{}", number(point.theory), number(point.monte_carlo.value),
                     number(point.simulated.value), number(point.simulated.error * point.simulated.value));
}

std::string heads(const std::string& name) {
  return fmt::format(",{},{},{},{}", quoted(name + ": theory"), quoted(name + ": Monte Carlo"),
                     quoted(name + ": protocol, simulated"), quoted(name + ": its standard error"));
}

// A curve that is in several panels has the same columns in all.
std::string panels_csv(const Figure& figure) {
  std::string text = "\"panel\"," + quoted(figure.x.label);
  const std::vector<std::string> names = names_of(figure);
  for (const std::string& name : names) text += heads(name);
  text += "\n";
  for (std::size_t panel = 0; panel < figure.panels.size(); ++panel) {
    for (std::size_t row = 0; row < figure.series[0].points.size(); ++row) {
      text += quoted(figure.panels[panel].title) + "," + number(figure.series[0].points[row].x);
      for (const std::string& name : names) {
        const auto found = std::find_if(figure.series.begin(), figure.series.end(),
                                        [&](const Series& s) { return s.panel == panel && s.name == name; });
        text += columns(found == figure.series.end() ? Point() : found->points[row]);
      }
      text += "\n";
    }
  }
  return text;
}

}  // namespace

std::vector<std::string> names_of(const Figure& figure) {
  std::vector<std::string> names;
  for (const Series& series : figure.series) {
    if (series.panel == 0) names.push_back(series.name);
  }
  return names;
}

std::string to_csv(const Figure& figure) {
  if (figure.shape == Shape::Panels) return panels_csv(figure);
  const bool map = figure.shape == Shape::Map;
  std::string text = quoted(figure.x.label) + (map ? "," + quoted(figure.y.label) : "");
  for (const Series& series : figure.series) text += heads(series.name);
  text += "\n";
  if (map) {
    for (const Point& point : figure.series[0].points) {
      text += fmt::format("{},{}{}\n", number(point.x), number(point.y), columns(point));
    }
    return text;
  }
  // All curves of a figure have the same x.
  for (std::size_t row = 0; row < figure.series[0].points.size(); ++row) {
    text += number(figure.series[0].points[row].x);
    for (const Series& series : figure.series) text += columns(series.points[row]);
    text += "\n";
  }
  return text;
}

}  // namespace sdr::cli

// A figure's picture, as a gnuplot script that draws it from its CSV, as PNG and SVG: theory as lines, Monte Carlo as
// rings, the simulated protocol as filled diamonds, in the curve's colour. Line styles tell curves apart in grey; in
// panels they tell a mean from a percentile, and the rings are left out.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "sdr/figure_writers.hpp"

namespace sdr::cli {
namespace {

// Columns of a curve in the CSV, counted from its first.
enum Column { kTheory = 0, kMonteCarlo = 1, kSimulated = 2, kColumns = 4 };

constexpr const char* kFrame =
    "set datafile separator \",\"\n"
    "set border 3 lc rgb \"#404040\"\n"
    "set tics nomirror\n"
    "set grid lc rgb \"#DDDDDD\" lt 1 lw 0.8\n";

std::string size_tics(double low, double high) {
  std::string tics;
  bool labelled = true;
  int step = 0;
  for (double size = low; size <= high * 1.001; size *= 2, ++step) {
    labelled = step % 4 == 0;
    tics += fmt::format("{}\"{}\" {:.0f} {}", tics.empty() ? "" : ", ", labelled ? to_string(size, Unit::Size) : "",
                        size, labelled ? 0 : 1);
  }
  return tics;
}

std::string tic_list(std::initializer_list<double> places, const Axis& axis) {
  std::string tics;
  for (const double place : places) {
    if (place < axis.low * 0.999 || place > axis.high * 1.001) continue;
    tics += fmt::format("{}{:g}", tics.empty() ? "" : ", ", place);
  }
  return tics;
}

// `name` is x or y. `margin` widens the range by a factor on either side: half a cell of a map, room for a marker.
std::string axis_commands(const char* name, const Axis& axis, double margin) {
  std::string text = fmt::format("set {}label \"{}\"\n", name, axis.label);
  const double low = axis.logarithmic ? axis.low / margin : axis.low;
  const double high = axis.logarithmic ? axis.high * margin : axis.high;
  text += fmt::format("set {}range [{:.9g}:{:.9g}]\n", name, low, high);
  if (!axis.logarithmic) return text;
  text += fmt::format("set logscale {}\n", name);
  switch (axis.unit) {
    case Unit::Size:
      text += fmt::format("set {}tics ({})\n", name, size_tics(axis.low, axis.high));
      break;
    case Unit::Kilometres:
      text += fmt::format("set {}tics ({})\n", name, tic_list({75, 150, 300, 600, 1200, 2400, 6000}, axis));
      break;
    case Unit::Probability:
      text += fmt::format("set format {} \"10^{{%L}}\"\nset {}tics 10\n", name, name);
      break;
    case Unit::Count:
      text += fmt::format("set {}tics ({})\n", name, tic_list({2, 4, 8, 16, 32}, axis));
      break;
    case Unit::Factor:
      text += fmt::format("set {}tics ({})\n", name, tic_list({0.01, 0.1, 0.5, 1, 2, 10, 100}, axis));
      break;
    case Unit::Number:
    case Unit::Times:
      text += fmt::format("set {}tics ({})\n", name, tic_list({1, 1.5, 2, 3, 4, 6, 8, 10, 16, 20, 32}, axis));
      break;
  }
  return text;
}

bool has(const Figure& figure, double Answer::*value, Answer Point::*check) {
  for (const Series& series : figure.series) {
    for (const Point& point : series.points) {
      if (std::isfinite(point.*check.*value)) return true;
    }
  }
  return false;
}

bool has_theory(const Figure& figure) {
  return std::any_of(figure.series.begin(), figure.series.end(), [](const Series& series) {
    return std::any_of(series.points.begin(), series.points.end(),
                       [](const Point& point) { return std::isfinite(point.theory); });
  });
}

std::string curves(const Figure& figure) {
  constexpr std::array kDashes = {"1", "(18,6)", "(6,5)", "(18,5,4,5)", "(10,4)", "(3,4)"};
  const std::string file = file_stem(figure) + ".csv";
  const bool theory = has_theory(figure);
  std::string plots;
  const auto add = [&](const std::string& plot) { plots += (plots.empty() ? "" : ", \\\n    ") + plot; };
  std::size_t column = 2;
  for (std::size_t i = 0; i < figure.series.size(); ++i, column += kColumns) {
    const Series& series = figure.series[i];
    const char* dash = kDashes[i % kDashes.size()];
    if (theory) {
      add(fmt::format("\"{}\" using 1:{} with lines lw 2.5 dt {} lc rgb \"{}\" title \"{}\"", file, column + kTheory,
                      dash, series.colour, series.name));
      add(fmt::format("\"{}\" using 1:{} with points pt 6 ps 1.2 lw 1.6 lc rgb \"{}\" notitle", file,
                      column + kMonteCarlo, series.colour));
      add(fmt::format("\"{}\" using 1:{} with points pt 13 ps 1.9 lc rgb \"{}\" notitle", file, column + kSimulated,
                      series.colour));
    } else {
      add(fmt::format("\"{}\" using 1:{} with linespoints pt 6 ps 1.3 lw 2.2 dt {} lc rgb \"{}\" title \"{}\"", file,
                      column + kMonteCarlo, dash, series.colour, series.name));
    }
  }
  if (theory) add("keyentry with lines lw 2.5 lc rgb \"#606060\" title \"lines: theory\"");
  if (has(figure, &Answer::value, &Point::monte_carlo)) {
    add("keyentry with points pt 6 ps 1.2 lw 1.6 lc rgb \"#606060\" title \"Monte Carlo\"");
  }
  if (has(figure, &Answer::value, &Point::simulated)) {
    add("keyentry with points pt 13 ps 1.9 lc rgb \"#606060\" title \"protocol, simulated\"");
  }
  const bool at_one = figure.y.unit == Unit::Times || figure.y.label.starts_with("slowdown");
  if (at_one) add("1 with lines lw 1 dt (3,5) lc rgb \"#808080\" notitle");
  return plots;
}

std::string map_commands(const Figure& figure) {
  double least = 0.8;
  double most = 2;
  for (const Point& point : figure.series[0].points) {
    least = std::min(least, point.theory);
    most = std::max(most, point.theory);
  }
  std::string text = fmt::format(
      "set palette defined ({:.5f} \"#0072B2\", 0 \"#FFFFFF\", {:.5f} \"#F2C38B\", {:.5f} \"#D55E00\")\n"
      "set cbrange [{:.5f}:{:.5f}]\nset cblabel \"{}\" offset 1\nset cbtics (",
      std::log(least), std::log(most) / 2, std::log(most), std::log(least), std::log(most), "mean speed-up");
  std::string tics;
  for (const double tic : {0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 10.0}) {
    if (tic < least * 0.999 || tic > most) continue;
    tics += fmt::format("{}\"{:g}x\" {:.5f}", tics.empty() ? "" : ", ", tic, std::log(tic));
  }
  return text + tics + ")\nunset grid\nunset key\nset tics out\n";
}

std::string map(const Figure& figure) {
  const std::string file = file_stem(figure) + ".csv";
  // Sizes a factor of 2 apart, losses of 10^0.5.
  const auto numbers = [&](const char* where, const char* colour) {
    return fmt::format(
        "\"{}\" using 1:({} ? $2 : NaN):($3 < 0.995 ? sprintf(\"%.2f\", $3) : sprintf(\"%.1f\", $3)) with labels "
        "font \",\".small tc rgb \"{}\"",
        file, where, colour);
  };
  return fmt::format(
      "\"{}\" using 1:2:($1/sqrt(2)):($1*sqrt(2)):($2/10**0.25):($2*10**0.25):(log($3)) with boxxyerror fill solid 1 "
      "noborder lc palette, \\\n    {}, \\\n    {}",
      file, numbers("$3 < 0.86", "#FFFFFF"), numbers("$3 >= 0.86", "#000000"));
}

bool has(const Series& series, double (*value)(const Point&)) {
  return std::any_of(series.points.begin(), series.points.end(),
                     [&](const Point& point) { return std::isfinite(value(point)); });
}

std::string look_of(const Series& series) {
  return fmt::format("lw 2.2 dt {} lc rgb \"{}\"", series.dashed ? "(9,6)" : "1", series.colour);
}

// Where there is no theory the protocol has the line.
bool has_line_of_theory(const Series& series) {
  return has(series, [](const Point& point) { return point.theory; });
}

std::string marker_of(const Series& series) {
  return fmt::format("pt {} ps 1.2", series.dashed ? 12 : 13);
}

// The curves of one panel, out of the rows that bear its title.
std::string panel_curves(const Figure& figure, std::size_t panel) {
  const std::vector<std::string> names = names_of(figure);
  const std::string rows =
      fmt::format("\"{}.csv\" using (strcol(1) eq \"{}\" ? $2 : NaN)", file_stem(figure), figure.panels[panel].title);
  std::string plots = "1 with lines lw 1 dt (3,5) lc rgb \"#808080\"";
  for (const Series& series : figure.series) {
    if (series.panel != panel) continue;
    const auto place = static_cast<std::size_t>(std::find(names.begin(), names.end(), series.name) - names.begin());
    const std::size_t column = 3 + kColumns * place;
    const bool theory = has_line_of_theory(series);
    if (theory) plots += fmt::format(", \\\n    {}:{} with lines {}", rows, column + kTheory, look_of(series));
    if (!has(series, [](const Point& point) { return point.simulated.value; })) continue;
    plots += theory ? fmt::format(", \\\n    {}:{} with points {} lw 1.4 lc rgb \"{}\"", rows, column + kSimulated,
                                  marker_of(series), series.colour)
                    : fmt::format(", \\\n    {}:{} with linespoints {} {}", rows, column + kSimulated,
                                  marker_of(series), look_of(series));
  }
  return plots;
}

// One key for all panels, as a plot of its own below them.
std::string panels_key(const Figure& figure) {
  std::string text =
      "  set lmargin at screen 0.03; set rmargin at screen 0.99; set bmargin at screen 0.005; set tmargin at screen "
      "0.115\n"
      "  unset border; unset tics; unset title; unset grid; unset xlabel; unset ylabel; unset logscale\n"
      "  set xrange [0:1]; set yrange [0:1]\n"
      "  set key inside center center horizontal maxcols 4 Left reverse samplen 2.6 spacing 1.3 width 1\n"
      "  plot 2 notitle";
  for (const Series& series : figure.series) {
    if (series.panel != 0) continue;
    const bool theory = has_line_of_theory(series);
    text += fmt::format(", \\\n    keyentry with {} {} {} title \"{}\"", theory ? "lines" : "linespoints",
                        theory ? "" : marker_of(series), look_of(series), series.name);
  }
  if (has(figure, &Answer::value, &Point::simulated)) {
    text += ", \\\n    keyentry with points pt 13 ps 1.2 lc rgb \"#606060\" title \"diamonds: protocol, simulated\"";
  }
  return text + "\n";
}

std::string panels(const Figure& figure) {
  constexpr double kLeft = 0.07, kRight = 0.985, kTop = 0.90, kBottom = 0.21, kBetween = 0.055, kAbove = 0.10;
  const std::size_t columns = figure.panels.size() == 4 ? 2 : 3;
  const std::size_t rows = (figure.panels.size() + columns - 1) / columns;
  const double width = (kRight - kLeft + kBetween) / static_cast<double>(columns);
  const double height = (kTop - kBottom + kAbove) / static_cast<double>(rows);
  // Afresh for each format: the key's plot ends with borders and tics unset.
  std::string text = fmt::format("  reset\n{}  set multiplot title \"{}\"\n  unset key\n", kFrame, figure.title);
  for (std::size_t n = 0; n < figure.panels.size(); ++n) {
    const Panel& panel = figure.panels[n];
    const std::size_t row = n / columns;
    const double left = kLeft + width * static_cast<double>(n % columns);
    const double top = kTop - height * static_cast<double>(row);
    Axis x = figure.x;
    Axis y = panel.y;
    if (n + columns < figure.panels.size()) x.label.clear();
    if (n % columns != 0) y.label.clear();
    text += fmt::format(
        "  set lmargin at screen {:.4f}; set rmargin at screen {:.4f}; set tmargin at screen {:.4f}; set bmargin at "
        "screen {:.4f}\n  set title \"{}\" offset 0,-0.6\n",
        left, left + width - kBetween, top, top - height + kAbove, panel.title);
    text += axis_commands("x", x, 1.15) + axis_commands("y", y, 1);
    text += fmt::format("  plot {}\n", panel_curves(figure, n));
  }
  return text + panels_key(figure) + "  unset multiplot\n";
}

}  // namespace

std::string file_stem(const Figure& figure) {
  return "figure-" + figure.id;
}

std::string to_gnuplot(const Figure& figure) {
  const bool is_map = figure.shape == Shape::Map;
  std::string text = fmt::format(
      "# Figure {}: run `gnuplot {}.gp` beside {}.csv to draw it again.\n{}"
      "set key outside right top Left reverse samplen 2.4 spacing 1.25\n"
      "set title \"{}\"\n",
      figure.id, file_stem(figure), file_stem(figure), kFrame, figure.title);
  const bool has_panels = figure.shape == Shape::Panels;
  if (!has_panels) text += axis_commands("x", figure.x, is_map ? std::sqrt(2.0) : 1.15);
  if (!has_panels) text += axis_commands("y", figure.y, is_map ? std::pow(10, 0.25) : 1);
  if (is_map) text += map_commands(figure);
  text += fmt::format(
      "do for [format in \"png svg\"] {{\n"
      "  if (format eq \"png\") {{\n"
      "    set terminal pngcairo size 1650,{} enhanced font \"sans,{}\" linewidth 1.4 background \"white\"\n"
      "    small = \"13\"\n"
      "  }} else {{\n"
      "    set terminal svg size 1100,{} dynamic enhanced font \"sans,{}\" background \"white\"\n"
      "    small = \"9\"\n"
      "  }}\n"
      "  set output \"{}.\".format\n"
      "{}"
      "  set output\n"
      "}}\n",
      has_panels ? 1200 : 900, has_panels ? 16 : 19, has_panels ? 800 : 600, has_panels ? 11 : 13, file_stem(figure),
      has_panels ? panels(figure) : fmt::format("  plot {}\n", is_map ? map(figure) : curves(figure)));
  return text;
}

}  // namespace sdr::cli

// Figure: what a figure shows, as data: curves, panels of curves or a map, and what the paper states about it (or, of
// our own, what we claim) beside what we compute.
//
// Made by the functions of figure_catalogue.hpp, checked by figure_checks.hpp, written by figure_writers.hpp. Nothing
// here or in the making of it touches a file. Plain values; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sdr/figure_cell.hpp"

namespace sdr::cli {

enum class Unit : std::uint8_t {
  Number,
  Times,        // "6.5x"
  Size,         // bytes
  Probability,  // "1e-3"
  Kilometres,
  Count,   // powers of 2
  Factor,  // "0.01"
};

struct Axis {
  std::string label;  // with the unit
  Unit unit = Unit::Number;
  bool logarithmic = false;
  double low = 0;
  double high = 1;
};

struct Point {
  double x = 0;
  double y = 0;                      // of a map; curves have no use for it
  double theory = kUnknown;          // by the closed form
  std::optional<Question> question;  // where checks are wanted
  bool simulate = false;             // by the protocol too
  Answer monte_carlo;
  Answer simulated;
};

struct Series {
  std::string name;
  std::string colour;  // "#RRGGBB"
  std::vector<Point> points;
  std::size_t panel = 0;  // where there are panels; a name is that of one series in each
  bool dashed = false;    // there
};

// Curves beside others; the first panel has all the names that there are.
struct Panel {
  std::string title;
  Axis y;
};

// A number that is stated, or bounds for it, and the one computed; that one is unknown where too little was run.
struct Statement {
  std::string text;    // what is said
  std::string stated;  // the paper's number as it is said
  Unit unit = Unit::Number;
  double low = 0;   // ours agrees from here
  double high = 0;  // to here
  double computed = kUnknown;
  std::string why;

  [[nodiscard]] bool agrees() const { return computed >= low && computed <= high; }
};

enum class Shape : std::uint8_t { Curves, Map, Panels };

struct Figure {
  std::string id;  // "3a"
  std::string title;
  std::string caption;
  Shape shape = Shape::Curves;
  Axis x;
  Axis y;
  std::vector<Series> series;  // a map has one
  std::vector<Statement> statements;
  std::vector<Panel> panels;            // of Shape::Panels, which has no use for y
  bool ours = false;                    // beyond the paper
  void (*conclude)(Figure&) = nullptr;  // adds the statements that rest on the checks' answers
};

// "6.23x", "12.4 GiB", "1.0e-3", "2500 km".
std::string to_string(double value, Unit unit);

}  // namespace sdr::cli

// SvgPicture: a picture of lines, marks and words, written as SVG.
//
// Plain SVG 1.1 without clipping or style sheets, which not every viewer does right.
//
// Marks and lines of one look are gathered in a Strokes and become one path. Coordinates are rounded to half a pixel
// and what was drawn before is not drawn again, so that a picture's size is bounded by its pixels, not by what it
// shows.
//
// Threads: one a picture.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <string_view>
#include <unordered_set>

namespace sdr::cli {

struct Point {
  double x = 0;
  double y = 0;
};

class Strokes {
 public:
  // Nothing is drawn beyond x = `right`.
  explicit Strokes(double right = 1e9) : right_(right) {}

  void line(Point from, Point to);
  void dot(Point at) { line(at, at); }  // shows with round ends
  void cross(Point at, double reach);
  [[nodiscard]] bool empty() const { return path_.empty(); }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  double right_;
  std::string path_;
  std::unordered_set<std::uint64_t> drawn_;
};

// Styles of what all plots have: axes and frames, the grid behind them, words that step back.
inline constexpr std::string_view kInk = "stroke=\"#222\" stroke-width=\"1\"";
inline constexpr std::string_view kGrid = "stroke=\"#e4e4e4\" stroke-width=\"1\"";
inline constexpr std::string_view kQuiet = "fill=\"#555\"";

enum class Anchor { Start, Middle, End };

class SvgPicture {
 public:
  SvgPicture(int width, int height);

  // `style` is of SVG's presentation attributes: "stroke=\"#000\" stroke-width=\"1\"".
  void strokes(const Strokes& strokes, std::string_view style);
  void line(Point from, Point to, std::string_view style);
  // `size` in pixels; the point is at the middle of the text's height.
  void text(Point at, std::string_view words, int size, Anchor anchor = Anchor::Start, std::string_view style = "");

  void write(std::ostream& out) const;

 private:
  std::string head_;
  std::string body_;
};

}  // namespace sdr::cli

#include "sdr/svg.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <ostream>
#include <utility>

namespace sdr::cli {
namespace {

// In half pixels, within what 16 bits hold.
std::int64_t half_pixels(double at) {
  return static_cast<std::int64_t>(std::clamp(std::round(at * 2), -30000.0, 30000.0));
}

std::string pixels(std::int64_t halves) {
  return halves % 2 == 0 ? fmt::format("{}", halves / 2) : fmt::format("{:.1f}", static_cast<double>(halves) / 2);
}

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else if (static_cast<unsigned char>(c) >= 0x20) {
      out += c;
    }
  }
  return out;
}

constexpr std::string_view name_of(Anchor anchor) {
  return anchor == Anchor::Start ? "start" : anchor == Anchor::Middle ? "middle" : "end";
}

}  // namespace

void Strokes::line(Point from, Point to) {
  if (from.x > to.x) std::swap(from, to);
  if (from.x > right_) return;
  if (to.x > right_) to = {right_, from.y + (to.y - from.y) * (right_ - from.x) / (to.x - from.x)};
  const std::int64_t ends[] = {half_pixels(from.x), half_pixels(from.y), half_pixels(to.x), half_pixels(to.y)};
  std::uint64_t key = 0;
  for (const std::int64_t end : ends) key = key << 16 | static_cast<std::uint16_t>(end);
  if (!drawn_.insert(key).second) return;
  path_ += fmt::format("M{} {}l{} {}", pixels(ends[0]), pixels(ends[1]), pixels(ends[2] - ends[0]),
                       pixels(ends[3] - ends[1]));
}

void Strokes::cross(Point at, double reach) {
  line({at.x - reach, at.y - reach}, {at.x + reach, at.y + reach});
  line({at.x - reach, at.y + reach}, {at.x + reach, at.y - reach});
}

SvgPicture::SvgPicture(int width, int height)
    : head_(fmt::format("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} "
                        "{1}\" font-family=\"sans-serif\">\n<rect width=\"{0}\" height=\"{1}\" fill=\"#fff\"/>\n",
                        width, height)) {}

void SvgPicture::strokes(const Strokes& strokes, std::string_view style) {
  if (strokes.empty()) return;
  body_ += fmt::format("<path fill=\"none\" {} d=\"{}\"/>\n", style, strokes.path());
}

void SvgPicture::line(Point from, Point to, std::string_view style) {
  Strokes one;
  one.line(from, to);
  strokes(one, style);
}

void SvgPicture::text(Point at, std::string_view words, int size, Anchor anchor, std::string_view style) {
  body_ += fmt::format("<text x=\"{}\" y=\"{}\" font-size=\"{}\" text-anchor=\"{}\" {}>{}</text>\n",
                       pixels(half_pixels(at.x)), pixels(half_pixels(at.y + 0.35 * size)), size, name_of(anchor), style,
                       escaped(words));
}

void SvgPicture::write(std::ostream& out) const {
  out << head_ << body_ << "</svg>\n";
}

}  // namespace sdr::cli

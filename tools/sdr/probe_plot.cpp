#include "sdr/probe_plot.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "sdr/svg.hpp"

namespace sdr::cli {
namespace {

constexpr int kHeight = 500;
constexpr double kTop = 70;
constexpr double kBottom = 425;  // of the axis, where the least decade ends
constexpr double kFloor = 446;   // what lost nothing
constexpr double kLeft = 80;
constexpr double kRight = 30;
constexpr double kColumn = 120;
constexpr double kBox = 22;  // half a box's width
constexpr double kTitleWidth = 620;

constexpr std::string_view kMinorGrid = "stroke=\"#f1f1f1\" stroke-width=\"1\"";
constexpr std::string_view kWhisker = "stroke=\"#2a6496\" stroke-width=\"1.5\"";
constexpr std::string_view kBody = "stroke=\"#c9def0\" stroke-linecap=\"butt\"";
constexpr std::string_view kMedian = "stroke=\"#16385a\" stroke-width=\"3\"";
constexpr std::string_view kAll = "stroke=\"#c0392b\" stroke-width=\"2\"";
constexpr std::string_view kFloorLine = "stroke=\"#888\" stroke-width=\"1\" stroke-dasharray=\"4 3\"";

// Decades from `low` to `high`, as powers of ten; what is zero is on the floor.
struct Axis {
  int low = -1;
  int high = 0;

  [[nodiscard]] double y(double loss) const {
    if (loss <= 0) return kFloor;
    const double up = (std::log10(loss) - low) / (high - low);
    return kBottom - std::clamp(up, 0.0, 1.0) * (kBottom - kTop);
  }
};

// All that is to be shown, and a decade at least. Without any loss, the decade in which one packet of a sample is.
Axis axis_of(std::span<const ProbeStatistics> payloads) {
  double least = 1;
  double greatest = 0;
  for (const ProbeStatistics& payload : payloads) {
    const FiveNumbers five = payload.flow_losses();
    for (const double loss : {five.min, five.p25, five.p50, five.p75, five.max, payload.loss()}) {
      if (loss <= 0) continue;
      least = std::min(least, loss);
      greatest = std::max(greatest, loss);
    }
    if (greatest == 0 && payload.packets_of_sample() > 0) {
      least = std::min(least, 1 / static_cast<double>(payload.packets_of_sample()));
    }
  }
  Axis axis;
  axis.low = static_cast<int>(std::floor(std::log10(least) + 1e-9));
  axis.high = static_cast<int>(std::ceil(std::log10(std::max(greatest, least)) - 1e-9));
  if (axis.low >= axis.high) (axis.high < 0 ? axis.high = axis.low + 1 : axis.low = axis.high - 1);
  return axis;
}

std::string size_text(std::uint32_t bytes) {
  return bytes % 1024 == 0 ? fmt::format("{} KiB", bytes / 1024) : fmt::format("{} B", bytes);
}

void draw_axis(SvgPicture& picture, const Axis& axis, double right) {
  for (int power = axis.low; power <= axis.high; ++power) {
    const double y = axis.y(std::pow(10.0, power));
    picture.line({kLeft, y}, {right, y}, kGrid);
    picture.text({kLeft - 8, y}, power == 0 ? "1" : fmt::format("1e{}", power), 13, Anchor::End);
    for (int digit = 2; digit < 10 && power < axis.high; ++digit) {
      const double between = axis.y(digit * std::pow(10.0, power));
      picture.line({kLeft, between}, {right, between}, kMinorGrid);
    }
  }
  picture.line({kLeft, kTop}, {kLeft, kBottom}, kInk);
  picture.line({kLeft, kFloor}, {right, kFloor}, kFloorLine);
  picture.text({kLeft - 8, kFloor}, "none lost", 12, Anchor::End, kQuiet);
}

void draw_box(SvgPicture& picture, const Axis& axis, const ProbeStatistics& payload, double x) {
  const FiveNumbers five = payload.flow_losses();
  const double low = axis.y(five.p25);
  const double high = axis.y(five.p75);
  picture.line({x, axis.y(five.min)}, {x, low}, kWhisker);
  picture.line({x, high}, {x, axis.y(five.max)}, kWhisker);
  for (const double end : {five.min, five.max}) {
    picture.line({x - kBox / 2, axis.y(end)}, {x + kBox / 2, axis.y(end)}, kWhisker);
  }
  // The body is one thick stroke; a box of no height is its median alone.
  if (low > high) {
    picture.line({x, high}, {x, low}, fmt::format("{} stroke-width=\"{}\"", kBody, 2 * kBox));
    Strokes frame;
    frame.line({x - kBox, high}, {x + kBox, high});
    frame.line({x - kBox, low}, {x + kBox, low});
    frame.line({x - kBox, high}, {x - kBox, low});
    frame.line({x + kBox, high}, {x + kBox, low});
    picture.strokes(frame, kWhisker);
  }
  picture.line({x - kBox, axis.y(five.p50)}, {x + kBox, axis.y(five.p50)}, kMedian);
  Strokes all;
  all.cross({x, axis.y(payload.loss())}, 5);
  picture.strokes(all, kAll);
  picture.text({x, kFloor + 14}, fmt::format("{} of {}", payload.samples_without_loss(), payload.samples()), 11,
               Anchor::Middle, kQuiet);
  picture.text({x, kFloor + 31}, size_text(payload.payload()), 14, Anchor::Middle);
}

}  // namespace

void draw_losses(std::span<const ProbeStatistics> payloads, std::string_view subtitle, std::ostream& out) {
  const double columns = kColumn * static_cast<double>(std::max<std::size_t>(payloads.size(), 1));
  const double right = std::max(kLeft + columns, kTitleWidth);
  const double step = (right - kLeft) / static_cast<double>(std::max<std::size_t>(payloads.size(), 1));
  SvgPicture picture(static_cast<int>(right + kRight), kHeight);
  picture.text({kLeft, 20}, "Share of packets lost on the path, by payload size", 16);
  picture.text({kLeft, 39}, subtitle, 12, Anchor::Start, kQuiet);
  picture.text({kLeft, 54},
               "Each flow in each trial: box p25 to p75, line p50, whiskers min and max. Red cross: all packets.", 12,
               Anchor::Start, kQuiet);
  const Axis axis = axis_of(payloads);
  draw_axis(picture, axis, right);
  for (std::size_t i = 0; i < payloads.size(); ++i) {
    draw_box(picture, axis, payloads[i], kLeft + step * (static_cast<double>(i) + 0.5));
  }
  picture.write(out);
}

}  // namespace sdr::cli

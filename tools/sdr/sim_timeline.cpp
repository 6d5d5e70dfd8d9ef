#include "sdr/sim_timeline.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <ostream>
#include <string>

#include "sdr/report.hpp"
#include "sdr/svg.hpp"

namespace sdr::cli {
namespace {

using experiment::Cargo;
using experiment::Passage;
using experiment::Timeline;
using experiment::WriteTrial;

constexpr int kWidth = 1290;
constexpr int kHeight = 800;
constexpr double kLeft = 90;
constexpr double kRight = 1040;
constexpr double kSender = 80;  // the line of the sender
constexpr double kReceiver = 330;
constexpr double kTop = 390;  // of the places in the Write
constexpr double kBottom = 670;
constexpr double kParityTop = 685;
constexpr double kParityBottom = 725;
constexpr double kLostAfter = 0.4;  // of the way
constexpr int kTicks = 10;
constexpr int kLegendStep = 22;
constexpr std::size_t kLongestLink = 150;  // of its text

constexpr std::string_view kThin = "stroke=\"#bbb\" stroke-width=\"1\"";
constexpr std::string_view kAxis = "stroke=\"#333\" stroke-width=\"1.5\"";

// Colours after Okabe and Ito, which the colour-blind tell apart.
struct Look {
  const char* name;
  const char* style;
};
constexpr Look kData{"data", R"(stroke="#56B4E9" stroke-width="1" stroke-opacity="0.7")"};
constexpr Look kArrival{"data arriving", R"(stroke="#999" stroke-width="1" stroke-opacity="0.6")"};
constexpr Look kParity{"parity", R"(stroke="#009E73" stroke-width="1" stroke-opacity="0.7")"};
constexpr Look kRepair{"repairs", R"(stroke="#CC79A7" stroke-width="1.5" stroke-linecap="round")"};
constexpr Look kRepairDot{"repairs", R"(stroke="#CC79A7" stroke-width="4" stroke-linecap="round")"};
constexpr Look kLoss{"lost", R"(stroke="#D55E00" stroke-width="1.5")"};
constexpr Look kOffer{"offers", R"(stroke="#E69F00" stroke-width="1")"};
constexpr Look kReport{"reports", R"(stroke="#777" stroke-width="1")"};
constexpr Look kNack{"reports that name gaps", R"(stroke="#000" stroke-width="1.2")"};
constexpr Look kDone{"reports of completion", R"(stroke="#0072B2" stroke-width="2.5")"};
constexpr Look kOther{"clear to send, pings", R"(stroke="#bbb" stroke-width="1")"};

const Look& look_of(Cargo cargo) {
  switch (cargo) {
    case Cargo::Data:
      return kData;
    case Cargo::Repair:
      return kRepair;
    case Cargo::Parity:
      return kParity;
    case Cargo::Offer:
      return kOffer;
    case Cargo::Report:
      return kReport;
    case Cargo::Nack:
      return kNack;
    case Cargo::Done:
      return kDone;
    case Cargo::Grant:
    case Cargo::Ping:
      break;
  }
  return kOther;
}

bool is_thinned(Cargo cargo) {
  return cargo == Cargo::Data || cargo == Cargo::Parity;
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

// The lowest and highest place that a pixel column has.
class Envelope {
 public:
  void add(double x, double low, double high) {
    const auto column = static_cast<int>(std::floor(x));
    const auto [at, fresh] = columns_.try_emplace(column, Range{low, high});
    if (fresh) return;
    at->second.low = std::min(at->second.low, low);
    at->second.high = std::max(at->second.high, high);
  }
  [[nodiscard]] Strokes strokes() const {
    Strokes strokes(kRight);
    for (const auto& [column, range] : columns_) strokes.line({column + 0.5, range.low}, {column + 0.5, range.high});
    return strokes;
  }

 private:
  struct Range {
    double low;
    double high;
  };
  std::map<int, Range> columns_;
};

class Drawing {
 public:
  Drawing(const Timeline& timeline, const WriteTrial& trial)
      : timeline_(timeline),
        bytes_(static_cast<double>(trial.size.count)),
        half_rtt_(trial.link.rtt / 2),
        picture_(kWidth, kHeight) {
    span_ms_ = std::max(milliseconds(timeline.completed() - timeline.begin()) * 1.04, 1e-3);
    for (const Passage& passage : timeline.passages()) {
      if (passage.cargo == Cargo::Parity) {
        parity_bytes_ = std::max(parity_bytes_, static_cast<double>(passage.position + passage.bytes));
      }
    }
  }

  void draw(std::string_view title, std::string_view link, std::ostream& out) {
    picture_.text({kLeft, 18}, title, 15);
    picture_.text({kLeft, 38}, link, 12);
    draw_axes();
    draw_crossings();
    draw_places();
    draw_completion();
    draw_legend();
    picture_.write(out);
  }

 private:
  [[nodiscard]] double x(double ms) const { return kLeft + ms / span_ms_ * (kRight - kLeft); }
  [[nodiscard]] double x(TimePoint at) const { return x(milliseconds(at - timeline_.begin())); }
  [[nodiscard]] double y(double bytes) const { return kBottom - bytes / bytes_ * (kBottom - kTop); }
  [[nodiscard]] double parity_y(double bytes) const {
    return kParityBottom - bytes / std::max(parity_bytes_, 1.0) * (kParityBottom - kParityTop);
  }

  void draw_axes() {
    const double step = nice_step(span_ms_, kTicks);
    const double lowest = parity_bytes_ > 0 ? kParityBottom : kBottom;
    for (int i = 0; i * step <= span_ms_; ++i) {
      const double at = x(i * step);
      picture_.line({at, kSender}, {at, kReceiver}, kThin);
      picture_.line({at, kTop}, {at, lowest}, kThin);
      picture_.text({at, lowest + 16}, fmt::format("{:g}", i * step), 12, Anchor::Middle);
    }
    picture_.text({(kLeft + kRight) / 2, lowest + 38}, "ms since the Write was posted", 13, Anchor::Middle);
    picture_.text({kLeft - 8, kSender}, "sender", 13, Anchor::End);
    picture_.text({kLeft - 8, kReceiver}, "receiver", 13, Anchor::End);
    picture_.line({kLeft, kSender}, {kRight, kSender}, kAxis);
    picture_.line({kLeft, kReceiver}, {kRight, kReceiver}, kAxis);
    for (const double share : {0.0, 0.25, 0.5, 0.75, 1.0}) {
      const double at = y(share * bytes_);
      picture_.line({kLeft, at}, {kRight, at}, kThin);
      picture_.text({kLeft - 8, at}, to_string(Bytes{static_cast<std::uint64_t>(share * bytes_)}), 12, Anchor::End);
    }
    picture_.text({kLeft, kTop - 18}, "place in the Write, by time of departure and of arrival", 13);
    if (parity_bytes_ > 0) picture_.text({kLeft - 8, (kParityTop + kParityBottom) / 2}, "parity", 12, Anchor::End);
  }

  void draw_crossings() {
    std::map<const Look*, Strokes> strokes;
    std::map<const Look*, int> last_column;
    for (const Passage& passage : timeline_.passages()) {
      const Look* look = &look_of(passage.cargo);
      ++counts_[look];
      const double from = passage.backward ? kReceiver : kSender;
      const double to = passage.backward ? kSender : kReceiver;
      const Point begin{x(passage.departed), from};
      if (passage.arrived == kNever) {
        ++counts_[&kLoss];
        draw_loss(begin, to, strokes.try_emplace(&kLoss, kRight).first->second);
        continue;
      }
      if (is_thinned(passage.cargo) && !passage.duplicate) {
        const auto column = static_cast<int>(begin.x / 2);
        const auto [last, fresh] = last_column.try_emplace(look, column);
        if (!fresh && last->second == column) continue;
        last->second = column;
      }
      strokes.try_emplace(look, kRight).first->second.line(begin, {x(passage.arrived), to});
    }
    for (const Look* look : {&kData, &kParity, &kOther, &kOffer, &kReport, &kRepair, &kNack, &kLoss, &kDone}) {
      picture_.strokes(strokes[look], look->style);
    }
  }

  void draw_loss(Point begin, double to, Strokes& strokes) const {
    // As steep as what arrives: half an RTT for the whole way.
    const double way = x(milliseconds(half_rtt_)) - kLeft;
    const Point end{begin.x + way * kLostAfter, begin.y + (to - begin.y) * kLostAfter};
    strokes.line(begin, end);
    strokes.cross(end, 2.5);
  }

  void draw_places() {
    Envelope departures;
    Envelope arrivals;
    Envelope parity;
    Strokes losses(kRight);
    Strokes repairs(kRight);
    for (const Passage& passage : timeline_.passages()) {
      const auto begin = static_cast<double>(passage.position);
      const double end = begin + passage.bytes;
      const bool lost = passage.arrived == kNever;
      if (passage.cargo == Cargo::Parity) {
        parity.add(x(passage.departed), parity_y(end), parity_y(begin));
        if (lost) losses.cross({x(passage.departed), parity_y(begin)}, 2.5);
      } else if (passage.cargo == Cargo::Data) {
        departures.add(x(passage.departed), y(end), y(begin));
        if (lost) losses.cross({x(passage.departed), y(begin)}, 2.5);
        if (!lost) arrivals.add(x(passage.arrived), y(end), y(begin));
      } else if (passage.cargo == Cargo::Repair) {
        repairs.dot({x(passage.departed), y(begin)});
        if (lost) losses.cross({x(passage.departed), y(begin)}, 3.5);
        if (!lost) repairs.dot({x(passage.arrived), y(begin)});
      }
    }
    picture_.strokes(departures.strokes(), kData.style);
    picture_.strokes(arrivals.strokes(), kArrival.style);
    picture_.strokes(parity.strokes(), kParity.style);
    picture_.strokes(repairs, kRepairDot.style);
    picture_.strokes(losses, kLoss.style);
  }

  void draw_completion() {
    const double at = x(timeline_.completed());
    picture_.line({at, kSender - 12}, {at, kBottom}, R"(stroke="#0072B2" stroke-width="1.5" stroke-dasharray="6 4")");
    picture_.text({at, kSender - 22}, "complete", 12, Anchor::Middle);
  }

  void draw_legend() {
    Point at{kRight + 20, kSender};
    for (const Look* look :
         {&kData, &kParity, &kRepair, &kLoss, &kOffer, &kReport, &kNack, &kDone, &kOther, &kArrival}) {
      if (look != &kArrival && counts_[look] == 0) continue;
      picture_.line(at, {at.x + 24, at.y}, look->style);
      picture_.text({at.x + 32, at.y},
                    look == &kArrival ? look->name : fmt::format("{}: {}", look->name, counts_[look]), 12);
      at.y += kLegendStep;
    }
  }

  const Timeline& timeline_;
  double bytes_;
  Duration half_rtt_;
  double span_ms_ = 1;
  double parity_bytes_ = 0;
  std::map<const Look*, std::uint64_t> counts_;
  SvgPicture picture_;
};

}  // namespace

Result<void> draw_timeline(const SchemeChoice& scheme, const WriteTrial& trial, std::ostream& out) {
  Timeline timeline;
  const Result<experiment::TrialResult> result = experiment::run(trial, 0, &timeline);
  if (!result) return result.error();
  Drawing drawing(timeline, trial);
  const std::string outcome = result->error ? "failed" : "complete";
  drawing.draw(
      fmt::format("{}, {}: {} after {}", scheme.text(), to_string(trial.size), outcome, to_string(result->completion)),
      simulation::to_string(trial.link).substr(0, kLongestLink), out);
  return {};
}

}  // namespace sdr::cli

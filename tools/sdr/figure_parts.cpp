#include "sdr/figure_parts.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>

namespace sdr::cli {
namespace {

Contender contender(model::SchemeKind kind, std::string name, const char* colour) {
  model::SchemeSpec scheme;
  scheme.kind = kind;
  return {scheme, std::move(name), colour};
}

// Messages up to here are simulated where a figure runs over sizes.
constexpr Bytes kLargestSimulated = 32_MiB;

}  // namespace

model::PathSpec paper_path(double loss) {
  model::PathSpec path;
  path.rate = {400e9};
  path.rtt = std::chrono::milliseconds(25);
  path.loss = loss;
  return path;
}

Contender sr_rto() {
  return contender(model::SchemeKind::SrRto, "SR RTO", kVermillion);
}
Contender sr_nack() {
  return contender(model::SchemeKind::SrNack, "SR NACK", kBlue);
}
Contender ec_xor() {
  return contender(model::SchemeKind::EcXor, "EC XOR (32, 8)", kOrange);
}
Contender ec_mds() {
  return contender(model::SchemeKind::EcRs, "EC MDS (32, 8)", kGreen);
}

Contender adaptive() {
  return contender(model::SchemeKind::Adaptive, "adaptive", kBlack);
}

model::SchemeSpec mds(unsigned data_chunks, unsigned parity_chunks) {
  model::SchemeSpec scheme;
  scheme.kind = model::SchemeKind::EcRs;
  scheme.data_chunks = data_chunks;
  scheme.parity_chunks = parity_chunks;
  return scheme;
}

Axis size_axis(Bytes low, Bytes high) {
  return {"message size (bytes)", Unit::Size, true, static_cast<double>(low.count), static_cast<double>(high.count)};
}
Axis loss_axis(double low, double high) {
  return {"loss probability of a packet", Unit::Probability, true, low, high};
}
Axis distance_axis() {
  return {"distance one way (km)", Unit::Kilometres, true, 75, 6000};
}
Axis slowdown_axis(bool logarithmic, double high) {
  return {"slowdown (completion time / lossless time)", Unit::Number, logarithmic, logarithmic ? 0.9 : 0, high};
}
Axis speedup_axis(const std::string& label, double low, double high) {
  return {label, Unit::Times, false, low, high};
}

std::vector<Place> size_places(Bytes low, Bytes high) {
  std::vector<Place> places;
  int step = 0;
  // Whole chunks of 4 KiB, so that no curve jumps where a short chunk begins.
  for (double size = static_cast<double>(low.count); size <= static_cast<double>(high.count) * 1.0001; ++step) {
    const bool whole = step % 4 == 0;
    const double chunks = std::round(size / 4096) * 4096;
    places.push_back({chunks, whole, step % 8 == 0 && chunks <= static_cast<double>(kLargestSimulated.count)});
    size = static_cast<double>(low.count) * std::exp2((step + 1) / 4.0);
  }
  return places;
}

std::vector<Place> loss_places(int from, int to) {
  constexpr int kDecade = 20;
  std::vector<Place> places;
  for (int i = from * kDecade; i <= to * kDecade; ++i) {
    const int place = (i % kDecade + kDecade) % kDecade;
    const bool drawn = place == 0 || place == 6 || place == 14;
    places.push_back({std::pow(10, i / static_cast<double>(kDecade)), drawn, place == 0 && i >= -5 * kDecade});
  }
  return places;
}

std::vector<Place> distance_places() {
  constexpr int kSteps = 48;
  std::vector<Place> places;
  for (int i = 0; i <= kSteps; ++i) {
    places.push_back({75 * std::pow(80.0, i / static_cast<double>(kSteps)), i % 6 == 0, i % 24 == 0});
  }
  return places;
}

Series series_of(const std::string& name, const std::string& colour, const std::vector<Place>& places,
                 const std::function<Question(double x)>& question) {
  Series series{name, colour, {}};
  for (const Place& place : places) {
    Point point;
    point.x = place.x;
    const Question asked = question(place.x);
    point.theory = theory(asked);
    if (place.draw || place.simulate) point.question = asked;
    point.simulate = place.simulate;
    series.points.push_back(point);
  }
  return series;
}

Question slowdown_of(const model::SchemeSpec& scheme, const model::PathSpec& path, Bytes size, Statistic statistic) {
  return {statistic, {scheme, path, size}, {}};
}

Question speedup_of(const model::PathSpec& path, Bytes size, Statistic statistic) {
  return {statistic, {sr_rto().scheme, path, size}, Cell{ec_mds().scheme, path, size}};
}

double crossing(double low, double high, const std::function<double(double)>& f) {
  const bool begins_above = f(low) > 0;
  if (begins_above == (f(high) > 0)) return kUnknown;
  for (int i = 0; i < 50; ++i) {
    const double middle = std::sqrt(low * high);
    ((f(middle) > 0) == begins_above ? low : high) = middle;
  }
  return std::sqrt(low * high);
}

Point peak_of(const Series& series) {
  return *std::max_element(series.points.begin(), series.points.end(),
                           [](const Point& a, const Point& b) { return a.theory < b.theory; });
}

}  // namespace sdr::cli

// What the makers of figures share: the paper's path, the schemes with their names and colours, axes, grids of x.
//
// Colours are those of Okabe and Ito, told apart by the colour-blind; a scheme has the same one in every figure.
//
// Pure functions; any thread.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sdr/figure.hpp"

namespace sdr::cli {

inline constexpr const char* kBlack = "#000000";
inline constexpr const char* kOrange = "#E69F00";
inline constexpr const char* kSky = "#56B4E9";
inline constexpr const char* kGreen = "#009E73";
inline constexpr const char* kBlue = "#0072B2";
inline constexpr const char* kVermillion = "#D55E00";
inline constexpr const char* kPurple = "#CC79A7";

inline constexpr Bytes kPaperMessage = 128_MiB;  // of the figures over loss and distance
inline constexpr Bytes kLeastSize = 128_KiB;
inline constexpr Bytes kMostSize = 1_GiB * 2048;

// 400 Gbit/s, 25 ms, chunks of one packet of 4 KiB.
model::PathSpec paper_path(double loss);

// A scheme as figures show it; coded ones with (32, 8).
struct Contender {
  model::SchemeSpec scheme;
  std::string name;
  std::string colour;
};
Contender sr_rto();
Contender sr_nack();
Contender ec_xor();
Contender ec_mds();
Contender adaptive();
model::SchemeSpec mds(unsigned data_chunks, unsigned parity_chunks);

Axis size_axis(Bytes low, Bytes high);
Axis loss_axis(double low, double high);
Axis distance_axis();
Axis slowdown_axis(bool logarithmic, double high);
Axis speedup_axis(const std::string& label, double low, double high);

// A place on an axis, and what is to be checked there.
struct Place {
  double x = 0;
  bool draw = false;      // by Monte Carlo
  bool simulate = false;  // by the protocol
};
// From `low` to `high`: a factor of 2 apart with checks, three more in between without.
std::vector<Place> size_places(Bytes low, Bytes high);
// 10^from to 10^to in steps of 10^(1/20): drawn at 1, 2 and 5 of each decade or so, simulated at 10^n.
std::vector<Place> loss_places(int from, int to);
std::vector<Place> distance_places();

Series series_of(const std::string& name, const std::string& colour, const std::vector<Place>& places,
                 const std::function<Question(double x)>& question);

Question slowdown_of(const model::SchemeSpec& scheme, const model::PathSpec& path, Bytes size,
                     Statistic statistic = Statistic::Mean);
// Of EC(32, 8) over SR RTO.
Question speedup_of(const model::PathSpec& path, Bytes size, Statistic statistic = Statistic::Mean);

// Where f passes 0 between `low` and `high`, both above 0, by bisection of their logarithms; unknown when it has the
// same sign at both.
double crossing(double low, double high, const std::function<double(double)>& f);

// The largest value of a curve's theory, and where it is.
Point peak_of(const Series& series);

}  // namespace sdr::cli

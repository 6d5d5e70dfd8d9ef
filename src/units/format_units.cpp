// Units to text, for people: three significant digits in the largest unit that leaves at least 1 before the point.
//
// Whole byte counts of a unit stay whole ("64 MiB"). What is printed here is read back by parse_units.cpp to those
// three digits, but for negative durations and for the bandwidth 0, which reads "not limited".
#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "sdr/units.hpp"

namespace sdr {
namespace {

struct Unit {
  std::string_view name;
  double scale;
};

constexpr Unit kByteUnits[] = {
    {"B", 1.0}, {"KiB", 1024.0}, {"MiB", 1048576.0}, {"GiB", 1073741824.0}, {"TiB", 1099511627776.0}};
constexpr Unit kBandwidthUnits[] = {
    {"bit/s", 1.0}, {"Kbit/s", 1e3}, {"Mbit/s", 1e6}, {"Gbit/s", 1e9}, {"Tbit/s", 1e12}};
constexpr Unit kDurationUnits[] = {{"ns", 1.0}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"min", 60e9}};

// How many decimals make three significant digits.
int decimals_of(double value) {
  if (value < 9.995) return 2;
  if (value < 99.95) return 1;
  return 0;
}

// `value` as it will read with that many decimals: 999.96 becomes 1000, which belongs to the next unit.
double rounded(double value) {
  const double power = std::pow(10.0, decimals_of(value));
  return std::round(value * power) / power;
}

std::string in_units(double value, std::span<const Unit> units) {
  std::size_t chosen = 0;
  while (chosen + 1 < units.size() &&
         rounded(value / units[chosen].scale) * units[chosen].scale >= units[chosen + 1].scale) {
    ++chosen;
  }
  const double shown = value / units[chosen].scale;
  return fmt::format("{:.{}f} {}", shown, decimals_of(shown), units[chosen].name);
}

}  // namespace

std::string to_string(Bytes bytes) {
  for (std::size_t i = std::size(kByteUnits); i-- > 0;) {
    const auto scale = static_cast<std::uint64_t>(kByteUnits[i].scale);
    const bool whole = bytes.count >= scale && bytes.count % scale == 0;
    // 1025 KiB is whole, but nobody reads sizes like that: four digits at most.
    if (whole && bytes.count / scale < 1024) return fmt::format("{} {}", bytes.count / scale, kByteUnits[i].name);
  }
  if (bytes.count == 0) return "0 B";
  return in_units(static_cast<double>(bytes.count), kByteUnits);
}

std::string to_string(Bandwidth bandwidth) {
  if (bandwidth.bits_per_second == 0) return "not limited";
  return in_units(bandwidth.bits_per_second, kBandwidthUnits);
}

std::string to_string(Duration duration) {
  const std::int64_t count = duration.count();
  const double magnitude = std::abs(static_cast<double>(count));
  if (magnitude < 1000) return fmt::format("{} ns", count);
  return (count < 0 ? "-" : "") + in_units(magnitude, kDurationUnits);
}

}  // namespace sdr

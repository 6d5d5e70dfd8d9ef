// Units of the public API: bytes, bandwidth, time.
//
// A bare integer that crosses a floor is a bug waiting for a factor of eight or of a thousand;
// these types say which quantity is meant and convert only where the meaning is clear.
// Time never comes from here: `TimePoint` has no now(). The caller passes it in (see docs/architecture.md).
// Text forms ("64MiB", "1Gbit", "25ms") are read by parse_bytes, parse_bandwidth and parse_duration.
#pragma once

#include <chrono>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "sdr/result.hpp"

namespace sdr {

// A count of bytes.
struct Bytes {
  std::uint64_t count = 0;

  constexpr auto operator<=>(const Bytes&) const = default;
  constexpr Bytes& operator+=(Bytes other) {
    count += other.count;
    return *this;
  }
  constexpr Bytes& operator-=(Bytes other) {
    count -= other.count;
    return *this;
  }
  friend constexpr Bytes operator+(Bytes a, Bytes b) { return {a.count + b.count}; }
  friend constexpr Bytes operator-(Bytes a, Bytes b) { return {a.count - b.count}; }
  friend constexpr Bytes operator*(Bytes a, std::uint64_t times) { return {a.count * times}; }
};

constexpr Bytes operator""_B(unsigned long long n) {
  return {n};
}
constexpr Bytes operator""_KiB(unsigned long long n) {
  return {n << 10};
}
constexpr Bytes operator""_MiB(unsigned long long n) {
  return {n << 20};
}
constexpr Bytes operator""_GiB(unsigned long long n) {
  return {n << 30};
}

using Duration = std::chrono::nanoseconds;

// The clock every TimePoint is counted on. It has no now(): a driver (runtime, simulation) supplies the time.
struct Clock {
  using rep = std::int64_t;
  using period = std::nano;
  using duration = Duration;
  using time_point = std::chrono::time_point<Clock, Duration>;
  static constexpr bool is_steady = true;
};
using TimePoint = Clock::time_point;

// "Nothing to wait for": later than any deadline.
inline constexpr TimePoint kNever = TimePoint::max();

// Bits per second on a link. Zero means "not limited" wherever a limit is configured.
struct Bandwidth {
  double bits_per_second = 0;

  constexpr auto operator<=>(const Bandwidth&) const = default;
  [[nodiscard]] constexpr bool limited() const { return bits_per_second > 0; }
  // How long `bytes` take at this bandwidth; zero when not limited.
  [[nodiscard]] constexpr Duration time_for(Bytes bytes) const {
    if (!limited()) return Duration::zero();
    return Duration(static_cast<std::int64_t>(static_cast<double>(bytes.count) * 8e9 / bits_per_second));
  }
  // How many whole bytes pass in `time`.
  [[nodiscard]] constexpr Bytes bytes_in(Duration time) const {
    return {static_cast<std::uint64_t>(bits_per_second * static_cast<double>(time.count()) / 8e9)};
  }
};

// Read "4096", "64KiB", "1.5GB" (powers of 1024 with an i, of 1000 without), "1Gbit", "400Mbit", "25ms", "1.5s".
// Errors (InvalidArgument) name the text and what was expected. A bare number is bytes / bit/s / refused for durations.
Result<Bytes> parse_bytes(std::string_view text);
Result<Bandwidth> parse_bandwidth(std::string_view text);
Result<Duration> parse_duration(std::string_view text);

// Short human forms: "64 MiB", "1.00 Gbit/s", "25.0 ms".
std::string to_string(Bytes bytes);
std::string to_string(Bandwidth bandwidth);
std::string to_string(Duration duration);

}  // namespace sdr

// Text to units: the three parsers of include/sdr/units.hpp.
//
// All read `number [spaces] suffix`. A number is decimal digits with an optional fraction and an optional exponent
// ("4096", "1.5", ".5", "1e-3"); a sign is never accepted, so a typing error cannot become a huge unsigned value.
// Whole numbers are kept as integers to the end (2^63 + 1 bytes stays odd); fractions go through a double and are
// rounded to the nearest byte or nanosecond. The suffix is case-sensitive where case carries meaning (b and B, m and
// M); the one exception is k = K, which nobody tells apart.
#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>

#include "sdr/units.hpp"

namespace sdr {
namespace {

constexpr double kTwoTo63 = 9223372036854775808.0;
constexpr double kTwoTo64 = 18446744073709551616.0;

// The bandwidths that later arithmetic can stand: below 1 bit/s the time for a message leaves 64 bits of nanoseconds.
constexpr double kLeastBandwidth = 1.0;
constexpr double kMostBandwidth = 1e18;

constexpr std::string_view kBytesExpected =
    "expected a number with B, KiB, MiB, GiB, TiB (powers of 1024) or kB, KB, MB, GB, TB (powers of 1000)";
constexpr std::string_view kBandwidthExpected =
    "expected a number with bit, Kbit, Mbit, Gbit or Tbit, which may be followed by /s or ps";
constexpr std::string_view kDurationExpected = "expected a number with ns, us, ms, s or min";

struct Suffix {
  std::string_view text;
  std::uint64_t scale;
};

constexpr std::array<Suffix, 11> kByteSuffixes{{{"", 1},
                                                {"B", 1},
                                                {"KiB", 1ULL << 10},
                                                {"MiB", 1ULL << 20},
                                                {"GiB", 1ULL << 30},
                                                {"TiB", 1ULL << 40},
                                                {"KB", 1'000},
                                                {"kB", 1'000},
                                                {"MB", 1'000'000},
                                                {"GB", 1'000'000'000},
                                                {"TB", 1'000'000'000'000}}};

constexpr std::array<Suffix, 6> kDurationSuffixes{{{"ns", 1},
                                                   {"us", 1'000},
                                                   {"\xC2\xB5s", 1'000},  // the micro sign, as people paste it
                                                   {"ms", 1'000'000},
                                                   {"s", 1'000'000'000},
                                                   {"min", 60'000'000'000}}};

struct Quantity {
  double value = 0;
  std::optional<std::uint64_t> whole;  // the same value, when it was written as plain digits and fits
  std::string_view suffix;
};

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

Error bad(std::string_view what, std::string_view text, std::string_view why) {
  return {ErrorCode::InvalidArgument, fmt::format("{} \"{}\": {}", what, text, why)};
}

// Splits `text` into number and suffix; nothing when it does not begin with a number that a double can hold.
std::optional<Quantity> split(std::string_view text) {
  // from_chars alone would take "-1", "inf" and "nan".
  const bool starts_like_a_number =
      !text.empty() && (is_digit(text[0]) || (text[0] == '.' && text.size() > 1 && is_digit(text[1])));
  if (!starts_like_a_number) return std::nullopt;

  Quantity quantity;
  const char* const begin = text.data();
  const char* const end = begin + text.size();
  const auto number = std::from_chars(begin, end, quantity.value);
  if (number.ec != std::errc()) return std::nullopt;

  std::uint64_t whole = 0;
  const auto integer = std::from_chars(begin, end, whole);
  if (integer.ec == std::errc() && integer.ptr == number.ptr) quantity.whole = whole;

  const char* rest = number.ptr;
  while (rest != end && *rest == ' ') ++rest;
  const bool dangling_spaces = rest == end && rest != number.ptr;
  if (dangling_spaces) return std::nullopt;
  quantity.suffix = std::string_view(rest, static_cast<std::size_t>(end - rest));
  return quantity;
}

template <std::size_t N>
std::optional<std::uint64_t> scale_of(std::string_view suffix, const std::array<Suffix, N>& table) {
  for (const Suffix& known : table) {
    if (known.text == suffix) return known.scale;
  }
  return std::nullopt;
}

// value * scale rounded to the nearest integer; nothing when that is `limit` (a power of two) or more.
std::optional<std::uint64_t> scaled(const Quantity& quantity, std::uint64_t scale, double limit) {
  if (quantity.whole) {
    std::uint64_t product = 0;
    if (__builtin_mul_overflow(*quantity.whole, scale, &product)) return std::nullopt;
    // Compared as an integer: the largest int64 would round up to 2^63 as a double.
    if (limit < kTwoTo64 && product >= static_cast<std::uint64_t>(limit)) return std::nullopt;
    return product;
  }
  const double product = std::round(quantity.value * static_cast<double>(scale));
  if (!(product < limit)) return std::nullopt;
  return static_cast<std::uint64_t>(product);
}

// "Gbit", "Gbit/s", "Gbitps", and the short "Gb/s", "Gbps". A bare "Gb" is refused: too close to GB.
std::optional<double> bandwidth_scale(std::string_view suffix) {
  if (suffix.empty()) return 1.0;
  double scale = 1.0;
  switch (suffix[0]) {
    case 'k':
    case 'K':
      scale = 1e3;
      break;
    case 'M':
      scale = 1e6;
      break;
    case 'G':
      scale = 1e9;
      break;
    case 'T':
      scale = 1e12;
      break;
    default:
      break;
  }
  if (scale != 1.0) suffix.remove_prefix(1);
  const bool known = suffix == "bit" || suffix == "bit/s" || suffix == "bitps" || suffix == "b/s" || suffix == "bps";
  return known ? std::optional<double>(scale) : std::nullopt;
}

}  // namespace

Result<Bytes> parse_bytes(std::string_view text) {
  const auto quantity = split(text);
  if (!quantity) return bad("size", text, kBytesExpected);
  const auto scale = scale_of(quantity->suffix, kByteSuffixes);
  if (!scale) return bad("size", text, kBytesExpected);
  const auto count = scaled(*quantity, *scale, kTwoTo64);
  if (!count) return bad("size", text, "beyond the largest size, 2^64 - 1 bytes");
  return Bytes{*count};
}

Result<Bandwidth> parse_bandwidth(std::string_view text) {
  const auto quantity = split(text);
  if (!quantity) return bad("bandwidth", text, kBandwidthExpected);
  const auto scale = bandwidth_scale(quantity->suffix);
  if (!scale) return bad("bandwidth", text, kBandwidthExpected);
  const double bits_per_second = quantity->value * *scale;
  if (bits_per_second != 0 && bits_per_second < kLeastBandwidth) {
    return bad("bandwidth", text, "below the least bandwidth, 1 bit/s (0 means not limited)");
  }
  if (!(bits_per_second <= kMostBandwidth)) return bad("bandwidth", text, "beyond the largest bandwidth, 1e18 bit/s");
  return Bandwidth{bits_per_second};
}

Result<Duration> parse_duration(std::string_view text) {
  const auto quantity = split(text);
  if (!quantity) return bad("duration", text, kDurationExpected);
  if (quantity->suffix.empty()) {
    return bad("duration", text, "a duration needs a unit: ns, us, ms, s or min");
  }
  const auto scale = scale_of(quantity->suffix, kDurationSuffixes);
  if (!scale) return bad("duration", text, kDurationExpected);
  const auto count = scaled(*quantity, *scale, kTwoTo63);
  if (!count) return bad("duration", text, "beyond the longest duration, 2^63 - 1 ns (292 years)");
  return Duration(static_cast<std::int64_t>(*count));
}

}  // namespace sdr

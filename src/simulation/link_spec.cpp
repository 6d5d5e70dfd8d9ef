#include "simulation/link_spec.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>

namespace sdr::simulation {
namespace {

using namespace std::chrono_literals;

constexpr Duration kLongest = 1h;  // keeps every sum of times far from overflow

template <typename Number>
std::optional<Number> read_number(std::string_view text) {
  Number value{};
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

bool read_time(std::string_view text, Duration& into) {
  if (text == "0") {  // zero needs no unit
    into = Duration::zero();
    return true;
  }
  const Result<Duration> value = parse_duration(text);
  if (!value || *value < Duration::zero() || *value > kLongest) return false;
  into = *value;
  return true;
}

bool read_real(std::string_view text, double low, double high, double& into) {
  const bool percent = text.ends_with('%');
  if (percent) text.remove_suffix(1);
  const std::optional<double> value = read_number<double>(text);
  if (!value) return false;
  const double real = percent ? *value / 100 : *value;
  if (!(real >= low && real <= high)) return false;  // also refuses NaN
  into = real;
  return true;
}

bool read_rate(std::string_view text, Bandwidth& into) {
  const Result<Bandwidth> value = parse_bandwidth(text);
  if (!value) return false;
  const double bits = value->bits_per_second;
  if (bits != 0 && !(bits >= 1e3 && bits <= 1e15)) return false;
  into = *value;
  return true;
}

bool read_mtu(std::string_view text, LinkSpec& spec) {
  const std::optional<std::uint16_t> value = read_number<std::uint16_t>(text);
  if (!value || *value < 128) return false;
  spec.mtu = *value;
  spec.mtu_given = true;
  return true;
}

bool read_seed(std::string_view text, std::uint64_t& into) {
  const std::optional<std::uint64_t> value = read_number<std::uint64_t>(text);
  if (!value) return false;
  into = *value;
  return true;
}

struct Key {
  std::string_view name;
  std::string_view range;
  bool (*read)(std::string_view text, LinkSpec& spec);
};

constexpr std::string_view kTimeRange = "a time from 0 to 60min, such as 25ms";
constexpr std::string_view kShareRange = "a share from 0 to 1, such as 1e-3 or 0.1%";

constexpr std::array kKeys = {
    Key{"rtt", kTimeRange, [](std::string_view text, LinkSpec& spec) { return read_time(text, spec.rtt); }},
    Key{"rate", "0 (not limited) or a bandwidth from 1kbit to 1000Tbit, such as 1Gbit",
        [](std::string_view text, LinkSpec& spec) { return read_rate(text, spec.rate); }},
    Key{"loss", kShareRange, [](std::string_view text, LinkSpec& spec) { return read_real(text, 0, 1, spec.loss); }},
    Key{"burst", "a mean length in packets from 1 to 1e6",
        [](std::string_view text, LinkSpec& spec) { return read_real(text, 1, 1e6, spec.burst); }},
    Key{"reorder", kShareRange,
        [](std::string_view text, LinkSpec& spec) { return read_real(text, 0, 1, spec.reorder); }},
    Key{"dup", kShareRange,
        [](std::string_view text, LinkSpec& spec) { return read_real(text, 0, 1, spec.duplicate); }},
    Key{"jitter", kTimeRange, [](std::string_view text, LinkSpec& spec) { return read_time(text, spec.jitter); }},
    Key{"queue", kTimeRange, [](std::string_view text, LinkSpec& spec) { return read_time(text, spec.queue); }},
    Key{"seed", "a whole number from 0 to 18446744073709551615",
        [](std::string_view text, LinkSpec& spec) { return read_seed(text, spec.seed); }},
    Key{"mtu", "a whole number of bytes from 128 to 65535", read_mtu},
};

std::string known_keys() {
  std::string names;
  for (const Key& key : kKeys) names += names.empty() ? std::string(key.name) : fmt::format(", {}", key.name);
  return names;
}

std::string_view trimmed(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

Error refused(std::string message) {
  return {ErrorCode::InvalidArgument, "link: " + std::move(message)};
}

Result<void> read_entry(std::string_view entry, LinkSpec& spec, std::array<bool, kKeys.size()>& seen) {
  const std::size_t equals = entry.find('=');
  const std::string_view name = trimmed(entry.substr(0, equals));
  const auto key = std::find_if(kKeys.begin(), kKeys.end(), [&](const Key& k) { return k.name == name; });
  if (key == kKeys.end()) return refused(fmt::format("unknown key \"{}\"; the keys are {}", name, known_keys()));
  bool& given = seen[static_cast<std::size_t>(key - kKeys.begin())];
  if (given) return refused(fmt::format("{} is given twice", name));
  given = true;
  const std::string_view value = equals == std::string_view::npos ? "" : trimmed(entry.substr(equals + 1));
  if (value.empty()) return refused(fmt::format("{} has no value; expected {}", name, key->range));
  if (!key->read(value, spec)) return refused(fmt::format("{}={} is not {}", name, value, key->range));
  return {};
}

// Exact, in the largest unit that leaves a whole number.
std::string exact(Duration time) {
  const std::int64_t ns = time.count();
  if (ns % 1'000'000'000 == 0) return fmt::format("{}s", ns / 1'000'000'000);
  if (ns % 1'000'000 == 0) return fmt::format("{}ms", ns / 1'000'000);
  if (ns % 1'000 == 0) return fmt::format("{}us", ns / 1'000);
  return fmt::format("{}ns", ns);
}

std::string exact(Bandwidth rate) {
  const double bits = rate.bits_per_second;
  if (std::fmod(bits, 1e9) == 0) return fmt::format("{:.0f}Gbit", bits / 1e9);
  if (std::fmod(bits, 1e6) == 0) return fmt::format("{:.0f}Mbit", bits / 1e6);
  return fmt::format("{}", bits);
}

}  // namespace

Result<LinkSpec> LinkSpec::parse(std::string_view text) {
  LinkSpec spec;
  std::array<bool, kKeys.size()> seen{};
  if (trimmed(text).empty()) return spec;
  while (true) {
    const std::size_t comma = text.find(',');
    if (Result<void> read = read_entry(text.substr(0, comma), spec, seen); !read) return read.error();
    if (comma == std::string_view::npos) return spec;
    text.remove_prefix(comma + 1);
  }
}

Duration LinkSpec::reorder_window() const {
  return std::max({Duration(rtt / 16), rate.time_for(Bytes{mtu} * 16), Duration(10us)});
}

std::string to_string(const LinkSpec& spec) {
  const LinkSpec defaults;
  std::string text = fmt::format("rtt={}", exact(spec.rtt));
  if (spec.rate != defaults.rate) text += fmt::format(",rate={}", exact(spec.rate));
  if (spec.loss != defaults.loss) text += fmt::format(",loss={}", spec.loss);
  if (spec.burst != defaults.burst) text += fmt::format(",burst={}", spec.burst);
  if (spec.reorder != defaults.reorder) text += fmt::format(",reorder={}", spec.reorder);
  if (spec.duplicate != defaults.duplicate) text += fmt::format(",dup={}", spec.duplicate);
  if (spec.jitter != defaults.jitter) text += fmt::format(",jitter={}", exact(spec.jitter));
  if (spec.queue != defaults.queue) text += fmt::format(",queue={}", exact(spec.queue));
  if (spec.seed != defaults.seed) text += fmt::format(",seed={}", spec.seed);
  if (spec.mtu_given || spec.mtu != defaults.mtu) text += fmt::format(",mtu={}", spec.mtu);
  return text;
}

}  // namespace sdr::simulation

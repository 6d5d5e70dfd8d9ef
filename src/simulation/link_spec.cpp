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

constexpr std::size_t kLongestShown = 80;                 // of a value that is refused
constexpr std::uint64_t kLongestRun = 1'000'000'000'000;  // and of the packets of a trace

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

bool read_loss_size(std::string_view text, std::uint32_t& into) {
  const Result<Bytes> value = parse_bytes(text);
  if (!value || value->count < 1 || value->count > 65535) return false;
  into = static_cast<std::uint32_t>(value->count);
  return true;
}

// Calls take(part) for the parts of `text` between separators, until it says false.
template <typename Take>
bool each_part(std::string_view text, char separator, Take&& take) {
  while (true) {
    const std::size_t at = text.find(separator);
    if (!take(text.substr(0, at))) return false;
    if (at == std::string_view::npos) return true;
    text.remove_prefix(at + 1);
  }
}

bool read_outages(std::string_view text, std::vector<Outage>& into) {
  return each_part(text, '/', [&](std::string_view part) {
    const std::size_t plus = part.find('+');
    Outage outage;
    if (plus == std::string_view::npos || into.size() == LinkSpec::kMostOutages) return false;
    if (!read_time(part.substr(0, plus), outage.begin) || !read_time(part.substr(plus + 1), outage.length))
      return false;
    into.push_back(outage);
    return outage.length > Duration::zero();
  });
}

bool read_trace(std::string_view text, std::vector<LossRun>& into) {
  std::vector<std::uint64_t> counts;
  const bool whole = each_part(text, ':', [&](std::string_view part) {
    const std::optional<std::uint64_t> count = read_number<std::uint64_t>(part);
    counts.push_back(count.value_or(0));
    return count && *count <= kLongestRun;
  });
  std::uint64_t packets = 0;
  if (!whole || counts.size() % 2 != 0) return false;
  for (std::size_t i = 0; i < counts.size(); i += 2) {
    into.push_back({counts[i], counts[i + 1]});
    packets += counts[i] + counts[i + 1];
  }
  return packets > 0;
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
    Key{"lossback", kShareRange,
        [](std::string_view text, LinkSpec& spec) { return read_real(text, 0, 1, spec.loss_back.emplace()); }},
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
    Key{"losssize", "a packet size from 1 to 65535 bytes on the wire, such as 1024",
        [](std::string_view text, LinkSpec& spec) { return read_loss_size(text, spec.loss_size); }},
    Key{"outage", "up to 64 times BEGIN+LENGTH with a slash between them, such as 1s+200ms/5s+50ms, each up to 60min",
        [](std::string_view text, LinkSpec& spec) { return read_outages(text, spec.outages); }},
    Key{"trace", "packets ARRIVED:LOST:ARRIVED:LOST..., each from 0 to 1e12 and not all 0, such as 1000:2:350:1",
        [](std::string_view text, LinkSpec& spec) { return read_trace(text, spec.trace); }},
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
  if (!key->read(value, spec)) {
    const bool is_long = value.size() > kLongestShown;
    return refused(
        fmt::format("{}={}{} is not {}", name, value.substr(0, kLongestShown), is_long ? "..." : "", key->range));
  }
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

LinkSpec LinkSpec::backward() const {
  LinkSpec back = *this;
  back.loss = loss_back.value_or(loss);
  return back;
}

double LinkSpec::loss_of(std::uint32_t wire_bytes) const {
  if (loss_size == 0 || loss >= 1) return loss;
  return -std::expm1(std::log1p(-loss) * wire_bytes / loss_size);
}

Duration LinkSpec::reorder_window() const {
  return std::max({Duration(rtt / 16), rate.time_for(Bytes{mtu} * 16), Duration(10us)});
}

std::string to_string(const LinkSpec& spec) {
  const LinkSpec defaults;
  std::string text = fmt::format("rtt={}", exact(spec.rtt));
  if (spec.rate != defaults.rate) text += fmt::format(",rate={}", exact(spec.rate));
  if (spec.loss != defaults.loss) text += fmt::format(",loss={}", spec.loss);
  if (spec.loss_back) text += fmt::format(",lossback={}", *spec.loss_back);
  if (spec.burst != defaults.burst) text += fmt::format(",burst={}", spec.burst);
  if (spec.reorder != defaults.reorder) text += fmt::format(",reorder={}", spec.reorder);
  if (spec.duplicate != defaults.duplicate) text += fmt::format(",dup={}", spec.duplicate);
  if (spec.jitter != defaults.jitter) text += fmt::format(",jitter={}", exact(spec.jitter));
  if (spec.queue != defaults.queue) text += fmt::format(",queue={}", exact(spec.queue));
  if (spec.seed != defaults.seed) text += fmt::format(",seed={}", spec.seed);
  if (spec.mtu_given || spec.mtu != defaults.mtu) text += fmt::format(",mtu={}", spec.mtu);
  if (spec.loss_size != defaults.loss_size) text += fmt::format(",losssize={}", spec.loss_size);
  std::string_view separator = ",outage=";
  for (const Outage& outage : spec.outages) {
    text += fmt::format("{}{}+{}", separator, exact(outage.begin), exact(outage.length));
    separator = "/";
  }
  separator = ",trace=";
  for (const LossRun& run : spec.trace) {
    text += fmt::format("{}{}:{}", separator, run.arrived, run.lost);
    separator = ":";
  }
  return text;
}

}  // namespace sdr::simulation

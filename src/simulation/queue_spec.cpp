#include "simulation/queue_spec.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

namespace sdr::simulation {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kLargest = std::uint64_t{1} << 40;
constexpr Duration kLongest = 1h;

Error refused(std::string message) {
  return {ErrorCode::InvalidArgument, "queue: " + std::move(message)};
}

// "1bdp", "0.5bdp".
std::optional<double> read_products(std::string_view text) {
  if (!text.ends_with("bdp")) return std::nullopt;
  text.remove_suffix(3);
  double value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc{} || end != text.data() + text.size() || !(value > 0 && value <= 1000)) return std::nullopt;
  return value;
}

Result<Bytes> read_limit(std::string_view key, std::string_view text, const LinkSpec& link) {
  const std::optional<double> products = read_products(text);
  const Result<Duration> time = parse_duration(text);
  if ((products || time) && !link.rate.limited()) {
    return refused(fmt::format("{}={} is a time at the link's rate, and the link has no rate", key, text));
  }
  if (products)
    return Bytes{static_cast<std::uint64_t>(static_cast<double>(link.rate.bytes_in(link.rtt).count) * *products)};
  if (time && *time >= Duration::zero() && *time <= kLongest) return link.rate.bytes_in(*time);
  const Result<Bytes> bytes = parse_bytes(text);
  if (bytes && bytes->count <= kLargest) return *bytes;
  return refused(
      fmt::format("{}={} is not a size up to 1 TiB (512KiB), a time at the rate up to 60min (20ms), nor "
                  "bandwidth-delay products up "
                  "to 1000 (1bdp)",
                  key, text.substr(0, 80)));
}

Result<Duration> read_time(std::string_view key, std::string_view text) {
  const Result<Duration> time = parse_duration(text);
  if (time && *time > Duration::zero() && *time <= kLongest) return *time;
  return refused(fmt::format("{}={} is not a time above 0 up to 60min, such as 5ms", key, text.substr(0, 80)));
}

std::optional<Discipline> discipline_of(std::string_view name) {
  if (name == "drop-tail") return Discipline::DropTail;
  if (name == "codel") return Discipline::Codel;
  if (name == "policer") return Discipline::Policer;
  return std::nullopt;
}

Bytes default_limit(const QueueSpec& spec, const LinkSpec& link) {
  if (spec.discipline != Discipline::Codel) return link.rate.bytes_in(link.queue);
  return link.rate.bytes_in(std::max<Duration>(link.queue, 2 * spec.interval));
}

// One entry behind the name of the discipline.
Result<void> read_entry(std::string_view entry, const LinkSpec& link, QueueSpec& spec, std::optional<Bytes>& limit) {
  const std::size_t equals = entry.find('=');
  const std::string_view key = entry.substr(0, equals);
  const std::string_view value = equals == std::string_view::npos ? "" : entry.substr(equals + 1);
  const bool codel = spec.discipline == Discipline::Codel;
  if (key == (spec.discipline == Discipline::Policer ? "burst" : "limit")) {
    const Result<Bytes> read = read_limit(key, value, link);
    if (!read) return read.error();
    limit = *read;
    return {};
  }
  if (codel && (key == "target" || key == "interval")) {
    const Result<Duration> read = read_time(key, value);
    if (!read) return read.error();
    (key == "target" ? spec.target : spec.interval) = *read;
    return {};
  }
  if (codel && entry == "ecn") {
    spec.ecn = true;
    return {};
  }
  return refused(
      fmt::format("unknown \"{}\"; drop-tail has limit, codel has limit, target, interval and ecn, policer "
                  "has burst",
                  entry.substr(0, 80)));
}

}  // namespace

Result<QueueSpec> QueueSpec::parse(std::string_view text, const LinkSpec& link) {
  QueueSpec spec;
  std::size_t comma = text.find(',');
  const std::string_view name = text.substr(0, comma);
  const std::optional<Discipline> discipline = discipline_of(name);
  if (!discipline) {
    return refused(
        fmt::format("unknown discipline \"{}\"; there are drop-tail, codel and policer", name.substr(0, 80)));
  }
  spec.discipline = *discipline;
  std::optional<Bytes> limit;
  while (comma != std::string_view::npos) {
    text.remove_prefix(comma + 1);
    comma = text.find(',');
    if (Result<void> read = read_entry(text.substr(0, comma), link, spec, limit); !read) return read.error();
  }
  if (spec.target > spec.interval) {
    return refused(fmt::format("target={} is longer than interval={}", sdr::to_string(spec.target),
                               sdr::to_string(spec.interval)));
  }
  spec.limit = limit.value_or(default_limit(spec, link));
  if (spec.discipline == Discipline::Policer && link.rate.limited() && spec.limit < Bytes{link.mtu}) {
    return refused(fmt::format("burst={} holds no packet of the MTU {}", spec.limit.count, link.mtu));
  }
  return spec;
}

std::string to_string(const QueueSpec& spec) {
  switch (spec.discipline) {
    case Discipline::Policer:
      return fmt::format("policer,burst={}", spec.limit.count);
    case Discipline::Codel:
      return fmt::format("codel,target={}ns,interval={}ns{},limit={}", spec.target.count(), spec.interval.count(),
                         spec.ecn ? ",ecn" : "", spec.limit.count);
    case Discipline::DropTail:
      break;
  }
  return fmt::format("drop-tail,limit={}", spec.limit.count);
}

}  // namespace sdr::simulation

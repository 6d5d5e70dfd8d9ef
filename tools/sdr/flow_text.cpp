#include "sdr/flow_text.hpp"

#include <fmt/format.h>

#include <array>
#include <set>
#include <string>

#include "sdr/options.hpp"

namespace sdr::cli {
namespace {

using experiment::FlowKind;
using experiment::FlowSpec;

constexpr Duration kLongest = std::chrono::hours(24);

Error refused(std::string message) {
  return {ErrorCode::InvalidArgument, "flow: " + std::move(message)};
}

bool read_time(std::string_view text, Duration& into) {
  const Result<Duration> time = parse_duration(text);
  if (!time || *time < Duration::zero() || *time > kLongest) return false;
  into = *time;
  return true;
}

bool read_size(std::string_view text, Bytes& into) {
  const Result<Bytes> size = parse_bytes(text);
  if (!size || size->count == 0 || *size > 1_GiB * 1024) return false;
  into = *size;
  return true;
}

bool read_rate(std::string_view text, Bandwidth& into) {
  const Result<Bandwidth> rate = parse_bandwidth(text);
  if (!rate || !rate->limited()) return false;
  into = *rate;
  return true;
}

bool read_switch(std::string_view text, bool& into) {
  into = text == "on";
  return into || text == "off";
}

bool read_scheme(std::string_view text, FlowSpec& flow) {
  const Result<SchemeChoice> choice = parse_scheme_choice(text, false);
  if (!choice) return false;
  flow.connection.scheme = *choice->scheme;
  flow.connection.data_chunks = choice->data_chunks;
  flow.connection.parity_chunks = choice->parity_chunks;
  return true;
}

bool read_controller(std::string_view text, FlowSpec& flow) {
  const Result<RateMode> mode = parse_rate_mode(text);
  if (!mode || *mode == RateMode::Automatic) return false;
  flow.connection.rate_mode = *mode;
  return true;
}

bool read_fixed_rate(std::string_view text, FlowSpec& flow) {
  return read_rate(text, flow.connection.queue_pair.rate);
}

struct Key {
  std::string_view name;
  std::string_view kinds;  // that have it, by their first letters: s(dr), c(ubic), b(br)
  std::string_view range;
  bool (*read)(std::string_view, FlowSpec&);
};

constexpr std::string_view kTime = "a time from 0s to 24h, such as 40ms";
constexpr std::string_view kSize = "a size from 1 B to 1 TiB, such as 64MiB";
constexpr std::string_view kRate = "a rate above 0, such as 100Mbit";

constexpr std::array kKeys = {
    Key{"rtt", "scb", kTime, [](std::string_view text, FlowSpec& flow) { return read_time(text, flow.rtt); }},
    Key{"start", "scb", kTime, [](std::string_view text, FlowSpec& flow) { return read_time(text, flow.start); }},
    Key{"stop", "scb", kTime,
        [](std::string_view text, FlowSpec& flow) { return read_time(text, flow.stop.emplace()); }},
    Key{"bytes", "scb", kSize, [](std::string_view text, FlowSpec& flow) { return read_size(text, flow.size); }},
    Key{"name", "scb", "a name",
        [](std::string_view text, FlowSpec& flow) {
          flow.name = text.substr(0, 40);
          return true;
        }},
    Key{"scheme", "s", "a reliable scheme, such as adaptive, sr-nack or ec-rs:32:8", read_scheme},
    Key{"controller", "s", "model, background or fixed", read_controller},
    Key{"rate", "s", kRate, read_fixed_rate},
    Key{"maxrate", "s", kRate,
        [](std::string_view text, FlowSpec& flow) { return read_rate(text, flow.connection.max_rate); }},
    Key{"write", "s", kSize, [](std::string_view text, FlowSpec& flow) { return read_size(text, flow.write); }},
    Key{"wake", "s", kTime, [](std::string_view text, FlowSpec& flow) { return read_time(text, flow.wake); }},
    Key{"hystart", "c", "on or off",
        [](std::string_view text, FlowSpec& flow) { return read_switch(text, flow.hystart); }},
    Key{"ecn", "c", "on or off", [](std::string_view text, FlowSpec& flow) { return read_switch(text, flow.ecn); }},
};

constexpr char letter_of(FlowKind kind) {
  return kind == FlowKind::Sdr ? 's' : kind == FlowKind::TcpCubic ? 'c' : 'b';
}

std::string keys_of(FlowKind kind) {
  std::string names;
  for (const Key& key : kKeys) {
    if (key.kinds.find(letter_of(kind)) == std::string_view::npos) continue;
    names += names.empty() ? std::string(key.name) : fmt::format(", {}", key.name);
  }
  return names;
}

Result<void> read_entry(std::string_view entry, FlowSpec& flow) {
  const std::size_t equals = entry.find('=');
  const std::string_view name = entry.substr(0, equals);
  const std::string_view value = equals == std::string_view::npos ? "" : entry.substr(equals + 1);
  for (const Key& key : kKeys) {
    if (key.name != name || key.kinds.find(letter_of(flow.kind)) == std::string_view::npos) continue;
    if (!value.empty() && key.read(value, flow)) return {};
    return refused(fmt::format("{}={} is not {}", name, value.substr(0, 80), key.range));
  }
  return refused(fmt::format("{} has no key \"{}\"; its keys are {}", experiment::name_of(flow.kind),
                             name.substr(0, 80), keys_of(flow.kind)));
}

}  // namespace

Result<FlowSpec> parse_flow(std::string_view text) {
  FlowSpec flow;
  std::set<std::string_view> seen;
  for (bool first = true;; first = false) {
    const std::size_t comma = text.find(',');
    const std::string_view entry = text.substr(0, comma);
    if (first && entry.find('=') == std::string_view::npos) {
      const Result<FlowKind> kind = experiment::parse_flow_kind(entry);
      if (!kind) return refused(kind.error().message);
      flow.kind = *kind;
    } else {
      const std::string_view name = entry.substr(0, entry.find('='));
      if (!seen.insert(name).second) return refused(fmt::format("{} is given twice", name.substr(0, 80)));
      if (Result<void> read = read_entry(entry, flow); !read) return read.error();
    }
    if (comma == std::string_view::npos) break;
    text.remove_prefix(comma + 1);
  }
  const bool has_rate = flow.connection.queue_pair.rate.limited();
  if (has_rate && flow.connection.rate_mode == RateMode::Automatic) flow.connection.rate_mode = RateMode::Fixed;
  if (has_rate && flow.connection.rate_mode != RateMode::Fixed)
    return refused(fmt::format("controller={} finds the rate by itself; give maxrate instead of rate",
                               to_string(flow.connection.rate_mode)));
  if (!has_rate && flow.connection.rate_mode == RateMode::Fixed) return refused("controller=fixed needs a rate");
  return flow;
}

}  // namespace sdr::cli

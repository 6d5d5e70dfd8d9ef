#include "simulation/path_spec.hpp"

#include <fmt/format.h>

#include <chrono>
#include <string>

namespace sdr::simulation {
namespace {

using namespace std::chrono_literals;

Error refused(std::string_view text, std::string_view why) {
  return {ErrorCode::InvalidArgument, fmt::format("change \"{}\": {}", text.substr(0, 80), why)};
}

std::string_view key_of(std::string_view entry) {
  return entry.substr(0, entry.find('='));
}

// Calls take(entry) for each of a list with commas.
template <typename Take>
void each_entry(std::string_view text, Take&& take) {
  for (;;) {
    const std::size_t comma = text.find(',');
    take(text.substr(0, comma));
    if (comma == std::string_view::npos) return;
    text.remove_prefix(comma + 1);
  }
}

bool names_key(std::string_view text, std::string_view key) {
  bool named = false;
  each_entry(text, [&](std::string_view entry) { named = named || key_of(entry) == key; });
  return named;
}

// `base` with what `keys` says instead. Its text form is complete, and a key must not be in a text twice.
Result<LinkSpec> overlaid(const LinkSpec& base, std::string_view keys) {
  std::string text(keys);
  each_entry(to_string(base), [&](std::string_view entry) {
    if (!names_key(keys, key_of(entry))) text += fmt::format(",{}", entry);
  });
  return LinkSpec::parse(text);
}

}  // namespace

Result<void> PathSpec::add_change(std::string_view text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos) return refused(text, "is not TIME:KEYS, such as 10s:rate=100Mbit");
  const Result<Duration> at = parse_duration(text.substr(0, colon));
  if (!at || *at < Duration::zero() || *at > Duration(24h)) {
    return refused(text, "the time is not one from 0s to 24h, such as 10s");
  }
  const std::string_view keys = text.substr(colon + 1);
  for (const std::string_view fixed : {"queue", "seed", "mtu", "outage", "trace"}) {
    if (names_key(keys, fixed)) {
      return refused(
          text, fmt::format("{} cannot change; rtt, rate, loss, lossback, burst, reorder, dup, jitter and losssize can",
                            fixed));
    }
  }
  if (changes.size() == kMostChanges) return refused(text, fmt::format("there are {} already", kMostChanges));
  if (!changes.empty() && *at < changes.back().at) return refused(text, "is earlier than the change before it");
  const Result<LinkSpec> after = overlaid(changes.empty() ? link : changes.back().link, keys);
  if (!after) return refused(text, after.error().message);
  changes.push_back({*at, *after});
  return {};
}

}  // namespace sdr::simulation

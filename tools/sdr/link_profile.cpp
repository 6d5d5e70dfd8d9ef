#include "sdr/link_profile.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <optional>

namespace sdr::cli {
namespace {

constexpr std::size_t kLargestFile = std::size_t{1} << 20;
constexpr std::size_t kMostPayloads = 1000;
constexpr double kLongestRttMs = 3.6e6;
constexpr double kMostPackets = 1e15;

Error refused(std::string message) {
  return {ErrorCode::InvalidArgument, std::move(message)};
}

std::string shown(const Json& value) {
  std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  constexpr std::size_t kLongest = 40;
  return text.size() <= kLongest ? text : text.substr(0, kLongest) + "...";
}

// An object of the file, whose fields are taken one by one. The first thing that is wrong is kept; taking goes on with
// zeros.
class Fields {
 public:
  Fields(const Json& object, std::string where, std::initializer_list<std::string_view> known)
      : object_(object), where_(std::move(where)) {
    if (!object.is_object()) fail(fmt::format("{} {} is not an object", label(""), shown(object)));
    if (error_) return;
    for (const auto& [name, value] : object.items()) {
      if (std::find(known.begin(), known.end(), name) != known.end()) continue;
      std::string names;
      for (const std::string_view one : known) names += (names.empty() ? "" : ", ") + std::string(one);
      fail(fmt::format("unknown field {}; there are {}", label(name), names));
    }
  }

  const Json& take(std::string_view name) {
    static const Json nothing;
    if (error_) return nothing;
    const auto found = object_.find(std::string(name));
    if (found != object_.end()) return *found;
    fail(fmt::format("field {} is missing", label(name)));
    return nothing;
  }

  double number(std::string_view name, double least, double most) {
    const Json& value = take(name);
    if (error_) return 0;
    // Written so that what is not a number is refused as well.
    if (value.is_number() && value.get<double>() >= least && value.get<double>() <= most) return value.get<double>();
    fail(fmt::format("field {} {} is not a number from {} to {}", label(name), shown(value), least, most));
    return 0;
  }

  std::uint64_t whole(std::string_view name, double least, double most) {
    const double value = number(name, least, most);
    if (!error_ && !take(name).is_number_unsigned()) {
      fail(fmt::format("field {} {} is not a whole number from {} to {}", label(name), shown(take(name)), least, most));
    }
    return error_ ? 0 : static_cast<std::uint64_t>(value);
  }

  void fail(std::string message) {
    if (!error_) error_ = refused(std::move(message));
  }
  [[nodiscard]] const std::optional<Error>& error() const { return error_; }

 private:
  [[nodiscard]] std::string label(std::string_view name) const {
    if (name.empty()) return where_.empty() ? "the profile" : where_;
    return where_.empty() ? std::string(name) : fmt::format("{}.{}", where_, name);
  }

  const Json& object_;
  std::string where_;
  std::optional<Error> error_;
};

Duration from_milliseconds(double ms) {
  return Duration(std::llround(ms * 1e6));
}

Result<void> take_rtt(const Json& json, LinkProfile& profile) {
  Fields rtt(json, "rtt_ms", {"min", "p50", "p99"});
  const double least = rtt.number("min", 0, kLongestRttMs);
  const double median = rtt.number("p50", least, kLongestRttMs);
  const double high = rtt.number("p99", median, kLongestRttMs);
  if (rtt.error()) return *rtt.error();
  profile.rtt_min = from_milliseconds(least);
  profile.rtt_p50 = from_milliseconds(median);
  profile.rtt_p99 = from_milliseconds(high);
  return {};
}

Result<LinkProfile::Payload> take_payload(const Json& json, std::size_t index, std::uint64_t least_bytes) {
  Fields fields(json, fmt::format("payloads[{}]", index), {"bytes", "packets", "loss", "mean_burst", "reorder"});
  LinkProfile::Payload payload;
  // Ascending, so that no size is there twice.
  payload.bytes = {fields.whole("bytes", static_cast<double>(least_bytes), 65535)};
  payload.packets = fields.whole("packets", 1, kMostPackets);
  payload.loss = fields.number("loss", 0, 1);
  payload.mean_burst = fields.number("mean_burst", 1, 1e6);
  payload.reorder = fields.number("reorder", 0, 1);
  if (fields.error()) return *fields.error();
  return payload;
}

Result<void> take_payloads(const Json& json, LinkProfile& profile) {
  if (!json.is_array() || json.empty() || json.size() > kMostPayloads) {
    return refused(fmt::format("field payloads {} is not an array of 1 to {} entries", shown(json), kMostPayloads));
  }
  for (const Json& entry : json) {
    const std::uint64_t least = profile.payloads.empty() ? 1 : profile.payloads.back().bytes.count + 1;
    const Result<LinkProfile::Payload> payload = take_payload(entry, profile.payloads.size(), least);
    if (!payload) return payload.error();
    profile.payloads.push_back(*payload);
  }
  return {};
}

Error in_file(const std::string& path, const Error& error) {
  return {error.code, fmt::format("link profile {}: {}", path, error.message)};
}

}  // namespace

Result<LinkProfile> LinkProfile::parse(std::string_view text) {
  Json json;
  try {
    json = Json::parse(text);
  } catch (const Json::parse_error& error) {
    return refused(fmt::format("is no JSON: it breaks off or is wrong at byte {} of {}", error.byte, text.size()));
  }
  Fields fields(json, "", {"version", "rtt_ms", "rate_bits_per_second", "payloads"});
  // First: a later version may have other fields.
  if (json.is_object() && json.contains("version") && json["version"] != kVersion) {
    return refused(fmt::format("field version {} is not {}", shown(json["version"]), kVersion));
  }
  fields.whole("version", kVersion, kVersion);
  LinkProfile profile;
  const Json& rtt = fields.take("rtt_ms");
  profile.rate = {fields.number("rate_bits_per_second", 1e3, 1e15)};
  const Json& payloads = fields.take("payloads");
  if (fields.error()) return *fields.error();
  if (Result<void> taken = take_rtt(rtt, profile); !taken) return taken.error();
  if (Result<void> taken = take_payloads(payloads, profile); !taken) return taken.error();
  return profile;
}

Result<LinkProfile> LinkProfile::load(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text;
  if (file) {
    text.resize(kLargestFile + 1);
    file.read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(static_cast<std::size_t>(file.gcount()));
  }
  // A directory opens, and cannot be read.
  if (!file.is_open() || file.bad()) {
    return in_file(path, {ErrorCode::System, fmt::format("cannot be read: {}", std::strerror(errno))});
  }
  if (text.size() > kLargestFile) {
    return in_file(path, refused(fmt::format("is longer than {}", to_string(Bytes{kLargestFile}))));
  }
  Result<LinkProfile> profile = parse(text);
  if (!profile) return in_file(path, profile.error());
  return profile;
}

Json LinkProfile::to_json() const {
  Json list = Json::array();
  for (const Payload& payload : payloads) {
    list.push_back({{"bytes", payload.bytes.count},
                    {"packets", payload.packets},
                    {"loss", payload.loss},
                    {"mean_burst", payload.mean_burst},
                    {"reorder", payload.reorder}});
  }
  return {{"version", kVersion},
          {"rtt_ms", {{"min", milliseconds(rtt_min)}, {"p50", milliseconds(rtt_p50)}, {"p99", milliseconds(rtt_p99)}}},
          {"rate_bits_per_second", rate.bits_per_second},
          {"payloads", list}};
}

Result<LinkProfile::Payload> LinkProfile::payload_of(Bytes bytes) const {
  std::string sizes;
  for (const Payload& payload : payloads) {
    if (payload.bytes == bytes) return payload;
    sizes += (sizes.empty() ? "" : ", ") + std::to_string(payload.bytes.count);
  }
  return refused(fmt::format("mtu {} bytes is none of the payloads in the link profile: {}", bytes.count, sizes));
}

const LinkProfile::Payload& LinkProfile::payload_up_to(Bytes bytes) const {
  const Payload* found = &payloads.front();
  for (const Payload& payload : payloads) {
    if (payload.bytes <= bytes) found = &payload;
  }
  return *found;
}

}  // namespace sdr::cli

#include "sdr/link_profile.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "sdr/json_fields.hpp"

namespace sdr::cli {
namespace {

constexpr const char* kFile = "the profile";
constexpr std::size_t kLargestFile = std::size_t{1} << 20;
constexpr std::size_t kMostPayloads = 1000;
constexpr double kLongestRttMs = 3.6e6;
constexpr double kMostPackets = 1e15;

Error refused(std::string message) {
  return {ErrorCode::InvalidArgument, std::move(message)};
}

Duration from_milliseconds(double ms) {
  return Duration(std::llround(ms * 1e6));
}

Result<void> take_rtt(const Json& json, LinkProfile& profile) {
  JsonFields rtt(json, kFile, "rtt_ms", {"min", "p50", "p99"});
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
  JsonFields fields(json, kFile, fmt::format("payloads[{}]", index),
                    {"bytes", "packets", "loss", "mean_burst", "reorder"});
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
  const Result<Json> parsed = parse_json(text);
  if (!parsed) return parsed.error();
  const Json& json = *parsed;
  JsonFields fields(json, kFile, "", {"version", "rtt_ms", "rate_bits_per_second", "payloads"});
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
  const Result<std::string> text = read_whole_file(path, kLargestFile);
  if (!text) return in_file(path, text.error());
  Result<LinkProfile> profile = parse(*text);
  if (!profile) return in_file(path, profile.error());
  return profile;
}

LinkProfile LinkProfile::learned(const LinkEstimate& link, Bytes payload, Bandwidth pace) {
  LinkProfile profile;
  profile.rtt_min = link.rtt_min;
  profile.rtt_p50 = std::max(link.rtt_smoothed, link.rtt_min);
  profile.rtt_p99 = profile.rtt_p50 + 4 * link.rtt_variance;
  profile.rate = link.delivery_rate.limited() ? link.delivery_rate : pace;
  profile.payloads = {{.bytes = payload,
                       .packets = static_cast<std::uint64_t>(std::max(1.0, link.packets)),
                       .loss = link.loss,
                       .mean_burst = link.burst}};
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

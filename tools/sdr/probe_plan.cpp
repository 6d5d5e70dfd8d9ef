#include "sdr/probe_plan.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "sdk/pacer.hpp"
#include "sdr/session.hpp"
#include "transport/udp_socket.hpp"

namespace sdr::cli {
namespace {

constexpr double kLeastRate = 1e3;
constexpr double kMostRate = 1e13;
constexpr Duration kLongest = std::chrono::hours(24);

Result<void> within(std::string_view what, std::uint64_t value, std::uint64_t least, std::uint64_t most) {
  if (value >= least && value <= most) return {};
  return Error{ErrorCode::InvalidArgument, fmt::format("{} {} is not from {} to {}", what, value, least, most)};
}

}  // namespace

std::uint64_t ProbePlan::packets_of(std::uint32_t payload) const {
  if (packets != 0) return packets * flows;
  const double seconds = static_cast<double>(duration.count()) / 1e9;
  const double all = std::ceil(rate.bits_per_second * seconds / (8.0 * (payload + overhead)));
  return std::max<std::uint64_t>(static_cast<std::uint64_t>(all), flows);
}

ProbeOrder ProbePlan::order_of(std::uint32_t payload) const {
  const std::uint64_t batch = rate.bytes_in(sdk::kBatchTime).count / (payload + overhead) / flows;
  const std::uint64_t most =
      std::min(transport::UdpSocket::kMaxSegments, transport::UdpSocket::kMaxBatchBytes / payload);
  return {.flows = flows, .quantum = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(batch, 1, most))};
}

std::optional<simulation::LinkSpec> ProbePlan::link_spec() const {
  if (link.empty()) return std::nullopt;
  return *simulation::LinkSpec::parse(link);
}

Result<void> ProbePlan::check() const {
  if (Result<void> ok = within("flows", flows, 1, kMostFlows); !ok) return ok;
  if (Result<void> ok = within("trials", trials, 1, kMostTrials); !ok) return ok;
  if (Result<void> ok = within("number of payload sizes", payloads.size(), 1, kMostPayloads); !ok) return ok;
  if (!(rate.bits_per_second >= kLeastRate && rate.bits_per_second <= kMostRate)) {
    return Error{ErrorCode::InvalidArgument,
                 fmt::format("rate {} is not from {} to {}", to_string(rate), to_string(Bandwidth{kLeastRate}),
                             to_string(Bandwidth{kMostRate}))};
  }
  if (duration <= Duration(0) || duration > kLongest) {
    return Error{ErrorCode::InvalidArgument, fmt::format("duration {} of a trial is not above zero and at most {}",
                                                         to_string(duration), to_string(kLongest))};
  }
  if (Result<void> ok = within("packets of a flow", packets, 0, kMostPackets); !ok) return ok;
  std::uint32_t least = kLeastPayload;
  for (const std::uint32_t payload : payloads) {
    if (Result<void> ok = within("payload", payload, kLeastPayload, kMostPayload); !ok) return ok;
    if (payload < least) {
      return Error{ErrorCode::InvalidArgument, fmt::format("payload sizes do not ascend at {}", payload)};
    }
    least = payload + 1;
    if (const std::uint64_t all = packets_of(payload); all > kMostPackets) {
      return Error{
          ErrorCode::InvalidArgument,
          fmt::format("a trial of {} packets of {} bytes is more than {}: fewer packets, a shorter duration or "
                      "a lower rate will do",
                      all, payload, kMostPackets)};
    }
  }
  const Result<simulation::LinkSpec> spec = simulation::LinkSpec::parse(link);
  return spec ? Result<void>() : spec.error();
}

Json ProbePlan::to_json() const {
  return {{"payloads", payloads},
          {"flows", flows},
          {"trials", trials},
          {"packets", packets},
          {"duration_ns", static_cast<std::uint64_t>(duration.count())},
          {"rate_bits_per_second", rate.bits_per_second},
          {"overhead", overhead},
          {"link", link},
          {"timeout_ns", static_cast<std::uint64_t>(timeout.count())},
          {"token", token}};
}

Result<ProbePlan> ProbePlan::from_json(const Json& json) {
  const auto flows = get_number(json, "flows");
  const auto trials = get_number(json, "trials");
  const auto packets = get_number(json, "packets");
  const auto duration = get_number(json, "duration_ns");
  const auto rate = get_real(json, "rate_bits_per_second");
  const auto overhead = get_number(json, "overhead");
  const auto link = get_text(json, "link");
  const auto timeout = get_number(json, "timeout_ns");
  const auto token = get_number(json, "token");
  if (!rate) return rate.error();
  if (!link) return link.error();
  for (const auto* number : {&flows, &trials, &packets, &duration, &overhead, &timeout, &token}) {
    if (!*number) return number->error();
  }
  // Before they are made narrower.
  if (Result<void> ok = within("flows", *flows, 1, kMostFlows); !ok) return ok.error();
  if (Result<void> ok = within("trials", *trials, 1, kMostTrials); !ok) return ok.error();
  if (Result<void> ok = within("header bytes", *overhead, 28, 128); !ok) return ok.error();
  const auto longest = static_cast<std::uint64_t>(kLongest.count());
  ProbePlan plan{.flows = static_cast<std::uint32_t>(*flows),
                 .trials = static_cast<std::uint32_t>(*trials),
                 .packets = *packets,
                 .duration = Duration(static_cast<std::int64_t>(std::min(*duration, longest + 1))),
                 .rate = {*rate},
                 .overhead = static_cast<std::uint32_t>(*overhead),
                 .link = *link,
                 .timeout = Duration(static_cast<std::int64_t>(std::clamp<std::uint64_t>(*timeout, 1, longest))),
                 .token = *token};
  const Json payloads = json.value("payloads", Json::array());
  if (!payloads.is_array() || payloads.size() > kMostPayloads) {
    return Error{ErrorCode::Protocol, "the field \"payloads\" of the peer's message is not a list of sizes"};
  }
  for (const Json& payload : payloads) {
    const std::uint64_t bytes = payload.is_number_unsigned() ? payload.get<std::uint64_t>() : 0;
    if (Result<void> ok = within("payload", bytes, kLeastPayload, kMostPayload); !ok) return ok.error();
    plan.payloads.push_back(static_cast<std::uint32_t>(bytes));
  }
  if (Result<void> ok = plan.check(); !ok) return ok.error();
  return plan;
}

}  // namespace sdr::cli

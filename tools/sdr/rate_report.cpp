#include "sdr/rate_report.hpp"

#include <fmt/format.h>

namespace sdr::cli {
namespace {

Json rate_or_null(Bandwidth rate) {
  return rate.limited() ? Json(rate.bits_per_second) : Json(nullptr);
}

bool controlled(const RateStatus& status) {
  return status.controller != RateMode::Fixed;
}

}  // namespace

Json rate_json(const RateStatus& status) {
  Json json;
  json["controller"] = to_string(status.controller);
  json["state"] = status.state;
  json["pace_bits_per_second"] = rate_or_null(status.pace);
  json["bandwidth_bits_per_second"] = rate_or_null(status.bandwidth);
  json["window_bytes"] = status.window == 0 ? Json(nullptr) : Json(status.window);
  json["rtt_min_ms"] = controlled(status) ? Json(milliseconds(status.rtt_min)) : Json(nullptr);
  json["queue_delay_ms"] = controlled(status) ? Json(milliseconds(status.queue_delay)) : Json(nullptr);
  json["packets_lost_random"] = controlled(status) ? Json(status.packets_lost_random) : Json(nullptr);
  json["packets_lost_congestion"] = controlled(status) ? Json(status.packets_lost_congestion) : Json(nullptr);
  json["congestion_marks"] = controlled(status) ? Json(status.congestion_marks) : Json(nullptr);
  return json;
}

std::string rate_line(const RateStatus& status) {
  if (!controlled(status))
    return status.pace.limited() ? fmt::format("{}, as given", to_string(status.pace)) : "as fast as it goes";
  const std::string marks = status.congestion_marks == 0 ? "" : fmt::format(", {} marked", status.congestion_marks);
  return fmt::format("{}, {} at {}, least RTT {}, queue {}; lost at random {}, to congestion {}{}",
                     to_string(status.controller), status.state, to_string(status.bandwidth), to_string(status.rtt_min),
                     to_string(status.queue_delay), status.packets_lost_random, status.packets_lost_congestion, marks);
}

}  // namespace sdr::cli

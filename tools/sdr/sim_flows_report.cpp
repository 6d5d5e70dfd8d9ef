#include "sdr/sim_flows_report.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <limits>

namespace sdr::cli {
namespace {

using namespace std::chrono_literals;
using experiment::FlowResult;
using experiment::SharedResult;

constexpr Duration kWindow = 1s;  // of fairness over time
constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

double mbps(double bytes_per_second) {
  return bytes_per_second * 8e-6;
}

double share(double part, double whole) {
  return whole > 0 ? part / whole : 0;
}

double lost_share(const FlowResult& flow) {
  return share(static_cast<double>(flow.data.refused + flow.data.perished), static_cast<double>(flow.data.packets));
}

struct Windows {
  double least = kUnknown;
  double mean = kUnknown;
};

// Jain's index of each whole second in which all flows are there.
Windows jain_of_windows(const SharedResult& result) {
  const auto common = result.common();
  Windows windows;
  if (!common) return windows;
  double sum = 0;
  int count = 0;
  for (Duration from = common->first; from + kWindow <= common->second; from += kWindow, ++count) {
    const double jain = result.jain(from, from + kWindow);
    windows.least = count == 0 ? jain : std::min(windows.least, jain);
    sum += jain;
  }
  if (count > 0) windows.mean = sum / count;
  return windows;
}

double jain_of_all(const SharedResult& result) {
  const auto common = result.common();
  return common ? result.jain(common->first, common->second) : kUnknown;
}

Json flow_json(const SharedResult& result, std::size_t i, bool series) {
  const FlowResult& flow = result.flows[i];
  Json json;
  json["name"] = flow.name;
  json["start_s"] = milliseconds(flow.start) / 1e3;
  json["stop_s"] = milliseconds(flow.stop) / 1e3;
  json["base_rtt_ms"] = milliseconds(flow.base_rtt);
  json["goodput_mbps"] = mbps(result.goodput(i, flow.start, flow.stop));
  json["rate_mbps"] = mbps(result.rate(i, flow.start, flow.stop));
  json["share"] = share(result.rate(i, flow.start, flow.stop), result.rate_of_all(flow.start, flow.stop));
  json["share_of_capacity"] = share(result.rate(i, flow.start, flow.stop), result.capacity(flow.start, flow.stop));
  json["payload_bytes"] = flow.payload_bytes;
  json["completed_s"] = flow.completed ? Json(milliseconds(*flow.completed) / 1e3) : Json(nullptr);
  json["packets_sent"] = flow.data.packets;
  json["dropped_by_queue"] = flow.data.refused;
  json["lost_behind"] = flow.data.perished;
  json["loss"] = lost_share(flow);
  json["ecn_marks"] = flow.data.marked;
  json["retransmitted"] = flow.retransmitted;
  json["timeouts"] = flow.timeouts;
  json["rtt_ms"] = {{"mean", milliseconds(flow.rtt.mean())},
                    {"p50", milliseconds(flow.rtt.percentile(0.5))},
                    {"p95", milliseconds(flow.rtt.percentile(0.95))}};
  json["error"] = flow.error ? Json(flow.error->message) : Json(nullptr);
  if (!series) return json;
  const double seconds = milliseconds(result.interval) / 1e3;
  Json& out = json["series"];
  std::vector<double> goodput(flow.series.payload_bytes.size());
  std::vector<double> rate(flow.series.wire_bytes.size());
  std::vector<Json> rtt(rate.size());
  for (std::size_t n = 0; n < rate.size(); ++n) {
    const double before = n == 0 ? 0 : flow.series.payload_bytes[n - 1];
    goodput[n] = mbps((flow.series.payload_bytes[n] - before) / seconds);
    rate[n] = mbps(flow.series.wire_bytes[n] / seconds);
    rtt[n] = number_or_null(flow.series.rtt_sum_ms[n] / flow.series.packets[n]);
  }
  std::vector<double> pace(flow.series.pace);
  for (double& value : pace) value *= 1e-6;
  out["rate_mbps"] = rate;
  out["goodput_mbps"] = goodput;
  out["rtt_ms"] = rtt;
  out["pace_mbps"] = pace;
  out["window_bytes"] = flow.series.window;
  out["state"] = flow.series.state;
  return json;
}

}  // namespace

Json flows_json(const experiment::SharedTrial& trial, const SharedResult& result, bool series,
                const std::optional<SimSpeed>& speed) {
  const Duration end = result.duration;
  const Windows windows = jain_of_windows(result);
  Json json;
  json["link"] = simulation::to_string(result.path.link);
  json["queue"] = simulation::to_string(result.path.queue);
  for (const simulation::PathChange& change : result.path.changes) {
    json["changes"].push_back({{"at_s", milliseconds(change.at) / 1e3}, {"link", simulation::to_string(change.link)}});
  }
  json["seed"] = trial.seed;
  json["duration_s"] = milliseconds(end) / 1e3;
  json["utilisation"] = result.utilisation(0ns, end);
  json["jain"] = number_or_null(jain_of_all(result));
  json["jain_1s"] = {{"least", number_or_null(windows.least)}, {"mean", number_or_null(windows.mean)}};
  json["queue_ms"] = {{"mean", milliseconds(result.mean_queue(0ns, end))},
                      {"p95", milliseconds(result.queue_percentile(0.95, 0ns, end))},
                      {"max", milliseconds(result.data.queue.longest_wait)}};
  json["drops"] = {{"queue_full", result.data.queue.tail_drops},
                   {"codel", result.data.queue.codel_drops},
                   {"policer", result.data.queue.policed},
                   {"loss", result.data.lost},
                   {"outage", result.data.lost_in_outage}};
  json["ecn_marks"] = result.data.queue.marked;
  for (std::size_t i = 0; i < result.flows.size(); ++i) json["flows"].push_back(flow_json(result, i, series));
  if (series) {
    json["interval_s"] = milliseconds(result.interval) / 1e3;
    std::vector<double> queue;
    for (Duration at{0}; at < end; at += result.interval) {
      queue.push_back(milliseconds(result.mean_queue(at, std::min(end, at + result.interval))));
    }
    json["queue_series_ms"] = queue;
  }
  if (speed) {
    json["speed"] = {{"wall_seconds", milliseconds(speed->wall) / 1e3},
                     {"cpu_seconds", milliseconds(speed->cpu) / 1e3},
                     {"packets_per_cpu_second",
                      share(static_cast<double>(result.packets), std::max(milliseconds(speed->cpu), 1e-6) / 1e3)}};
  }
  return json;
}

void print_flows(const SharedResult& result, const SimSpeed& speed) {
  const Duration end = result.duration;
  fmt::print("{:<18}{:>13}{:>8}{:>13}{:>9}{:>11}{:>10}{:>10}  {}\n", "flow", "goodput", "share", "sent", "loss",
             "again", "RTT", "95 %", "time");
  for (std::size_t i = 0; i < result.flows.size(); ++i) {
    const FlowResult& flow = result.flows[i];
    const Bandwidth goodput{result.goodput(i, flow.start, flow.stop) * 8};
    fmt::print("{:<18}{:>13}{:>7.1f}%{:>13}{:>8.2f}%{:>11}{:>10}{:>10}  {}{}\n", flow.name.substr(0, 17),
               to_string(goodput),
               100 * share(result.rate(i, flow.start, flow.stop), result.rate_of_all(flow.start, flow.stop)),
               flow.data.packets, 100 * lost_share(flow), flow.retransmitted, to_string(flow.rtt.mean()),
               to_string(flow.rtt.percentile(0.95)), to_string(flow.start),
               flow.completed ? fmt::format(", complete after {}", to_string(*flow.completed))
                              : fmt::format(" to {}", to_string(flow.stop)));
  }
  const Windows windows = jain_of_windows(result);
  Table table;
  table.row("path", simulation::to_string(result.path.link));
  table.row("queue", simulation::to_string(result.path.queue));
  table.row("used", fmt::format("{:.1f} % of its capacity", 100 * result.utilisation(0ns, end)));
  table.row("waiting",
            fmt::format("mean {}, 95 % {}, most {}", to_string(result.mean_queue(0ns, end)),
                        to_string(result.queue_percentile(0.95, 0ns, end)), to_string(result.data.queue.longest_wait)));
  const simulation::PathCounts& counts = result.data;
  table.row("dropped", fmt::format("{} by a full queue, {} by CoDel, {} by the policer, {} lost, {} in outages; "
                                   "{} marked",
                                   counts.queue.tail_drops, counts.queue.codel_drops, counts.queue.policed, counts.lost,
                                   counts.lost_in_outage, counts.queue.marked));
  if (result.flows.size() > 1 && result.common()) {
    table.row("Jain's index", fmt::format("{:.3f} while all are there; of single seconds the least {:.3f}, mean {:.3f}",
                                          jain_of_all(result), windows.least, windows.mean));
  }
  table.row("speed", fmt::format("{:.2f} Mpacket/s on a core, {} in all",
                                 share(static_cast<double>(result.packets), milliseconds(speed.cpu) * 1e3),
                                 to_string(speed.wall)));
  table.print();
}

}  // namespace sdr::cli

#include "sdr/probe_report.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

#include "sdr/completion_times.hpp"

namespace sdr::cli {
namespace {

constexpr double kMostBurst = 1e6;  // of a link profile
constexpr double kFellShort = 0.95;

double gbps(double bits_per_second) {
  return bits_per_second / 1e9;
}

Json rtt_json(const std::vector<double>& sorted) {
  if (sorted.empty()) return nullptr;
  return {{"min", sorted.front()},
          {"p50", nearest_rank(sorted, 0.5)},
          {"p99", nearest_rank(sorted, 0.99)},
          {"max", sorted.back()},
          {"echoes", sorted.size()}};
}

std::string rtt_text(const std::vector<double>& sorted) {
  if (sorted.empty()) return "no echo";
  return fmt::format("min {}, p50 {}, p99 {} ({} echoes)", in_ms(sorted.front()), in_ms(nearest_rank(sorted, 0.5)),
                     in_ms(nearest_rank(sorted, 0.99)), sorted.size());
}

Json five_json(const FiveNumbers& five, double unit) {
  return {{"min", five.min / unit},
          {"p25", five.p25 / unit},
          {"p50", five.p50 / unit},
          {"p75", five.p75 / unit},
          {"max", five.max / unit}};
}

Json runs_json(const LossRuns& runs) {
  Json bins = Json::array();
  for (std::size_t i = 0; i < LossRuns::kBins; ++i) {
    if (runs.bins()[i] == 0) continue;
    bins.push_back({{"from", LossRuns::bin_from(i)}, {"to", LossRuns::bin_to(i)}, {"runs", runs.bins()[i]}});
  }
  return {{"mean", runs.mean()}, {"max", runs.longest()}, {"runs", runs.runs()}, {"lengths", bins}};
}

Json payload_json(const ProbeStatistics& payload) {
  const FlowOutcome& total = payload.total();
  const Interval interval = payload.loss_interval();
  Json by_trial = Json::array();
  for (std::size_t i = 0; i < payload.trial_losses().size(); ++i) {
    by_trial.push_back({{"loss", payload.trial_losses()[i]}, {"rate_gbps", gbps(payload.received_rates()[i])}});
  }
  Json flow_loss = five_json(payload.flow_losses(), 1);
  flow_loss["samples"] = payload.samples();
  flow_loss["without_loss"] = payload.samples_without_loss();
  flow_loss["packets_of_sample"] = payload.packets_of_sample();
  return {{"bytes", payload.payload()},
          {"packets", total.sent},
          {"arrived", total.arrived},
          {"lost", total.lost},
          {"host_drops", total.host_drops},
          {"duplicates", total.duplicates},
          {"reordered", total.reordered},
          {"loss", payload.loss()},
          {"loss_low", interval.low},
          {"loss_high", interval.high},
          {"flow_loss", flow_loss},
          {"mean_burst", payload.mean_burst()},
          {"bursts_in_order", runs_json(payload.in_order())},
          {"bursts_in_flow", runs_json(payload.in_flow())},
          {"reorder", payload.reorder()},
          {"rate_gbps", five_json(payload.received_rate(), 1e9)},
          {"sent_gbps", five_json(payload.sent_rate(), 1e9)},
          {"by_trial", by_trial}};
}

std::string loss_text(double loss) {
  return loss == 0 ? "0" : fmt::format("{:.2e}", loss);
}

void print_losses(const ProbeResult& result) {
  fmt::print("\n{:>8} {:>10} {:>9} {:>19} | {:>8} {:>8} {:>8} {:>8} {:>8} | {:>6} {:>8} {:>10} {:>9}\n", "payload",
             "packets", "loss", "95 % interval", "min", "p25", "p50", "p75", "max", "burst", "reorder", "Gbit/s",
             "host drop");
  for (const ProbeStatistics& payload : result.payloads) {
    const FiveNumbers five = payload.flow_losses();
    const Interval interval = payload.loss_interval();
    fmt::print("{:>8} {:>10} {:>9} {:>19} | {:>8} {:>8} {:>8} {:>8} {:>8} | {:>6.2f} {:>8} {:>10.4g} {:>9}\n",
               payload.payload(), payload.total().sent, loss_text(payload.loss()),
               fmt::format("{} to {}", loss_text(interval.low), loss_text(interval.high)), loss_text(five.min),
               loss_text(five.p25), loss_text(five.p50), loss_text(five.p75), loss_text(five.max), payload.mean_burst(),
               loss_text(payload.reorder()), gbps(payload.received_rate().p50), payload.total().host_drops);
  }
}

}  // namespace

Bandwidth ProbeReport::best_rate() const {
  double best = 0;
  for (const ProbeStatistics& payload : result_.payloads) best = std::max(best, payload.received_rate().p50);
  return {best};
}

std::vector<std::string> ProbeReport::notes() const {
  std::vector<std::string> notes;
  std::uint64_t dropped = 0;
  for (const ProbeStatistics& payload : result_.payloads) {
    dropped += payload.total().host_drops;
    const double asked = plan_.rate.bits_per_second * payload.payload() / (payload.payload() + plan_.overhead);
    const double sent = payload.sent_rate().p50;
    if (sent < kFellShort * asked) {
      notes.push_back(fmt::format("packets of {} bytes: this host sent {} of payload, not the {} asked for",
                                  payload.payload(), to_string(Bandwidth{sent}), to_string(Bandwidth{asked})));
    }
  }
  if (dropped != 0) {
    notes.push_back(
        fmt::format("the receiving host dropped {} packets for want of room in its sockets ({} each); they "
                    "count as arrived over the path",
                    dropped, to_string(Bytes{result_.receive_buffer})));
  }
  // Nothing that overflows in a socket is left over here: what remains is of the queues below.
  const std::uint64_t below = result_.receiver.backlog_drops + result_.receiver.interface_drops;
  if (below != 0) {
    notes.push_back(
        fmt::format("meanwhile the receiving host dropped {} packets of any program before they reached a "
                    "socket: the loss may hold some of them",
                    below));
  }
  const std::uint64_t out = result_.sender.interface_drops + result_.sender.send_buffer_drops;
  if (out != 0) {
    notes.push_back(
        fmt::format("meanwhile the sending host dropped {} packets of any program on their way out: the "
                    "loss may hold some of them",
                    out));
  }
  return notes;
}

void ProbeReport::print() const {
  Table table;
  table.row("peer", peer_);
  table.row("load", fmt::format("{} flows, {} trials of {} each, at {} with headers{}", plan_.flows, plan_.trials,
                                plan_.packets != 0 ? fmt::format("{} packets a flow", plan_.packets)
                                                   : to_string(plan_.duration),
                                to_string(plan_.rate), plan_.link.empty() ? "" : ", emulated link " + plan_.link));
  table.row("RTT, idle", rtt_text(result_.idle_rtt_ms));
  table.row("RTT, loaded", rtt_text(result_.loaded_rtt_ms));
  table.row("rate", fmt::format("{} of payload", to_string(best_rate())));
  table.print();
  print_losses(result_);
  fmt::print("min to max: losses of each flow in each trial\n");
  for (const std::string& note : notes()) fmt::print("note: {}\n", note);
  std::fflush(stdout);
}

Json ProbeReport::to_json() const {
  Json payloads = Json::array();
  for (const ProbeStatistics& payload : result_.payloads) payloads.push_back(payload_json(payload));
  return {{"peer", peer_},
          {"flows", plan_.flows},
          {"trials", plan_.trials},
          {"packets_of_flow", plan_.packets != 0 ? Json(plan_.packets) : Json(nullptr)},
          {"duration_ms", plan_.packets != 0 ? Json(nullptr) : Json(milliseconds(plan_.duration))},
          {"offered_gbps", gbps(plan_.rate.bits_per_second)},
          {"packet_overhead_bytes", plan_.overhead},
          {"link", plan_.link.empty() ? Json(nullptr) : Json(plan_.link)},
          {"rtt_ms", rtt_json(result_.idle_rtt_ms)},
          {"rtt_loaded_ms", rtt_json(result_.loaded_rtt_ms)},
          {"echoes_sent", result_.echoes_sent},
          {"rate_gbps", gbps(best_rate().bits_per_second)},
          {"payloads", payloads},
          {"send_refusals", result_.refused},
          {"receive_buffer_bytes", result_.receive_buffer},
          {"sender_host", result_.sender.to_json()},
          {"receiver_host", result_.receiver.to_json()},
          {"notes", notes()}};
}

Result<LinkProfile> ProbeReport::profile() const {
  constexpr double kLeastRate = 1e3;
  if (best_rate().bits_per_second < kLeastRate) {
    return Error{ErrorCode::PeerUnreachable,
                 fmt::format("too few packets reached {} for a rate: is UDP blocked on the way?", peer_)};
  }
  const auto rtt = [&](double share) { return Duration(std::llround(nearest_rank(result_.idle_rtt_ms, share) * 1e6)); };
  LinkProfile profile{.rtt_min = Duration(std::llround(result_.idle_rtt_ms.front() * 1e6)),
                      .rtt_p50 = rtt(0.5),
                      .rtt_p99 = rtt(0.99),
                      .rate = best_rate(),
                      .payloads = {}};
  for (const ProbeStatistics& payload : result_.payloads) {
    profile.payloads.push_back({.bytes = {payload.payload()},
                                .packets = payload.total().sent,
                                .loss = payload.loss(),
                                .mean_burst = std::min(payload.mean_burst(), kMostBurst),
                                .reorder = payload.reorder()});
  }
  return profile;
}

}  // namespace sdr::cli

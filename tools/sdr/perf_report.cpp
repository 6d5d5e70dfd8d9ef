#include "sdr/perf_report.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "sdr/rate_report.hpp"

namespace sdr::cli {
namespace {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

}  // namespace

PerfReportCard::PerfReportCard(const Path& path, const PerfPlan& plan, SenderResult sent,
                               const ReceiverResult& received)
    : path_(path),
      plan_(plan),
      sent_(std::move(sent)),
      received_(received),
      times_(std::exchange(sent_.completion_times, {})) {
  seconds_ = std::max(milliseconds(sent_.elapsed) / 1e3, 1e-9);
}

double PerfReportCard::ideal_ms() const {
  Bandwidth rate = path_.rate();
  const Bandwidth of_link = path_.link_spec().rate;
  if (of_link.limited() && (!rate.limited() || of_link < rate)) rate = of_link;
  if (!rate.limited()) return kUnknown;
  const Duration rtt = path_.emulated() ? path_.link_spec().rtt : sent_.rtt_min;
  return milliseconds(rate.time_for(plan_.size) + rtt);
}

// Without reliability nobody tells the sender; the receiver's count does.
std::uint64_t PerfReportCard::packets_lost() const {
  if (path_.scheme().scheme) return sent_.packets_lost;
  const std::uint64_t arrived = received_.packets_received + received_.duplicate_packets + received_.late_packets;
  return sent_.packets_sent > arrived ? sent_.packets_sent - arrived : 0;
}

double PerfReportCard::per_packet(std::uint64_t count, std::uint64_t packets) const {
  return packets == 0 ? kUnknown : static_cast<double>(count) / static_cast<double>(packets);
}

bool PerfReportCard::good() const {
  return received_.wrong == 0 && received_.writes == plan_.iterations;
}

std::string PerfReportCard::complaint() const {
  if (received_.wrong != 0) {
    return fmt::format("{} of {} Writes arrived with other bytes than were sent", received_.wrong, plan_.iterations);
  }
  return fmt::format("{} of {} messages missed chunks for {} and were given up: scheme none repairs nothing",
                     received_.lost, plan_.iterations, to_string(kLostAfter));
}

Json PerfReportCard::to_json() const {
  const double ideal = ideal_ms();
  const double bits = 8.0 * static_cast<double>(plan_.size.count) * static_cast<double>(received_.writes);
  const std::uint64_t arrived = received_.packets_received + received_.duplicate_packets;
  Json json;
  path_.scheme().add_to(json);
  json["size_bytes"] = plan_.size.count;
  json["iterations"] = plan_.iterations;
  json["warmup"] = plan_.warmup;
  json["inflight"] = plan_.inflight;
  json["completion_ms"] = times_.to_json();
  json["ideal_ms"] = number_or_null(ideal);
  json["slowdown"] = times_.slowdown(ideal);
  json["goodput_gbps"] = number_or_null(bits / seconds_ / 1e9);
  json["packet_rate_mpps"] = number_or_null(static_cast<double>(arrived) / seconds_ / 1e6);
  json["verified"] = plan_.verify ? Json(good()) : Json(nullptr);
  json["writes_complete"] = received_.writes;
  json["writes_wrong"] = received_.wrong;
  json["messages_lost"] = received_.lost;
  json["packets_sent"] = sent_.packets_sent;
  json["packets_lost"] = packets_lost();
  json["host_drops"] = received_.host_drops;
  json["duplicate_packets"] = received_.duplicate_packets;
  json["late_packets"] = received_.late_packets;
  json["chunks_sent"] = sent_.chunks_sent;
  json["chunks_retransmitted"] = sent_.chunks_retransmitted;
  json["parity_chunks_sent"] = sent_.parity_chunks_sent;
  json["chunks_recovered"] = received_.chunks_recovered;
  json["fallbacks"] = received_.fallbacks;
  json["rtt_ms"] = milliseconds(sent_.rtt_smoothed);
  json["rtt_min_ms"] = milliseconds(sent_.rtt_min);
  json["send_calls_per_packet"] = number_or_null(per_packet(sent_.send_calls, sent_.packets_sent));
  json["receive_calls_per_packet"] = number_or_null(per_packet(received_.receive_calls, arrived));
  json["mtu"] = path_.mtu();
  json["packet_overhead_bytes"] = sent_.packet_overhead;
  json["chunk_bytes"] = sent_.chunk_bytes;
  json["channels"] = path_.queue_pair_options().channels;
  json["rate_gbps"] = path_.rate().limited() ? Json(path_.rate().bits_per_second / 1e9) : Json(nullptr);
  json["rate_control"] = path_.scheme().scheme ? rate_json(sent_.rate) : Json(nullptr);
  json["link"] = path_.emulated() ? Json(path_.link()) : Json(nullptr);
  return json;
}

std::vector<std::string> PerfReportCard::offload_failures() const {
  std::vector<std::string> failures;
  if (!sent_.offload_failure.empty()) failures.push_back("sender: " + sent_.offload_failure);
  if (!received_.offload_failure.empty()) failures.push_back("receiver: " + received_.offload_failure);
  return failures;
}

void PerfReportCard::print() const {
  const double ideal = ideal_ms();
  const double writes = static_cast<double>(received_.writes);
  const double bits = 8.0 * static_cast<double>(plan_.size.count) * writes;
  const std::uint64_t arrived = received_.packets_received + received_.duplicate_packets;
  Table table;
  table.row("scheme", path_.scheme().text());
  table.row("Writes", fmt::format("{} of {}, {} at a time", plan_.iterations, to_string(plan_.size), plan_.inflight));
  table.row("path", fmt::format("packets of {} + {} B, chunks of {} B, rate {}{}", path_.mtu(), sent_.packet_overhead,
                                sent_.chunk_bytes, to_string(path_.rate()),
                                path_.emulated() ? ", emulated link " + path_.link() : ""));
  if (path_.scheme().scheme) table.row("rate", rate_line(sent_.rate));
  table.row("RTT", fmt::format("{}, at least {}", to_string(sent_.rtt_smoothed), to_string(sent_.rtt_min)));
  table.row("completion", times_.text());
  if (std::isfinite(ideal)) {
    table.row("slowdown", fmt::format("mean {:.3f}, p99 {:.3f} (against {}: payload at the rate, plus the RTT)",
                                      times_.mean_ms() / ideal, times_.percentile_ms(0.99) / ideal, in_ms(ideal)));
  }
  table.row("goodput", fmt::format("{}, {:.3f} Mpacket/s", bits > 0 ? to_string(Bandwidth{bits / seconds_}) : "nothing",
                                   static_cast<double>(arrived) / seconds_ / 1e6));
  table.row("packets",
            fmt::format("{} sent, {} lost ({} of them by this host), {} late, {} twice", sent_.packets_sent,
                        packets_lost(), received_.host_drops, received_.late_packets, received_.duplicate_packets));
  if (path_.scheme().scheme) {
    table.row("repairs", fmt::format("{} chunks sent again, {} recovered from parity, {} fallbacks",
                                     sent_.chunks_retransmitted, received_.chunks_recovered, received_.fallbacks));
  }
  if (arrived > 0) {
    table.row("system calls", fmt::format("{:.3f} a packet sent, {:.3f} a packet received",
                                          per_packet(sent_.send_calls, sent_.packets_sent),
                                          per_packet(received_.receive_calls, arrived)));
  }
  table.row("verified", !plan_.verify ? "not looked at (--no-verify)"
                        : good()      ? fmt::format("all {} Writes, byte for byte", received_.writes)
                                      : fmt::format("NO: {} wrong, {} lost", received_.wrong, received_.lost));
  table.print();
}

}  // namespace sdr::cli

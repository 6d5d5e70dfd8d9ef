#include "sdr/emulate_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

namespace sdr::cli {
namespace {

double seconds(Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

double microseconds(Duration duration) {
  return static_cast<double>(duration.count()) / 1e3;
}

double share(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

Duration mean(Duration sum, std::uint64_t count) {
  return count == 0 ? Duration(0) : sum / static_cast<std::int64_t>(count);
}

Json code_or_null(const std::optional<int>& code) {
  return code ? Json(*code) : Json(nullptr);
}

Json way_json(const ForwardCounts& way, std::uint64_t unread, Duration elapsed) {
  const simulation::PathCounts& path = way.path;
  const simulation::QueueCounts& queue = path.queue;
  const double time = std::max(seconds(elapsed), 1e-9);
  return {
      {"packets", path.packets},
      {"bytes", path.bytes},
      {"delivered_packets", path.delivered},
      {"delivered_bytes", path.delivered_bytes},
      {"delivered_mbps", static_cast<double>(path.delivered_bytes) * 8e-6 / time},
      {"drops",
       {{"loss", path.lost},
        {"outage", path.lost_in_outage},
        {"queue_full", queue.tail_drops},
        {"codel", queue.codel_drops},
        {"policer", queue.policed},
        {"no_memory", way.no_memory},
        {"unread", unread},
        {"refused", way.refused}}},
      {"ecn_marks", queue.marked},
      {"reordered", path.reordered},
      {"duplicated", path.duplicated},
      {"not_routable", way.not_routable},
      {"queue_bytes", {{"mean", path.queued_byte_seconds / time}, {"max", queue.most_bytes}}},
      {"wait_ms", {{"mean", milliseconds(mean(queue.waited, queue.sent))}, {"max", milliseconds(queue.longest_wait)}}},
      {"late_us",
       {{"mean", microseconds(mean(way.late.sum, way.late.packets))},
        {"max", microseconds(way.late.most)},
        {"limit", microseconds(way.late.limit)},
        {"share_beyond_limit", share(way.late.beyond_limit, way.late.packets)}}}};
}

std::string way_text(const Json& way) {
  const Json& drops = way["drops"];
  std::string why;
  for (const auto& [cause, count] : drops.items()) {
    if (count != 0) why += fmt::format("{}{} {}", why.empty() ? "" : ", ", count.get<std::uint64_t>(), cause);
  }
  return fmt::format(
      "{} packets, {} delivered ({:.1f} Mbit/s), dropped: {}, marked: {}; queue mean {:.0f} B, max {} B; "
      "late mean {:.0f} us, max {:.0f} us",
      way["packets"].get<std::uint64_t>(), way["delivered_packets"].get<std::uint64_t>(),
      way["delivered_mbps"].get<double>(), why.empty() ? "none" : why, way["ecn_marks"].get<std::uint64_t>(),
      way["queue_bytes"]["mean"].get<double>(), way["queue_bytes"]["max"].get<std::uint64_t>(),
      way["late_us"]["mean"].get<double>(), way["late_us"]["max"].get<double>());
}

}  // namespace

std::string too_slow(const EmulateResult& result) {
  const Lateness& limit = result.way[0].late;
  double late = 0;
  std::uint64_t unread = 0;
  for (std::size_t from = 0; from < 2; ++from) {
    late = std::max(late, share(result.way[from].late.beyond_limit, result.way[from].late.packets));
    unread += result.unread[from] + result.way[from].no_memory;
  }
  if (late <= kTolerableLateness && unread == 0) return "";
  return fmt::format(
      "this machine is too slow for this path: {:.1f} % of the packets were more than {:.0f} us late (at "
      "most {:.0f} % may be), and {} were dropped unread. What was measured is not the path that was "
      "asked for: lower the rate, or leave the machine more free cores",
      late * 100, microseconds(limit.limit), kTolerableLateness * 100, unread);
}

Json to_json(const EmulateResult& result) {
  Json changes = Json::array();
  for (const simulation::PathChange& change : result.spec.changes) {
    changes.push_back({{"at_s", seconds(change.at)}, {"link", to_string(change.link)}});
  }
  return {{"link", to_string(result.spec.link)},
          {"queue", to_string(result.spec.queue)},
          {"changes", changes},
          {"seconds", seconds(result.elapsed)},
          {"left_exit_code", code_or_null(result.code[0])},
          {"right_exit_code", code_or_null(result.code[1])},
          {"left_to_right", way_json(result.way[0], result.unread[0], result.elapsed)},
          {"right_to_left", way_json(result.way[1], result.unread[1], result.elapsed)},
          {"forwarder_cpu_share", seconds(result.cpu_time) / std::max(seconds(result.elapsed), 1e-9)},
          {"too_slow", !too_slow(result).empty()}};
}

void print_summary(const EmulateResult& result) {
  const Json json = to_json(result);
  fmt::print(stderr, "link            {}\nqueue           {}\n", json["link"].get<std::string>(),
             json["queue"].get<std::string>());
  fmt::print(stderr, "left to right   {}\n", way_text(json["left_to_right"]));
  fmt::print(stderr, "right to left   {}\n", way_text(json["right_to_left"]));
  fmt::print(stderr, "forwarder       {:.0f} % of a core for {:.1f} s\n",
             json["forwarder_cpu_share"].get<double>() * 100, json["seconds"].get<double>());
}

}  // namespace sdr::cli

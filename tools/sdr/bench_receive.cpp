#include "sdr/bench_receive.hpp"

#include <fmt/core.h>

#include <string>

#include "experiment/turnaround_speed.hpp"
#include "experiment/worker_speed.hpp"

namespace sdr::cli {

Json bench_worker(unsigned runs, Duration each) {
  const experiment::WorkerSpeed speed = experiment::measure_worker_speed(runs, each);
  return {{"runs", runs},
          {"in_order_mpps", speed.in_order_mpps},
          {"shuffled_mpps", speed.shuffled_mpps},
          {"one_packet_chunks_mpps", speed.one_packet_chunks_mpps},
          {"atomic_per_packet_mpps", speed.atomic_per_packet_mpps},
          {"atomic_shuffled_mpps", speed.atomic_shuffled_mpps}};
}

void print_bench_worker(const Json& report) {
  fmt::print("Receive worker, one core, million packets a second; medians of {} runs by turns\n",
             report["runs"].get<unsigned>());
  Table table;
  const auto row = [&](const char* what, const char* field) {
    table.row(what, fmt::format("{:>8.1f}", report[field].get<double>()));
  };
  row("in order, chunks of 16 packets", "in_order_mpps");
  row("in order, chunks of 1 packet", "one_packet_chunks_mpps");
  row("shuffled within 64", "shuffled_mpps");
  row("an atomic operation a packet, in order", "atomic_per_packet_mpps");
  row("an atomic operation a packet, shuffled", "atomic_shuffled_mpps");
  table.print();
}

Result<Json> bench_turnaround(unsigned runs, std::uint64_t messages) {
  const Result<experiment::TurnaroundSpeed> speed = experiment::measure_turnaround_speed(runs, messages);
  if (!speed) return speed.error();
  Json points = Json::array();
  for (const experiment::TurnaroundPoint& point : speed->points)
    points.push_back({{"message_bytes", point.message_bytes},
                      {"post_complete_ns", point.post_complete_ns},
                      {"untouched_post_complete_ns", point.untouched_post_complete_ns}});
  return Json{{"runs", runs}, {"messages", messages}, {"points", std::move(points)}};
}

void print_bench_turnaround(const Json& report) {
  fmt::print("recv_post + recv_complete, nanoseconds a message; medians of {} runs\n\n",
             report["runs"].get<unsigned>());
  fmt::print("{:<10} {:>16} {:>16}\n", "message", "every packet in", "no packet in");
  for (const Json& point : report["points"])
    fmt::print("{:<10} {:>16.0f} {:>16.0f}\n", to_string(Bytes{point["message_bytes"].get<std::uint64_t>()}),
               point["post_complete_ns"].get<double>(), point["untouched_post_complete_ns"].get<double>());
}

}  // namespace sdr::cli

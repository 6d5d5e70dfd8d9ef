#include "sdr/offload_report.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "offload/trial.hpp"
#include "sdr/bench_machine.hpp"
#include "sdr/report.hpp"

namespace sdr::cli {
namespace {

constexpr std::string_view kName = "offload";

// The file that the counting plugin writes, in a folder of its own; gone at the end.
class CountsFile {
 public:
  CountsFile() {
    std::string pattern = (std::filesystem::temp_directory_path() / "sdr-counts-XXXXXX").string();
    if (::mkdtemp(pattern.data()) != nullptr) folder_ = pattern;
  }
  ~CountsFile() {
    std::error_code ignored;
    if (!folder_.empty()) std::filesystem::remove_all(folder_, ignored);
  }
  CountsFile(const CountsFile&) = delete;
  CountsFile& operator=(const CountsFile&) = delete;
  [[nodiscard]] std::string path() const { return folder_ + "/counts.json"; }
  [[nodiscard]] Result<Json> read() const {
    std::ifstream file(path());
    Json counts = Json::parse(file, nullptr, false);
    if (!counts.is_object())
      return Error{ErrorCode::System, "the counting plugin has written nothing: is it one for this emulator?"};
    return counts;
  }

 private:
  std::string folder_;
};

// What the plugin counted, a packet each, and chunk writes a chunk.
Json guest_counts(const Json& counted, const offload::TrialReport& report) {
  Json json = {{"total", counted}};
  Json each = Json::object();
  for (const char* what : {"instructions", "atomics", "fences", "loads", "stores", "host_loads", "host_stores"})
    each[what] = counted.value(what, 0.0) / static_cast<double>(report.pushed);
  json["per_packet"] = each;
  json["host_writes_per_chunk"] =
      number_or_null(counted.value("host_stores", 0.0) / static_cast<double>(report.chunks));
  return json;
}

Json to_json(const OffloadOptions& options, const offload::TrialReport& report) {
  Json json = machine_facts();
  json.update({{"device", options.device},
               {"emulated", options.device == "riscv"},
               {"threads", options.threads},
               {"channels", options.channels},
               {"order", options.order},
               {"chunk_packets", options.chunk_packets},
               {"clean", options.clean},
               {"seed", options.seed},
               {"verified", report.verified}});
  if (!report.problem.empty()) json["problem"] = report.problem;
  json["pushed"] = {{"completions", report.pushed},           {"packets", report.packets},
                    {"duplicates", report.duplicates},        {"stale", report.stale},
                    {"out_of_range", report.out_of_range},    {"cut_packets", report.cut_packets},
                    {"cut_duplicates", report.cut_duplicates}};
  json["device_counts"] = {{"completions", report.device.total()},
                           {"packets", report.device.packets},
                           {"duplicates", report.device.duplicates},
                           {"late", report.device.late},
                           {"out_of_range", report.device.out_of_range},
                           {"errors", report.device.errors},
                           {"batches", report.device.batches}};
  json["messages"] = {{"verified", report.messages}, {"cut", report.cut}, {"chunks", report.chunks}};
  json["seconds"] = static_cast<double>(report.elapsed.count()) / 1e9;
  json["mpps"] = static_cast<double>(report.pushed) * 1e3 / static_cast<double>(report.elapsed.count());
  return json;
}

void print(const Json& json) {
  fmt::print("{} device{}, {} threads, {} channels, {}, chunks of {} packets\n", json["device"].get<std::string>(),
             json["emulated"].get<bool>() ? " (emulated)" : "", json["threads"].get<unsigned>(),
             json["channels"].get<unsigned>(), json["order"].get<std::string>(), json["chunk_packets"].get<unsigned>());
  Table table;
  table.row("verified", json["verified"].get<bool>() ? "yes" : "NO: " + json.value("problem", std::string()));
  const auto counts = [&](const char* part) {
    for (const auto& [name, value] : json[part].items())
      table.row(fmt::format("{} {}", part, name), fmt::format("{:>12}", value.get<std::uint64_t>()));
  };
  counts("pushed");
  counts("device_counts");
  counts("messages");
  table.row("million completions a second, making them included", fmt::format("{:>12.2f}", json["mpps"].get<double>()));
  if (json.contains("guest")) {
    for (const auto& [name, value] : json["guest"]["per_packet"].items())
      table.row(fmt::format("guest {} a packet", name), fmt::format("{:>12.3f}", value.get<double>()));
  }
  table.print();
}

}  // namespace

int run_offload(const OffloadOptions& options) {
  if (!options.plugin.empty() && options.device != "riscv") {
    return complain(kName, {ErrorCode::InvalidArgument,
                            fmt::format("--counts counts instructions of --device riscv, not of {}", options.device)});
  }
  const CountsFile counts;
  offload::TrialOptions trial{.device = *offload::parse_device_kind(options.device),
                              .packets = options.packets,
                              .threads = options.threads,
                              .channels = options.channels,
                              .order = options.order == "mix" ? offload::TrialOrder::Mix : offload::TrialOrder::InOrder,
                              .chunk_packets = options.chunk_packets,
                              .clean = options.clean,
                              .seed = options.seed};
  if (!options.plugin.empty())
    trial.emulator_plugin = fmt::format("{},out={}", std::filesystem::absolute(options.plugin).string(), counts.path());
  const Result<offload::TrialReport> report = offload::run_trial(trial);
  if (!report) return complain(kName, report.error());
  Json json = to_json(options, *report);
  if (!options.plugin.empty()) {
    const Result<Json> counted = counts.read();
    if (!counted) return complain(kName, counted.error());
    json["guest"] = guest_counts(*counted, *report);
  }
  if (options.json)
    print_json(json);
  else
    print(json);
  return report->verified ? kDone : kFailed;
}

}  // namespace sdr::cli

#include "sdr/sweep_output.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <functional>
#include <string_view>

namespace sdr::cli {
namespace {

constexpr std::string_view kCellsBegin = "\"cells\": [";
constexpr std::string_view kEnd = "]}";

Error cannot_write(const std::string& path) {
  return {ErrorCode::System, fmt::format("{} cannot be written: {}", path, std::strerror(errno))};
}

// Writes beside `path`, and puts it in its place when everything is on the device.
Result<void> replace(const std::string& path, const std::function<Result<void>(std::ofstream& file)>& fill) {
  const std::string beside = path + ".new";
  {
    std::ofstream file(beside, std::ios::binary | std::ios::trunc);
    if (!file) return cannot_write(beside);
    if (Result<void> filled = fill(file); !filled) return filled;
    file.close();
    if (!file) return cannot_write(beside);
  }
  const FileDescriptor written(::open(beside.c_str(), O_RDONLY | O_CLOEXEC));
  if (!written.valid() || ::fsync(written.get()) != 0 || std::rename(beside.c_str(), path.c_str()) != 0)
    return cannot_write(path);
  return {};
}

// The first line, without its comma it would be a whole object.
std::string head_of(const SweepSpec& spec, const SweepIdentity& identity, std::uint64_t failed) {
  Json head = {{"sweep", 1},
               {"program", identity.program},
               {"spec_sha256", identity.digest},
               {"cells_total", identity.cells},
               {"cells_failed", failed},
               {"spec", spec.to_json()}};
  std::string text = head.dump();
  text.back() = ',';
  return text;
}

Json parse_head(std::string line) {
  if (!line.ends_with(',')) return nullptr;
  line.back() = '}';
  const Json head = Json::parse(line, nullptr, false);
  return head.is_object() && head.contains("sweep") ? head : Json(nullptr);
}

bool ends_whole(std::ifstream& file) {
  const std::string end = "\n" + std::string(kEnd) + "\n";
  std::string there(end.size(), '\0');
  file.seekg(-static_cast<std::streamoff>(end.size()), std::ios::end);
  file.read(there.data(), static_cast<std::streamsize>(there.size()));
  return file && there == end;
}

struct Column {
  std::string_view field;
  std::string_view of;  // the object that it is in
};
constexpr std::array kColumns = {Column{"cell"},
                                 Column{"scheme"},
                                 Column{"size_bytes"},
                                 Column{"rtt_ms"},
                                 Column{"rate_gbps"},
                                 Column{"loss"},
                                 Column{"burst"},
                                 Column{"mtu"},
                                 Column{"chunk_bytes"},
                                 Column{"runs"},
                                 Column{"seed"},
                                 Column{"ideal_ms"},
                                 Column{"floor_ms"},
                                 Column{"mean", "completion_ms"},
                                 Column{"p50", "completion_ms"},
                                 Column{"p99", "completion_ms"},
                                 Column{"p999", "completion_ms"},
                                 Column{"max", "completion_ms"},
                                 Column{"mean", "theory_ms"},
                                 Column{"p50", "theory_ms"},
                                 Column{"p99", "theory_ms"},
                                 Column{"p999", "theory_ms"},
                                 Column{"goodput_gbps"},
                                 Column{"writes_failed"},
                                 Column{"packets_sent"},
                                 Column{"packets_lost"},
                                 Column{"chunks_retransmitted"},
                                 Column{"parity_chunks_sent"},
                                 Column{"chunks_recovered"},
                                 Column{"fallbacks"},
                                 Column{"error"}};

std::string csv_value(const Json& cell, const Column& column) {
  const Json* from = &cell;
  if (!column.of.empty()) {
    const auto found = cell.find(std::string(column.of));
    if (found == cell.end() || !found->is_object()) return "";
    from = &*found;
  }
  const auto found = from->find(std::string(column.field));
  if (found == from->end() || found->is_null()) return "";
  if (!found->is_string()) return found->dump();
  std::string quoted = "\"";
  for (const char c : found->get<std::string>()) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

}  // namespace

Result<OutputState> output_at(const std::string& path, const SweepIdentity& identity) {
  std::ifstream file(path, std::ios::binary);
  if (!file && errno == ENOENT) return OutputState::Absent;
  std::string line;
  std::getline(file, line);
  const Json head = parse_head(line);
  const auto refuse = [&](const std::string& why) {
    return Error{ErrorCode::InvalidArgument, fmt::format("{} {}; choose another --out, or remove it", path, why)};
  };
  if (head.is_null() || !ends_whole(file)) return refuse("is there already, and no result of sdr sweep");
  for (const auto& [name, ours] : {std::pair<const char*, Json>{"spec_sha256", identity.digest},
                                   {"program", identity.program},
                                   {"cells_total", identity.cells}}) {
    const Json theirs = head.value(name, Json(nullptr));
    if (theirs != ours)
      return refuse(fmt::format("is of another sweep: its {} is {}, here it is {}", name, theirs.dump(), ours.dump()));
  }
  return head.value("cells_failed", Json(nullptr)) == 0 ? OutputState::Whole : OutputState::WithFailures;
}

Result<void> write_output(const std::string& path, const SweepSpec& spec, const SweepIdentity& identity,
                          const SweepJournal& journal) {
  return replace(path, [&](std::ofstream& file) -> Result<void> {
    file << head_of(spec, identity, journal.count(SweepJournal::State::Failed)) << "\n" << kCellsBegin << "\n";
    for (std::uint64_t cell = 0; cell < identity.cells; ++cell) {
      const Result<std::string> line = journal.line(cell);
      if (!line) return line.error();
      file << *line << (cell + 1 < identity.cells ? ",\n" : "\n");
    }
    file << kEnd << "\n";
    return {};
  });
}

Result<void> write_csv(const std::string& csv, const std::string& output) {
  std::ifstream from(output, std::ios::binary);
  std::string line;
  std::getline(from, line);
  std::getline(from, line);
  if (!from) return Error{ErrorCode::System, fmt::format("{} cannot be read: {}", output, std::strerror(errno))};
  return replace(csv, [&](std::ofstream& file) -> Result<void> {
    std::string row;
    for (const Column& column : kColumns) {
      row += row.empty() ? "" : ",";
      row += column.of.empty() ? std::string(column.field) : fmt::format("{}_{}", column.of, column.field);
    }
    file << row << "\n";
    while (std::getline(from, line) && line != kEnd) {
      if (line.ends_with(',')) line.pop_back();
      const Json cell = Json::parse(line, nullptr, false);
      if (!cell.is_object()) {
        return Error{ErrorCode::System, fmt::format("{} has a line that is no cell: {}", output, printable(line))};
      }
      row.clear();
      for (const Column& column : kColumns) {
        if (&column != kColumns.data()) row += ",";
        row += csv_value(cell, column);
      }
      file << row << "\n";
    }
    return {};
  });
}

}  // namespace sdr::cli

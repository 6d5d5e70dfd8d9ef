#include "sdr/transfer_record.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <utility>

#include "sdr/file_name.hpp"
#include "sdr/rate_report.hpp"

namespace sdr::cli {

namespace {

double share(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

// As sha256sum writes it, so that `sha256sum -c` reads it: a backslash before all of it says that the name has some.
std::string checksum_line(const std::string& sha256, std::string_view name, bool to_terminal) {
  std::string written;
  for (const char c : name) {
    if (c == '\\' || c == '\n' || c == '\r') {
      written += '\\';
      written += c == '\n' ? 'n' : c == '\r' ? 'r' : c;
    } else {
      written += c;
    }
  }
  const bool escaped = written.size() != name.size();
  return fmt::format("{}{}  {}", escaped ? "\\" : "", sha256, to_terminal ? printable(written) : written);
}

}  // namespace

TransferLosses TransferLosses::of(const ConnectionStatistics& statistics) {
  return {.packets_sent = statistics.packets_sent,
          .packets_lost = statistics.packets_lost,
          .chunks_sent = statistics.chunks_sent,
          .chunks_retransmitted = statistics.chunks_retransmitted};
}

double TransferLosses::loss() const {
  return share(packets_lost, packets_sent);
}
double TransferLosses::retransmitted() const {
  return share(chunks_retransmitted, chunks_sent);
}

void TransferRecord::set_entries(std::vector<FileEntry> entries) {
  entries_ = std::move(entries);
  files_ = 0;
  bytes_ = 0;
  for (const FileEntry& entry : entries_) {
    files_ += entry.directory ? 0 : 1;
    bytes_ += entry.size;
  }
}

void TransferRecord::placed(std::uint32_t file, const std::string& sha256, bool kept) {
  if (!outcomes_.try_emplace(file, Outcome{.sha256 = sha256, .kept = kept, .error = {}}).second || json_) return;
  progress_.clear();
  fmt::print("{}\n", checksum_line(sha256, entries_[file].name, ::isatty(STDOUT_FILENO) != 0));
  std::fflush(stdout);
}

void TransferRecord::failed(std::uint32_t file, const std::string& why) {
  if (outcomes_.try_emplace(file, Outcome{.sha256 = {}, .kept = false, .error = why}).second) ++failures_;
}

std::string TransferRecord::how_far() const {
  const std::uint64_t there = std::min(bytes_, already_there + transferred);
  return fmt::format("{} of {} ({:.0f} %)", to_string(Bytes{there}), to_string(Bytes{bytes_}),
                     100 * (bytes_ == 0 ? 1.0 : share(there, bytes_)));
}

TransferSample TransferRecord::sample() const {
  return {.bytes = already_there + transferred,
          .total = bytes_,
          .files = files_done(),
          .total_files = files_,
          .loss = losses.loss(),
          .retransmitted = losses.retransmitted()};
}

std::string TransferRecord::complaint(const Result<void>& result) const {
  if (!result) {
    if (entries_.empty()) return result.error().message;
    if (sample().bytes == 0) return fmt::format("{}; nothing had arrived", result.error().message);
    return fmt::format("{}; {} had arrived, the same command goes on from there", result.error().message, how_far());
  }
  if (failures_ == 0) return "";
  for (const auto& [file, outcome] : outcomes_) {
    if (outcome.error.empty()) continue;
    const std::string first = fmt::format("{}: {}", printable(entries_[file].name), outcome.error);
    return failures_ == 1 ? first : fmt::format("{} of {} files are not there; {}", failures_, files_, first);
  }
  return "";
}

int TransferRecord::conclude(std::string_view subcommand, const Result<void>& result, const Json& path) const {
  progress_.clear();
  const std::string wrong = complaint(result);
  if (json_) {
    print_json(to_json(subcommand, wrong, path));
  } else if (result) {
    print_summary(subcommand);
  }
  if (wrong.empty()) return kDone;
  // No argument is at fault: whatever the code says, the transfer failed.
  return complain(subcommand, {ErrorCode::System, wrong});
}

void TransferRecord::print_summary(std::string_view subcommand) const {
  const double seconds = std::chrono::duration<double>(elapsed).count();
  const Bandwidth speed{seconds > 0 ? static_cast<double>(transferred) * 8 / seconds : 0};
  const std::string what = subcommand == "send" ? "sent to" : "received from";
  const std::string kept =
      already_there == 0 ? "" : fmt::format(", {} of it already there", to_string(Bytes{already_there}));
  const std::uint32_t good = files_done() - failures_;
  std::fflush(stdout);
  fmt::print(stderr, "{} {} {} {}: {}{}, {:.1f} s, {}, loss {:.2f} %, sent again {:.2f} %\n", good,
             good == 1 ? "file" : "files", what, peer, to_string(Bytes{bytes_}), kept, seconds, to_string(speed),
             losses.loss() * 100, losses.retransmitted() * 100);
}

Json TransferRecord::to_json(std::string_view subcommand, const std::string& error, const Json& path) const {
  const double seconds = std::chrono::duration<double>(elapsed).count();
  Json json;
  json["command"] = subcommand;
  json["peer"] = peer;
  json["path"] = path;
  json["error"] = error.empty() ? Json(nullptr) : Json(error);
  json["files"] = files_;
  json["directories"] = entries_.size() - files_;
  json["bytes"] = bytes_;
  json["bytes_already_there"] = already_there;
  json["bytes_transferred"] = transferred;
  json["seconds"] = seconds;
  json["goodput_bits_per_second"] = seconds > 0 ? Json(static_cast<double>(transferred) * 8 / seconds) : Json(nullptr);
  json["packets_sent"] = losses.packets_sent;
  json["packets_lost"] = losses.packets_lost;
  json["loss"] = losses.loss();
  json["chunks_sent"] = losses.chunks_sent;
  json["chunks_retransmitted"] = losses.chunks_retransmitted;
  if (rate) json["rate_control"] = rate_json(*rate);
  json["outcomes"] = Json::array();
  for (const auto& [file, outcome] : outcomes_) {
    Json one{{"name", entries_[file].name}, {"size", entries_[file].size}};
    one["state"] = !outcome.error.empty() ? "failed" : outcome.kept ? "already there" : "transferred";
    if (outcome.error.empty()) {
      one["sha256"] = outcome.sha256;
    } else {
      one["error"] = outcome.error;
    }
    json["outcomes"].push_back(std::move(one));
  }
  return json;
}

}  // namespace sdr::cli

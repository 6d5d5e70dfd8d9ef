// TransferRecord: what became of every file, and what is said about it: a line a file as sha256sum prints it, a summary
// for people or as JSON, and one line when it went wrong.
//
// Both ends of a transfer keep one. Threads: one.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sdr/connection.hpp"
#include "sdr/file_manifest.hpp"
#include "sdr/report.hpp"
#include "sdr/transfer_progress.hpp"
#include "sdr/units.hpp"

namespace sdr::cli {

// The sender's counters, which are the ones that know about losses. The receiver is told.
struct TransferLosses {
  std::uint64_t packets_sent = 0;
  std::uint64_t packets_lost = 0;
  std::uint64_t chunks_sent = 0;
  std::uint64_t chunks_retransmitted = 0;

  static TransferLosses of(const ConnectionStatistics& statistics);
  [[nodiscard]] double loss() const;
  [[nodiscard]] double retransmitted() const;
};

class TransferRecord {
 public:
  TransferRecord(TransferProgress& progress, bool json) : progress_(progress), json_(json) {}

  void set_entries(std::vector<FileEntry> entries);
  [[nodiscard]] std::span<const FileEntry> entries() const { return entries_; }

  void placed(std::uint32_t file, const std::string& sha256, bool kept);
  void failed(std::uint32_t file, const std::string& why);
  [[nodiscard]] bool known(std::uint32_t file) const { return outcomes_.contains(file); }

  [[nodiscard]] std::uint32_t files() const { return files_; }
  [[nodiscard]] std::uint32_t files_done() const { return static_cast<std::uint32_t>(outcomes_.size()); }
  [[nodiscard]] bool complete() const { return outcomes_.size() == files_; }
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
  [[nodiscard]] bool any_failed() const { return failures_ != 0; }

  std::uint64_t already_there = 0;  // bytes that did not have to be sent
  std::uint64_t transferred = 0;    // bytes that have arrived in this run
  TransferLosses losses;
  std::optional<RateStatus> rate;  // of the sender
  Duration elapsed{0};
  std::string peer;

  // "12.0 MiB of 64.0 MiB (18 %)"
  [[nodiscard]] std::string how_far() const;
  // Prints the summary, and on stderr what went wrong. Returns the exit code.
  int conclude(std::string_view subcommand, const Result<void>& result, const Json& path) const;
  [[nodiscard]] TransferSample sample() const;

 private:
  struct Outcome {
    std::string sha256;
    bool kept = false;
    std::string error;
  };

  [[nodiscard]] Json to_json(std::string_view subcommand, const std::string& error, const Json& path) const;
  void print_summary(std::string_view subcommand) const;
  // What to say on stderr; empty when all is well.
  [[nodiscard]] std::string complaint(const Result<void>& result) const;

  TransferProgress& progress_;
  bool json_;
  std::vector<FileEntry> entries_;
  std::map<std::uint32_t, Outcome> outcomes_;
  std::uint32_t files_ = 0;
  std::uint32_t failures_ = 0;
  std::uint64_t bytes_ = 0;
};

}  // namespace sdr::cli

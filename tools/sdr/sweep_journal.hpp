// SweepJournal: the finished cells of a sweep on the disk, while it is not whole: OUT.partial.
//
// JSON Lines: a header that says of which spec and program it is, then an entry a cell, in the order in which they were
// finished. An entry is written at once, so that whatever ends this process costs only the cells under way; it is
// flushed to the device at most once a second, which is what a failing machine costs. When a journal is opened again,
// what follows its last whole line is dropped. A failed cell has an entry that says why; a later entry replaces it.
//
// One process has it at a time (flock, where the file system knows it). Holds a place and a length for each cell, not
// the entries. One thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sdr/file_store.hpp"
#include "sdr/report.hpp"
#include "sdr/result.hpp"
#include "sdr/units.hpp"

namespace sdr::cli {

// What a journal and an output are of.
struct SweepIdentity {
  std::string digest;   // of the spec
  std::string program;  // and its version
  std::uint64_t cells = 0;
};

class SweepJournal {
 public:
  // Creates the file, or goes on with it. Errors name it: it is of another sweep, in use, or no journal.
  static Result<SweepJournal> open(const std::string& path, const SweepIdentity& identity);

  enum class State : std::uint8_t { Open, Done, Failed };
  [[nodiscard]] State state(std::uint64_t cell) const { return cells_[cell].state; }
  [[nodiscard]] std::uint64_t count(State state) const;
  // Bytes behind the last whole line that were dropped.
  [[nodiscard]] std::uint64_t dropped() const { return dropped_; }

  // `entry` has the field "cell"; with a field "error" the cell has failed.
  Result<void> append(const Json& entry, TimePoint now);
  // The entry's line, without its end; empty for an open cell.
  Result<std::string> line(std::uint64_t cell) const;
  // Everything to the device.
  Result<void> flush();
  void remove();

 private:
  struct Place {
    std::uint64_t at = 0;
    std::uint32_t length = 0;
    State state = State::Open;
  };

  SweepJournal(std::string path, FileDescriptor file, std::uint64_t cells)
      : path_(std::move(path)), file_(std::move(file)), cells_(cells) {}
  Result<void> read(const SweepIdentity& identity);
  bool take(const std::string& line);
  Result<void> write(const std::string& line);

  std::string path_;
  FileDescriptor file_;
  std::vector<Place> cells_;
  std::uint64_t end_ = 0;
  std::uint64_t dropped_ = 0;
  TimePoint flushed_{};
};

}  // namespace sdr::cli

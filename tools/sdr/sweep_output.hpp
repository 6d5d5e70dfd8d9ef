// What a sweep leaves behind: OUT, a JSON file of which each cell is a line, and a table of it in CSV.
//
// Both appear at once, by rename: a file under its name is whole. Everything in them is a function of the spec and the
// program alone. One thread.
#pragma once

#include <string>

#include "sdr/result.hpp"
#include "sdr/sweep_journal.hpp"
#include "sdr/sweep_spec.hpp"

namespace sdr::cli {

enum class OutputState : std::uint8_t { Absent, Whole, WithFailures };
// What is at `path` already. An error when it is something else: another sweep's, or no output at all.
Result<OutputState> output_at(const std::string& path, const SweepIdentity& identity);

// Every cell is in the journal, done or failed.
Result<void> write_output(const std::string& path, const SweepSpec& spec, const SweepIdentity& identity,
                          const SweepJournal& journal);

// A row a cell; a figure that a cell does not have is empty.
Result<void> write_csv(const std::string& csv, const std::string& output);

}  // namespace sdr::cli

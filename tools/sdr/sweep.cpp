// sdr sweep: many cells (schemes, sizes, links) of a spec, on the threads of this machine or over the ranks of mpirun.
#include <fmt/core.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>

#include "experiment/trials.hpp"
#include "sdr/driver.hpp"
#include "sdr/options.hpp"
#include "sdr/report.hpp"
#include "sdr/subcommands.hpp"
#include "sdr/sweep_cell.hpp"
#include "sdr/sweep_coordinator.hpp"
#include "sdr/sweep_launch.hpp"
#include "sdr/sweep_output.hpp"

namespace sdr::cli {
namespace {

constexpr std::string_view kName = "sweep";
constexpr Duration kBetweenProgress = std::chrono::seconds(10);

constexpr const char* kExamples = R"(Examples:
  sdr sweep examples/sweep.json --out results.json --csv results.csv --jobs 2
  mpirun -n 4 sdr sweep examples/sweep.json --out results.json
      the same file, byte for byte, by four processes
  mpirun --enable-recovery -n 4 sdr sweep examples/sweep.json --out results.json
      goes on when one of them is killed

Ended before it was done? Run the same command again: it computes what is missing.
See docs/sweep.md for the spec and the results.)";

struct SweepOptions {
  std::string spec;
  std::string out;
  std::string csv;
  unsigned jobs = 1;
  std::string patience = "60s";
};

// What comes of it is in the files; this is how it went.
struct SweepTally {
  std::uint64_t computed = 0;
  std::uint64_t from_journal = 0;
  std::uint64_t failed = 0;
  std::string first_failure;
  int ranks = 1;
  std::vector<std::string> lost;
  bool was_whole = false;  // there was nothing to do
};

std::string out_of(const SweepOptions& options) {
  if (!options.out.empty()) return options.out;
  std::string stem = options.spec;
  if (stem.ends_with(".json")) stem.resize(stem.size() - 5);
  return stem + ".results.json";
}

void say(const std::string& note) {
  fmt::print(stderr, "sdr sweep: {}\n", printable(note));
}

std::function<Json(std::uint64_t)> computing(const SweepSpec& spec, unsigned jobs) {
  return [&spec, jobs](std::uint64_t cell) {
    try {
      const Result<Json> entry = compute(spec, cell, jobs);
      return entry ? *entry : failed_entry(spec, cell, entry.error().message);
    } catch (const std::exception& error) {  // out of memory, or threads: another cell may be smaller
      return failed_entry(spec, cell, error.what());
    }
  };
}

void note_failures(const SweepSpec& spec, const SweepJournal& journal, SweepTally& tally) {
  tally.failed = journal.count(SweepJournal::State::Failed);
  for (std::uint64_t cell = 0; tally.failed > 0 && cell < spec.cells(); ++cell) {
    if (journal.state(cell) != SweepJournal::State::Failed) continue;
    const Result<std::string> line = journal.line(cell);
    const Json entry = line ? Json::parse(*line, nullptr, false) : Json(nullptr);
    tally.first_failure =
        fmt::format("{}: {}", name_of(spec.cell(cell)), entry.is_object() ? entry.value("error", "") : "");
    return;
  }
}

// The cells that are missing, and then the output. `all_well` becomes false when ranks were lost.
Result<SweepTally> sweep(const SweepOptions& options, const SweepSpec& spec, const SweepIdentity& identity,
                         CellWorker& worker, SweepRanks* ranks, bool& all_well) {
  const std::string out = out_of(options);
  SweepTally tally{.ranks = ranks == nullptr ? 1 : ranks->size()};
  const auto whole = [&]() -> Result<bool> {
    const Result<OutputState> state = output_at(out, identity);
    if (!state) return state.error();
    tally.was_whole = *state == OutputState::Whole;
    return tally.was_whole;
  };
  Result<bool> nothing_to_do = whole();
  if (!nothing_to_do) return nothing_to_do.error();
  if (*nothing_to_do) {
    if (ranks != nullptr) dismiss(*ranks, true);
    return tally;
  }
  Result<SweepJournal> journal = SweepJournal::open(out + ".partial", identity);
  if (!journal) return journal.error();
  // Another one may have been through in between.
  nothing_to_do = whole();
  if (!nothing_to_do || *nothing_to_do) {
    journal->remove();
    if (!nothing_to_do) return nothing_to_do.error();
    if (ranks != nullptr) dismiss(*ranks, true);
    return tally;
  }
  tally.from_journal = journal->count(SweepJournal::State::Done);
  if (journal->dropped() > 0) {
    say(fmt::format("{}.partial breaks off; its last {} bytes are dropped, and computed again", out,
                    journal->dropped()));
  }
  SweepCoordinator coordinator(spec, identity, *journal, worker, ranks,
                               {.patience = *parse_duration(options.patience),
                                .now = [] { return Driver::now(); },
                                .say = say,
                                .between_progress = ::isatty(STDERR_FILENO) != 0 ? kBetweenProgress : Duration(0)});
  const Result<void> run = coordinator.run();
  all_well = coordinator.all_well();
  if (!run) return run.error();
  tally.computed = coordinator.computed();
  tally.lost = coordinator.lost();
  note_failures(spec, *journal, tally);
  if (Result<void> written = write_output(out, spec, identity, *journal); !written) return written.error();
  // With failures it stays: the next run tries those cells, and only those.
  if (tally.failed == 0) journal->remove();
  return tally;
}

int report(const SweepOptions& options, const SweepSpec& spec, const Result<SweepTally>& tally) {
  if (!tally) return complain(kName, tally.error());
  const std::string out = out_of(options);
  if (!options.csv.empty()) {
    if (Result<void> written = write_csv(options.csv, out); !written) return complain(kName, written.error());
  }
  Table table;
  table.row("sweep", fmt::format("{} cells of {}, kind {}", spec.cells(), options.spec, kind_name(spec.kind)));
  table.row("computed", tally->was_whole ? "nothing: the results are there already"
                                         : fmt::format("{} now, {} before", tally->computed, tally->from_journal));
  table.row("ranks", fmt::format("{}, {} lost", tally->ranks, tally->lost.size()));
  for (const std::string& lost : tally->lost) table.row("lost", lost);
  if (tally->failed > 0) table.row("failed", fmt::format("{} cells", tally->failed));
  table.row("results", out);
  if (!options.csv.empty()) table.row("table", options.csv);
  table.print();
  if (tally->failed == 0) return kDone;
  return complain(kName, {ErrorCode::System, fmt::format("{} of {} cells failed, and are tried again by the same "
                                                         "command; the first: {}",
                                                         tally->failed, spec.cells(), tally->first_failure)});
}

int run_sweep(const SweepOptions& options) {
  const Result<SweepSpec> spec = SweepSpec::load(options.spec);
  if (!spec) return complain(kName, spec.error());
  const Duration patience = *parse_duration(options.patience);
  Result<std::unique_ptr<SweepRanks>> met = meet_ranks(patience);
  if (!met) return complain(kName, met.error());
  SweepRanks* ranks = met->get();
  experiment::keep_memory_for_runs();
  const SweepIdentity identity{.digest = spec->digest(), .program = "sdr " SDR_VERSION, .cells = spec->cells()};
  CellWorker worker(computing(*spec, options.jobs));
  if (ranks != nullptr && ranks->rank() != 0) {
    const Result<bool> served = serve(*ranks, identity, worker, patience, [] { return Driver::now(); });
    if (served) ranks->leave(kDone, *served);
    ranks->leave(complain(kName, served.error()), false);
  }
  bool all_well = true;
  const Result<SweepTally> tally = sweep(options, *spec, identity, worker, ranks, all_well);
  // They wait for a word, whatever became of it.
  if (!tally && ranks != nullptr) dismiss(*ranks, all_well);
  const int code = report(options, *spec, tally);
  if (ranks != nullptr) ranks->leave(code, all_well);
  if (tally) return code;
  // The worker may have begun with a cell for which nobody will wait.
  std::fflush(nullptr);
  ::_exit(code);
}

CLI::Validator patience_text() {
  return CLI::Validator(
      [](std::string& text) -> std::string {
        const Result<Duration> patience = parse_duration(text);
        if (!patience) return patience.error().message;
        if (*patience >= std::chrono::seconds(1) && *patience <= std::chrono::hours(24)) return {};
        return fmt::format("time \"{}\" is not from 1s to 24h", text);
      },
      "");
}

}  // namespace

void add_sweep(CLI::App& app, Run& run) {
  CLI::App* sweep = app.add_subcommand("sweep", "Many cells of a spec: schemes by sizes by links; also under mpirun");
  sweep->footer(kExamples);
  auto options = std::make_shared<SweepOptions>();
  sweep->add_option("spec", options->spec, "What to compute, in JSON (docs/sweep.md)")->required()->type_name("SPEC");
  sweep->add_option("--out", options->out, "The results; what is finished before is in OUT.partial (SPEC.results.json)")
      ->type_name("OUT");
  sweep->add_option("--csv", options->csv, "The results as a table, too")->type_name("FILE");
  sweep->add_option("--jobs", options->jobs, "Threads of each process; the results do not depend on it")
      ->check(whole_number(1, experiment::TrialPlan::kMostThreads))
      ->type_name("N")
      ->capture_default_str();
  sweep->add_option("--rank-timeout", options->patience, "A rank that is silent for longer is lost; 1s to 24h")
      ->check(patience_text())
      ->type_name("TIME")
      ->capture_default_str();
  sweep->callback([options, &run] { run = [options] { return run_sweep(*options); }; });
}

}  // namespace sdr::cli

// sdr figures: the paper's completion-time figures, computed, drawn, and held against what the paper states; and the
// same for what we claim of our own scheme.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "experiment/trials.hpp"
#include "runtime/thread.hpp"
#include "sdr/figure_catalogue.hpp"
#include "sdr/figure_checks.hpp"
#include "sdr/figure_writers.hpp"
#include "sdr/options.hpp"
#include "sdr/report.hpp"
#include "sdr/subcommands.hpp"

namespace sdr::cli {
namespace {

constexpr std::string_view kName = "figures";

constexpr const char* kExamples = R"(Examples:
  sdr figures --out build/figures          all of them; open build/figures/index.html
  sdr figures --out DIR --only 3a,9,10     some: 10 is 10a to 10d
  sdr figures --out DIR --only adaptive    our own scheme beside the paper's; also adaptive-bursts, adaptive-estimate

Each figure comes as CSV, SVG and PNG, with the gnuplot script that drew it.)";

struct FiguresOptions {
  std::string directory;
  std::vector<std::string> only;
  std::size_t samples = FigureOptions().samples;
  std::uint64_t seed = 1;
  unsigned jobs = 0;
};

void print_summary(const std::vector<Figure>& figures, bool ours) {
  const Verdicts verdicts = verdicts_of(figures, ours);
  if (verdicts.statements == 0) return;
  fmt::print("{} of {} {}{}\n", verdicts.agree, verdicts.statements,
             ours ? "claims about the adaptive scheme hold" : "statements of the paper agree",
             verdicts.agree == verdicts.statements ? "" : "; not these:");
  for (const Figure& figure : figures) {
    if (figure.ours != ours) continue;
    for (const Statement& statement : figure.statements) {
      if (statement.agrees()) continue;
      fmt::print("  {:<4} {} {}: {}\n", figure.id, statement.text, statement.stated,
                 to_string(statement.computed, statement.unit));
    }
  }
}

Result<void> make_figures(const FiguresOptions& given) {
  const Result<std::vector<CatalogueEntry>> chosen = choose_figures(given.only);
  if (!chosen) return chosen.error();
  if (Result<void> prepared = prepare_directory(given.directory); !prepared) return prepared;
  const unsigned jobs = given.jobs > 0 ? given.jobs : runtime::usable_cores();
  const FigureOptions options{given.samples, given.seed, jobs};
  std::vector<Figure> figures;
  for (const CatalogueEntry& entry : *chosen) figures.push_back(entry.make(options));
  experiment::keep_memory_for_runs();
  const Check monte_carlo = monte_carlo_check(given.samples, given.seed);
  const Check protocol = protocol_check(given.samples, given.seed);
  if (Result<void> checked = check_figures(figures, monte_carlo, protocol, jobs); !checked) return checked;
  if (Result<void> written = write_figures(given.directory, figures, options); !written) return written;
  if (Result<void> drawn = draw_figures(given.directory, figures, jobs); !drawn) return drawn;
  print_summary(figures, false);
  print_summary(figures, true);
  fmt::print("{}/index.html\n", given.directory);
  std::fflush(stdout);
  return {};
}

}  // namespace

void add_figures(CLI::App& app, Run& run) {
  CLI::App* figures = app.add_subcommand("figures", "Draw the paper's figures from theory, and check them");
  figures->footer(kExamples);
  auto options = std::make_shared<FiguresOptions>();
  figures->add_option("--out", options->directory, "Directory for the files; made if it is not there")
      ->required()
      ->type_name("DIR");
  figures->add_option("--only", options->only, "Only these figures: 3a,9,10")
      ->delimiter(',')
      ->type_name("ID,...")
      ->expected(1)
      ->take_all();
  figures
      ->add_option("--samples", options->samples, "Monte Carlo samples a point, and at most so many simulated Writes")
      ->check(whole_number(100, 1'000'000))
      ->type_name("N")
      ->capture_default_str();
  figures->add_option("--seed", options->seed, "What randomness starts from; the same seed, the same files")
      ->check(whole_number(0, UINT64_MAX))
      ->type_name("N")
      ->capture_default_str();
  figures->add_option("--jobs", options->jobs, "Threads (default: one a core); the files do not depend on it")
      ->check(whole_number(1, 1024))
      ->type_name("N");
  figures->callback([options, &run] {
    run = [options] {
      const Result<void> made = make_figures(*options);
      return made ? kDone : complain(kName, made.error());
    };
  });
}

}  // namespace sdr::cli

// The sdr command: picks a subcommand. Wrong usage is one line on stderr and exit code 2, whatever it is.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <string>

#include "sdr/report.hpp"
#include "sdr/subcommands.hpp"

namespace sdr::cli {
namespace {

constexpr const char* kAbout = R"(Reliable Writes over lossy long-haul paths: SDR-RDMA in software.

Try it here:    sdr perf --self --link rtt=25ms,rate=1Gbit,loss=1e-3 --scheme ec-rs --size 16MiB
Between hosts:  sdr perf --listen 0.0.0.0:7000     and on the other    sdr perf HOST:7000 --rate 1Gbit
Files:          sdr recv --listen 0.0.0.0:7000 --into DIR    and    sdr send FILE HOST:7000 --rate 1Gbit)";

// CLI11 may put a message on several lines and ends some with a dot.
std::string one_line(std::string text) {
  for (char& c : text) {
    if (c == '\n') c = ' ';
  }
  while (!text.empty() && (text.back() == ' ' || text.back() == '.')) text.pop_back();
  return text;
}

// What is wrong, where CLI11 says so only indirectly.
std::string explain(const CLI::App& app, int argc, char** argv, const CLI::ParseError& error) {
  const bool word = argc > 1 && argv[1][0] != '-' && argv[1][0] != '\0';
  if (!word || !app.get_subcommands().empty()) return one_line(error.what());
  std::string names;
  for (const CLI::App* known : app.get_subcommands(nullptr)) names += (names.empty() ? "" : ", ") + known->get_name();
  return fmt::format("no subcommand \"{}\"; there are {}", printable(argv[1]), names);
}

std::string chosen_subcommand(const CLI::App& app) {
  const auto chosen = app.get_subcommands();
  return chosen.empty() ? "sdr" : "sdr " + chosen.front()->get_name();
}

int run(int argc, char** argv) {
  CLI::App app(kAbout, "sdr");
  app.require_subcommand(1);
  app.set_help_flag("-h,--help", "This text; every subcommand has its own");
  app.set_version_flag("--version", "sdr " SDR_VERSION, "Which version this is");
  app.get_formatter()->column_width(34);
  app.footer("Exit codes: 0 done, 1 failed, 2 wrong usage. `sdr SUBCOMMAND --help` has examples.");
  Run chosen;
  add_perf(app, chosen);
  add_probe(app, chosen);
  add_emulate(app, chosen);
  add_sim(app, chosen);
  add_send(app, chosen);
  add_recv(app, chosen);
  add_plan(app, chosen);
  add_sweep(app, chosen);
  add_figures(app, chosen);
  add_bench(app, chosen);
  add_offload(app, chosen);
  add_info(app, chosen);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& help_or_version) {
    return app.exit(help_or_version);
  } catch (const CLI::ParseError& error) {
    const std::string who = chosen_subcommand(app);
    fmt::print(stderr, "{}: {} (see {} --help)\n", who, explain(app, argc, argv, error), who);
    return kWrongUsage;
  }
  return chosen();
}

}  // namespace
}  // namespace sdr::cli

int main(int argc, char** argv) {
  try {
    return sdr::cli::run(argc, argv);
  } catch (const std::exception& error) {  // out of memory, descriptors or threads
    std::fprintf(stderr, "sdr: %s\n", error.what());
    return sdr::cli::kFailed;
  }
}

// The subcommands of sdr, one file each. add_...() declares options on `app` and leaves in `run` what to do when the
// subcommand was chosen; its return value is the exit code (report.hpp). Called once, by main, before any thread.
#pragma once

#include <functional>

// CLI11 is slow to compile: only files that declare options include it.
namespace CLI {
class App;
}  // namespace CLI

namespace sdr::cli {

using Run = std::function<int()>;

void add_perf(CLI::App& app, Run& run);
void add_probe(CLI::App& app, Run& run);
void add_emulate(CLI::App& app, Run& run);
void add_sim(CLI::App& app, Run& run);
void add_bench(CLI::App& app, Run& run);
void add_offload(CLI::App& app, Run& run);
void add_info(CLI::App& app, Run& run);
void add_figures(CLI::App& app, Run& run);
void add_plan(CLI::App& app, Run& run);
void add_sweep(CLI::App& app, Run& run);
void add_send(CLI::App& app, Run& run);
void add_recv(CLI::App& app, Run& run);

}  // namespace sdr::cli

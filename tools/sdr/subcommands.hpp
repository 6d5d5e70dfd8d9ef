// The subcommands of sdr, one file each. add_...() declares options on `app` and leaves in `run` what to do when the
// subcommand was chosen; its return value is the exit code (report.hpp). Called once, by main, before any thread.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace sdr::cli {

using Run = std::function<int()>;

void add_perf(CLI::App& app, Run& run);
void add_info(CLI::App& app, Run& run);
void add_send(CLI::App& app, Run& run);
void add_recv(CLI::App& app, Run& run);

}  // namespace sdr::cli

// sdr offload: the receive path on another processor, shown exact under fire and counted.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "sdr/offload_report.hpp"
#include "sdr/options.hpp"
#include "sdr/report.hpp"
#include "sdr/subcommands.hpp"

namespace sdr::cli {
namespace {

constexpr const char* kExamples = R"(Examples:
  sdr offload --device host                              4 device threads of this process
  sdr offload --device riscv --packets 10000000 --json   4 threads of an emulated RV64 processor
  sdr offload --device riscv --threads 1 --clean --counts build/release/sdr_guest_counts.so
                                                         instructions, atomics and loads a packet

Exit code 1 when anything was not exact, or the device failed.)";

}  // namespace

void add_offload(CLI::App& app, Run& run) {
  CLI::App* offload = app.add_subcommand("offload", "Exactness and cost of the receive path on an offload device");
  offload->footer(kExamples);
  auto options = std::make_shared<OffloadOptions>();
  offload->add_option("--device", options->device, "Who runs it: threads here, or an emulated RV64 processor")
      ->check(CLI::IsMember({"host", "riscv"}))
      ->type_name("host|riscv")
      ->capture_default_str();
  offload->add_option("--packets", options->packets, "Completions to push, about")
      ->check(whole_number(1, 100'000'000'000))
      ->type_name("N")
      ->capture_default_str();
  offload->add_option("--threads", options->threads, "Device threads, at most one a channel")
      ->check(whole_number(1, 64))
      ->type_name("N")
      ->capture_default_str();
  offload->add_option("--channels", options->channels, "Completion rings")
      ->check(whole_number(1, 64))
      ->type_name("N")
      ->capture_default_str();
  offload->add_option("--order", options->order, "Messages one after another, or 16 at random, each shuffled")
      ->check(CLI::IsMember({"inorder", "mix"}))
      ->type_name("inorder|mix")
      ->capture_default_str();
  offload->add_option("--chunk-packets", options->chunk_packets, "Packets of a chunk, a power of two up to 2048")
      ->check(whole_number(1, 2048))
      ->type_name("N")
      ->capture_default_str();
  offload->add_flag("--clean", options->clean, "Every packet once: no duplicates, stale packets, cuts (to count by)");
  offload->add_option("--counts", options->plugin, "Counting plugin for the emulator (-DSDR_GUEST_COUNTS=ON builds it)")
      ->check(CLI::ExistingFile)
      ->type_name("FILE");
  offload->add_option("--seed", options->seed, "Of the traffic")->type_name("N")->capture_default_str();
  offload->add_flag("--json", options->json, "Report in JSON");
  offload->callback([options, &run] { run = [options] { return run_offload(*options); }; });
}

}  // namespace sdr::cli

// sdr bench: what the parts of libsdr do on this machine, one core each unless told otherwise.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "sdr/bench_coding.hpp"
#include "sdr/bench_machine.hpp"
#include "sdr/bench_receive.hpp"
#include "sdr/options.hpp"
#include "sdr/report.hpp"
#include "sdr/subcommands.hpp"

namespace sdr::cli {
namespace {

constexpr std::string_view kName = "bench";

constexpr const char* kExamples = R"(Examples:
  sdr bench coding                          parity made and chunks restored, beside memcpy and ISA-L
  sdr bench coding --json > coding.json     sdr plan --bench coding.json reads it
  sdr bench worker --cpu 1                  packets a second through the receive worker, on core 1
  sdr bench turnaround --runs 9             recv_post + recv_complete, by message size

All measure by turns and report medians; a core should have nothing else to do meanwhile.)";

// What all of them take.
struct BenchOptions {
  unsigned runs = 5;
  std::vector<unsigned> cores;
  bool json = false;
};

struct WorkerOptions {
  BenchOptions common;
  std::string each = "20ms";
};

struct TurnaroundOptions {
  BenchOptions common;
  std::uint64_t messages = 160;
};

struct CodingOptions {
  BenchOptions common;
  std::string each = "50ms";
  unsigned threads = 1;
  std::string data = "128MiB";
  std::string chunk = "64KiB";
  std::vector<std::string> codes;
  bool no_tail = false;
};

void add_common(CLI::App& bench, BenchOptions& options) {
  bench.add_option("--runs", options.runs, "Measurements of which the median is told")
      ->check(whole_number(1, 1000))
      ->type_name("N")
      ->capture_default_str();
  bench.add_option("--cpu", options.cores, "Cores to run on; several: with commas")
      ->delimiter(',')
      ->check(whole_number(0, 1023))
      ->type_name("N");
  bench.add_flag("--json", options.json, "Report in JSON");
}

void add_each(CLI::App& bench, std::string& each) {
  bench.add_option("--each", each, "How long one measurement takes, about")
      ->check(duration_text())
      ->type_name("TIME")
      ->capture_default_str();
}

Result<Duration> read_each(const std::string& text) {
  Result<Duration> each = parse_duration(text);
  if (each && *each > std::chrono::minutes(1))
    return Error{ErrorCode::InvalidArgument, fmt::format("--each {} is more than 1 minute", text)};
  return each;
}

Result<void> take_cores(const BenchOptions& options) {
  return options.cores.empty() ? Result<void>() : keep_to_cores(options.cores);
}

Result<BenchCodingOptions> read(const CodingOptions& options) {
  const Result<Duration> each = read_each(options.each);
  if (!each) return each.error();
  BenchCodingOptions bench;
  bench.tail = !options.no_tail;
  bench.speed.runs = options.common.runs;
  bench.speed.each = *each;
  bench.speed.threads = options.threads;
  bench.speed.data = *parse_bytes(options.data);  // checked while the command line was read
  bench.speed.chunk = *parse_bytes(options.chunk);
  if (options.codes.empty()) bench.speed.shapes = usual_codes();
  for (const std::string& text : options.codes) {
    const Result<SchemeChoice> choice = parse_scheme_choice(text, false);
    if (!choice) return choice.error();
    if (!choice->coded())
      return Error{ErrorCode::InvalidArgument, fmt::format("--code {} is no erasure code, such as ec-rs:32:8", text)};
    bench.speed.shapes.push_back(
        {.kind = choice->scheme == Scheme::EcXor ? coding::CodeKind::Xor : coding::CodeKind::ReedSolomon,
         .k = static_cast<unsigned>(choice->data_chunks),
         .m = static_cast<unsigned>(choice->parity_chunks)});
  }
  return bench;
}

// The report is put behind what it was measured on.
int tell(const Result<Json>& report, bool json, void (*print)(const Json&)) {
  if (!report) return complain(kName, report.error());
  Json whole = machine_facts();
  whole.update(*report);
  if (json) {
    print_json(whole);
    return kDone;
  }
  fmt::print("{}, {}, {}\n", whole["cpu"].get<std::string>(), whole["kernel"].get<std::string>(),
             whole["date"].get<std::string>());
  print(whole);
  return kDone;
}

void add_coding(CLI::App& bench, Run& run) {
  CLI::App* coding = bench.add_subcommand("coding", "Erasure coding: parity made, chunks restored");
  auto options = std::make_shared<CodingOptions>();
  add_common(*coding, options->common);
  add_each(*coding, options->each);
  coding->add_option("--threads", options->threads, "Threads that share the blocks")
      ->check(whole_number(1, 256))
      ->type_name("N")
      ->capture_default_str();
  coding->add_option("--data", options->data, "Buffer that is coded; several times the caches")
      ->check(size_text())
      ->type_name("SIZE")
      ->capture_default_str();
  coding->add_option("--chunk", options->chunk, "Chunk, a multiple of 64 bytes")
      ->check(size_text())
      ->type_name("SIZE")
      ->capture_default_str();
  coding->add_option("--code", options->codes, "Codes beside ec-rs:32:8 and ec-xor:32:8, such as ec-rs:16:4")
      ->delimiter(',')
      ->type_name("NAME:K:M");
  coding->add_flag("--no-tail", options->no_tail, "Leave out what the adaptive scheme's parity costs");
  coding->callback([options, &run] {
    run = [options] {
      const Result<BenchCodingOptions> read_options = read(*options);
      if (!read_options) return complain(kName, read_options.error());
      if (const Result<void> taken = take_cores(options->common); !taken) return complain(kName, taken.error());
      return tell(bench_coding(*read_options), options->common.json, print_bench_coding);
    };
  });
}

void add_worker(CLI::App& bench, Run& run) {
  CLI::App* worker = bench.add_subcommand("worker", "Packets a second through the receive worker, one core");
  auto options = std::make_shared<WorkerOptions>();
  add_common(*worker, options->common);
  add_each(*worker, options->each);
  worker->callback([options, &run] {
    run = [options] {
      const Result<Duration> each = read_each(options->each);
      if (!each) return complain(kName, each.error());
      if (const Result<void> taken = take_cores(options->common); !taken) return complain(kName, taken.error());
      return tell(bench_worker(options->common.runs, *each), options->common.json, print_bench_worker);
    };
  });
}

void add_turnaround(CLI::App& bench, Run& run) {
  CLI::App* turnaround = bench.add_subcommand("turnaround", "recv_post + recv_complete, by message size");
  auto options = std::make_shared<TurnaroundOptions>();
  add_common(*turnaround, options->common);
  turnaround->add_option("--messages", options->messages, "Messages of one measurement, at least")
      ->check(whole_number(1, 1'000'000))
      ->type_name("N")
      ->capture_default_str();
  turnaround->callback([options, &run] {
    run = [options] {
      if (const Result<void> taken = take_cores(options->common); !taken) return complain(kName, taken.error());
      return tell(bench_turnaround(options->common.runs, options->messages), options->common.json,
                  print_bench_turnaround);
    };
  });
}

}  // namespace

void add_bench(CLI::App& app, Run& run) {
  CLI::App* bench = app.add_subcommand("bench", "Measure the parts: receive worker, turnaround, erasure coding");
  bench->footer(kExamples);
  bench->require_subcommand(1);
  add_worker(*bench, run);
  add_turnaround(*bench, run);
  add_coding(*bench, run);
}

}  // namespace sdr::cli

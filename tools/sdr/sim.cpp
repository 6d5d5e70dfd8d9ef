// sdr sim: how long reliable Writes take, by the real protocol over a simulated link in virtual time.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <array>
#include <fstream>
#include <memory>
#include <string>
#include <utility>

#include "experiment/trials.hpp"
#include "runtime/clock.hpp"
#include "sdr/driver.hpp"
#include "sdr/options.hpp"
#include "sdr/report.hpp"
#include "sdr/sim_flows.hpp"
#include "sdr/sim_report.hpp"
#include "sdr/sim_timeline.hpp"
#include "sdr/sim_trial.hpp"
#include "sdr/subcommands.hpp"

namespace sdr::cli {
namespace {

constexpr std::string_view kName = "sim";

constexpr const char* kExamples = R"(Examples:
  sdr sim --scheme ec-rs --loss 1e-3 --runs 1000 --jobs 2
      128 MiB over 3750 km at 400 Gbit/s, a thousand times
  sdr sim --scheme sr-nack --size 4MiB --rtt 25ms --rate 1Gbit --loss 1e-2 --burst 4 --timeline nack.svg
      a picture of the first run: packets, losses, acknowledgements, repairs
  sdr sim --link rtt=25ms,rate=10Gbit,outage=20ms+5ms --json
  sdr sim --link rtt=25ms,rate=10Gbit,trace=losses.txt --scheme ec-xor:32:8
  sdr sim --link rtt=20ms,rate=100Mbit --queue drop-tail,limit=1bdp --duration 30s \
      --flow sdr --flow tcp-cubic,rtt=40ms,start=5s --at 15s:rate=50Mbit --plot shared.svg
      several flows through one queue, and a picture of rate, queue and RTT

The link is that of --link with what the other options add to it; without --link it has
rtt=25ms and rate=400Gbit (100Mbit with --flow) unless they say otherwise. See docs/cli.md.)";

struct SimOptions {
  PathOptions path;
  std::string size = "128MiB";
  // Keys of the link that have an option of their own, and what was given.
  std::array<std::pair<const char*, std::string>, 10> keys{{{"rtt", ""},
                                                            {"rate", ""},
                                                            {"loss", ""},
                                                            {"burst", ""},
                                                            {"losssize", ""},
                                                            {"reorder", ""},
                                                            {"dup", ""},
                                                            {"jitter", ""},
                                                            {"queue", ""},
                                                            {"outage", ""}}};
  std::uint64_t runs = 1;
  std::string seed;
  unsigned jobs = 1;
  std::string step;
  bool known_loss = false;
  std::uint32_t warm_writes = 0;
  bool json = false;
  bool speed = false;
  std::string timeline;
  FlowsOptions flows;
};

constexpr std::size_t kQueueKey = 8;

// One text, read by one parser: so every key has the same form, range and refusal wherever it is given.
std::string link_text_of(const SimOptions& options) {
  std::string text = options.path.link;
  for (const auto& [key, value] : options.keys) {
    std::string given = value;
    if (given.empty() && options.path.link.empty()) {
      if (std::string_view(key) == "rtt") given = "25ms";
      if (std::string_view(key) == "rate") given = options.flows.flows.empty() ? "400Gbit" : "100Mbit";
    }
    if (!given.empty()) text += fmt::format("{}{}={}", text.empty() ? "" : ",", key, given);
  }
  return text;
}

Result<experiment::WriteTrial> trial_of(const SimOptions& options, const SchemeChoice& scheme) {
  const Result<simulation::LinkSpec> link = simulation::LinkSpec::parse(link_text_of(options));
  if (!link) return link.error();
  if (options.known_loss && scheme.scheme != Scheme::Adaptive)
    return Error{ErrorCode::InvalidArgument,
                 fmt::format("--known-loss is of the scheme adaptive; {} learns nothing", scheme.text())};
  const std::uint64_t seed = options.seed.empty() ? link->seed : std::stoull(options.seed);
  Result<experiment::WriteTrial> trial =
      write_trial(*link, scheme, *parse_bytes(options.size), options.path.mtu, options.path.chunk, seed);
  if (trial && !options.step.empty()) trial->step = *parse_duration(options.step);
  if (trial) trial->known_loss = options.known_loss;
  if (trial) trial->warm_writes = options.warm_writes;
  return trial;
}

// With several flows --queue is a discipline, or still the time that a key of the link is.
int run_sim_of_flows(SimOptions options) {
  auto& [key, queue] = options.keys[kQueueKey];
  if (!parse_duration(queue)) std::swap(queue, options.flows.queue);
  Result<experiment::SharedTrial> trial = shared_trial(options.flows, link_text_of(options));
  if (!trial) return complain(kName, trial.error());
  if (!options.seed.empty()) trial->seed = std::stoull(options.seed);
  return run_flows(options.flows, *trial, options.json, options.speed);
}

int run_sim(const SimOptions& options) {
  if (!options.flows.flows.empty()) return run_sim_of_flows(options);
  const Result<SchemeChoice> scheme = scheme_of(options.path);
  if (!scheme) return complain(kName, scheme.error());
  const Result<experiment::WriteTrial> trial = trial_of(options, *scheme);
  if (!trial) return complain(kName, trial.error());
  // Before the long work: a name that cannot be written is known now.
  std::ofstream timeline;
  if (!options.timeline.empty()) {
    timeline.open(options.timeline, std::ios::binary | std::ios::trunc);
    if (!timeline) return complain(kName, {ErrorCode::System, fmt::format("cannot write {}", options.timeline)});
  }
  experiment::keep_memory_for_runs();
  const TimePoint begin = Driver::now();
  const Duration cpu_begin = runtime::cpu_time();
  const auto results = experiment::run_all(*trial, {.runs = options.runs, .threads = options.jobs});
  if (!results) return complain(kName, results.error());
  const SimSpeed speed{.wall = Driver::now() - begin, .cpu = runtime::cpu_time() - cpu_begin};
  const SimReportCard card(*scheme, *trial, *results);
  if (timeline.is_open()) {
    if (Result<void> drawn = draw_timeline(*scheme, *trial, timeline); !drawn) return complain(kName, drawn.error());
    if (!timeline.flush())
      return complain(kName, {ErrorCode::System, fmt::format("cannot write {}", options.timeline)});
  }
  if (options.json) {
    print_json(card.to_json(options.speed ? std::optional(speed) : std::nullopt));
  } else {
    card.print(speed);
  }
  if (card.good()) return kDone;
  return complain(kName, {ErrorCode::PeerUnreachable, card.complaint()});
}

void add_link_options(CLI::App& sim, SimOptions& options) {
  sim.add_option("--link", options.path.link,
                 "The link: rtt=25ms,rate=400Gbit,loss=1e-3,outage=1s+200ms,trace=FILE,...")
      ->transform(link_text())
      ->type_name("LINK");
  constexpr std::array kHelp = {"Round-trip time of the link (25ms)",
                                "Rate of the link and of the sender (400Gbit); 0: not limited",
                                "Mean share of packets lost",
                                "Mean length of a run of losses in packets",
                                "--loss is that of packets of so many bytes; larger ones are lost more often",
                                "Share of packets that fall behind later ones",
                                "Share of packets that arrive twice",
                                "The delay wanders by so much",
                                "Longest wait for the rate before a packet is dropped; with --flow also drop-tail, "
                                "codel or policer, as in sdr emulate",
                                "All is lost for a while: BEGIN+LENGTH, several with / between"};
  constexpr std::array kTypes = {"TIME", "RATE", "SHARE", "N", "SIZE", "SHARE", "SHARE", "TIME", "TIME", "TIME+TIME"};
  for (std::size_t i = 0; i < options.keys.size(); ++i) {
    sim.add_option(fmt::format("--{}", options.keys[i].first), options.keys[i].second, kHelp[i])->type_name(kTypes[i]);
  }
}

void add_flow_options(CLI::App& sim, FlowsOptions& options) {
  CLI::Option* flow = sim.add_option("--flow", options.flows,
                                     "A flow that shares the link with others, instead of Writes by themselves: "
                                     "sdr, tcp-cubic or tcp-bbr with rtt=, start=, stop=, bytes=, name=; sdr also "
                                     "scheme=, controller=, rate=, maxrate=, write=; repeatable")
                          ->type_name("FLOW")
                          ->allow_extra_args(false);
  sim.add_option("--at", options.changes, "What the link becomes at a time: 5s:rate=10Mbit,rtt=75ms; repeatable")
      ->type_name("TIME:KEYS")
      ->allow_extra_args(false)
      ->needs(flow);
  sim.add_option("--duration", options.duration, "How long the flows are watched")
      ->check(duration_text())
      ->type_name("TIME")
      ->capture_default_str()
      ->needs(flow);
  sim.add_option("--interval", options.interval, "Of what is shown over time (default: a 300th of the duration)")
      ->check(duration_text())
      ->type_name("TIME")
      ->needs(flow);
  sim.add_option("--plot", options.plot, "Draw rate, queue and RTT over time into FILE, in SVG")
      ->type_name("FILE")
      ->needs(flow);
  sim.add_flag("--series", options.series, "With --json: also what happened over time")->needs(flow);
}

}  // namespace

void add_sim(CLI::App& app, Run& run) {
  CLI::App* sim = app.add_subcommand("sim", "How long Writes take over a simulated link, by the real protocol");
  sim->footer(kExamples);
  auto options = std::make_shared<SimOptions>();
  sim->add_option("--size", options->size, "Length of a Write, such as 64MiB")
      ->check(size_text())
      ->type_name("SIZE")
      ->capture_default_str();
  add_scheme_options(*sim, options->path, false);
  add_link_options(*sim, *options);
  add_mtu_option(*sim, options->path, "4096, or what a link with an mtu carries");
  add_chunk_option(*sim, options->path);
  sim->add_option("--runs", options->runs, "Writes, each over a fresh connection with losses of its own")
      ->check(whole_number(1, experiment::TrialPlan::kMostRuns))
      ->type_name("N")
      ->capture_default_str();
  sim->add_option("--seed", options->seed, "What the losses are drawn from (default 1)")
      ->check(whole_number(0, UINT64_MAX))
      ->type_name("N");
  sim->add_option("--jobs", options->jobs, "Threads; the result does not depend on it")
      ->check(whole_number(1, experiment::TrialPlan::kMostThreads))
      ->type_name("N")
      ->capture_default_str();
  sim->add_option("--step", options->step, "Time between two looks of an end (default: 256 packets, at most RTT/1000)")
      ->check(duration_text())
      ->type_name("TIME");
  sim->add_flag("--known-loss", options->known_loss,
                "The sender starts with the link's true loss and burst, instead of learning them");
  sim->add_option("--warm", options->warm_writes, "Writes before the measured one: what they taught the sender counts")
      ->check(whole_number(0, experiment::WriteTrial::kMostWarmWrites))
      ->type_name("N")
      ->capture_default_str();
  sim->add_flag("--json", options->json, "Report in JSON");
  sim->add_flag("--speed", options->speed, "With --json: also how fast the simulation was");
  sim->add_option("--timeline", options->timeline, "Draw the first run into FILE, in SVG")->type_name("FILE");
  add_flow_options(*sim, options->flows);
  sim->callback([options, sim, &run] {
    // A flow says for itself how it sends.
    for (const char* of_writes : {"--size", "--scheme", "--k", "--m", "--mtu", "--chunk", "--runs", "--jobs", "--step",
                                  "--known-loss", "--warm", "--timeline"}) {
      if (!options->flows.flows.empty() && sim->get_option(of_writes)->count() > 0)
        throw CLI::ExcludesError(of_writes, "--flow");
    }
    run = [options] { return run_sim(*options); };
  });
}

}  // namespace sdr::cli

// sdr perf: how long reliable Writes take, between two hosts or two processes of this one.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <optional>
#include <string>

#include "sdr/driver.hpp"
#include "sdr/json_fields.hpp"
#include "sdr/link_profile.hpp"
#include "sdr/offload.hpp"
#include "sdr/options.hpp"
#include "sdr/path.hpp"
#include "sdr/perf_ends.hpp"
#include "sdr/perf_plan.hpp"
#include "sdr/perf_report.hpp"
#include "sdr/perf_run.hpp"
#include "sdr/report.hpp"
#include "sdr/session.hpp"
#include "sdr/subcommands.hpp"
#include "sdr/two_ends.hpp"

namespace sdr::cli {
namespace {

constexpr std::string_view kName = "perf";

constexpr const char* kExamples = R"(Examples:
  sdr perf --self --link rtt=25ms,rate=1Gbit,loss=1e-3 --scheme ec-rs --size 4MiB
      both ends here, as two processes over an emulated 3750 km path
  sdr perf --self --scheme none --size 8MiB --inflight 16
      what the transport does by itself on loopback
  sdr perf --listen 0.0.0.0:7000          and on another host
  sdr perf 192.0.2.7:7000 --rate 1Gbit --scheme sr-nack --size 64MiB --json
  sdr perf 192.0.2.7:7000 --rate 90Gbit --transport verbs --device mlx5_0
      RDMA; the listener has --transport verbs --device too (docs/verbs.md)

Ports for a firewall: the listener takes TCP on PORT, UDP on PORT (control) and on
PORT+1 to PORT+channels (data). The client's are chosen by its system.)";

struct PerfOptions {
  PathOptions path;
  TwoEndsOptions ends;
  bool no_verify = false;
  std::string profile;
  std::string offload = "none";
  unsigned offload_threads = 1;
  std::string size = "8MiB";
  std::uint64_t iterations = 20;
  std::uint64_t warmup = 1;
  std::uint32_t inflight = 1;
};

PerfPlan plan_of(const PerfOptions& options) {
  return {.size = *parse_bytes(options.size),
          .iterations = options.iterations,
          .warmup = options.warmup,
          .inflight = options.inflight,
          .verify = !options.no_verify,
          .seed = Driver::random_token()};
}

// The device of this end, told to the path. Opened by the process that uses it.
Result<void> offload(const PerfOptions& options, Path& path) {
  const std::optional<OffloadDevice> device = parse_offload_device(options.offload);
  if (!device) return {};
  const Result<OffloadPtr> opened = open_offload({.device = *device, .threads = options.offload_threads});
  if (!opened) return opened.error();
  path.give_packets_to(*opened);
  return {};
}

// --- the client ---

struct Agreed {
  Path path;
  Payload payload;
};

Result<Agreed> agree(Session& session, const PerfOptions& options, const PerfPlan& plan) {
  Result<Path> path = Path::choose(options.path, session);
  if (!path) return path.error();
  if (Result<void> fits = plan.check_memory(1); !fits) return fits.error();
  // Before the hello, so that the server does not wait for it.
  Result<Payload> payload = Payload::make(plan.size, plan.seed);
  if (!payload) return payload.error();
  const Json hello = {{"command", kName}, {"path", path->to_json()}, {"plan", plan.to_json()}};
  if (Result<void> sent = session.send(hello); !sent) return sent.error();
  // The server makes its payload before it answers, or has another client.
  const Result<Json> answer = session.receive(path->timeout() + kSessionPatience);
  if (!answer) return answer.error();
  if (Result<void> adopted = path->adopt(*answer); !adopted) return adopted.error();
  if (Result<void> given = offload(options, *path); !given) return given.error();
  return Agreed{std::move(path).value(), std::move(payload).value()};
}

Result<int> measure(Session& session, const PerfOptions& options) {
  const Result<PerfPlan> checked = PerfPlan::from_json(plan_of(options).to_json());
  if (!checked) return checked.error();
  const PerfPlan& plan = *checked;
  Result<Agreed> agreed = agree(session, options, plan);
  if (!agreed) return agreed.error();
  const auto& [path, payload] = *agreed;
  auto sent =
      path.scheme().scheme ? send_reliable(path, plan, payload, session) : send_bare(path, plan, payload, session);
  if (!sent) return sent.error();
  const Result<Json> answer = session.receive(path.timeout() + kSessionPatience);
  if (!answer) return answer.error();
  const Result<ReceiverResult> received = ReceiverResult::from_json(*answer);
  if (!received) return received.error();
  if (!options.profile.empty()) {
    const Json profile = LinkProfile::learned(sent->link, Bytes{path.mtu()}, path.rate()).to_json();
    if (Result<void> written = write_json(options.profile, profile); !written) return written.error();
  }
  const PerfReportCard card(path, plan, std::move(sent).value(), *received);
  for (const std::string& failure : card.offload_failures())
    fmt::print(stderr, "sdr perf: {}; went on without it\n", failure);
  if (options.ends.json) {
    Json report = card.to_json();
    report["offload"] = {{"device", options.offload}, {"failures", card.offload_failures()}};
    print_json(report);
  } else {
    card.print();
  }
  if (card.good()) return kDone;
  return complain(kName, {ErrorCode::Protocol, card.complaint()});
}

int run_client(const PerfOptions& options, const std::string& peer) {
  if (Result<void> writable = check_writable(options.profile); !writable) return complain(kName, writable.error());
  Result<Session> session = Session::connect(peer, std::min(kSessionPatience, *parse_duration(options.path.timeout)));
  if (!session) return complain(kName, session.error());
  const Result<int> code = measure(*session, options);
  return code ? *code : complain(kName, code.error());
}

// --- the server ---

// Runs what the client asks for; what came of it.
Result<Json> served(Session& session, const PerfOptions& options, std::uint16_t base_port) {
  const Result<Json> hello = session.receive(kHelloPatience);
  if (!hello) return hello.error();
  if (Result<void> ours = check_command(*hello, kName); !ours) return ours.error();
  Result<Path> path = Path::accept(hello->value("path", Json::object()), session, options.path, base_port);
  if (!path) return path.error();
  if (Result<void> given = offload(options, *path); !given) return given.error();
  const Result<PerfPlan> plan = PerfPlan::from_json(hello->value("plan", Json::object()));
  if (!plan) return plan.error();
  if (Result<void> fits = plan->check_memory(plan->receives() + 1ULL); !fits) return fits.error();
  const Result<Payload> payload = Payload::make(plan->size, plan->seed);
  if (!payload) return payload.error();
  Result<ReceiveBuffers> buffers = ReceiveBuffers::make(*plan, *payload);
  if (!buffers) return buffers.error();
  // All that takes time is done before the answer.
  if (Result<void> sent = session.send({{"mtu", path->mtu()}}); !sent) return sent.error();
  const auto result = path->scheme().scheme ? receive_reliable(*path, *plan, *buffers, session)
                                            : receive_bare(*path, *plan, *buffers, session);
  if (!result) return result.error();
  if (Result<void> sent = session.send(result->to_json()); !sent) return sent.error();
  Json report = {{"client", session.peer().to_string()}, {"scheme", path->scheme().text()}};
  report.update(plan->to_json());
  report.update(result->to_json());
  return report;
}

void print_served(const Json& report, bool json) {
  if (json) return print_json(report);
  const bool good = report["wrong"] == 0 && report["lost"] == 0;
  fmt::print("{}: {} Writes of {} with {}, {}\n", report["client"].get<std::string>(),
             report["iterations"].get<std::uint64_t>(), to_string(Bytes{report["size_bytes"].get<std::uint64_t>()}),
             report["scheme"].get<std::string>(), good ? "complete" : "NOT all complete and right");
  std::fflush(stdout);
}

Result<void> serve(Session& session, const PerfOptions& options, std::uint16_t base_port, bool quiet) {
  const Result<Json> report = served(session, options, base_port);
  if (!report) return report.error();
  if (!quiet) print_served(*report, options.ends.json);
  return {};
}

int run_perf(const PerfOptions& options) {
  const bool limits = options.path.background || !options.path.max_rate.empty();
  if (options.ends.listens() && limits)
    return complain(
        kName, {ErrorCode::InvalidArgument, "--max-rate and --background are of the end that sends, not of --listen"});
  const bool bare = options.path.scheme == "none";
  if (!options.profile.empty() && (bare || options.ends.listens()))
    return complain(kName,
                    {ErrorCode::InvalidArgument, fmt::format("--profile is what a sender learns; {} learns nothing",
                                                             bare ? "scheme none" : "--listen")});
  return run_two_ends({.name = kName,
                       .client = [&](const std::string& peer) { return run_client(options, peer); },
                       .serve = [&](Session& session, std::uint16_t base_port,
                                    bool quiet) { return serve(session, options, base_port, quiet); }},
                      options.ends);
}

}  // namespace

Json ReceiverResult::to_json() const {
  return {{"writes", writes},
          {"wrong", wrong},
          {"lost", lost},
          {"packets_received", packets_received},
          {"duplicate_packets", duplicate_packets},
          {"late_packets", late_packets},
          {"host_drops", host_drops},
          {"chunks_recovered", chunks_recovered},
          {"fallbacks", fallbacks},
          {"receive_calls", receive_calls},
          {"offload_failure", offload_failure}};
}

Result<ReceiverResult> ReceiverResult::from_json(const Json& json) {
  ReceiverResult result;
  const std::pair<std::string_view, std::uint64_t*> fields[] = {{"writes", &result.writes},
                                                                {"wrong", &result.wrong},
                                                                {"lost", &result.lost},
                                                                {"packets_received", &result.packets_received},
                                                                {"duplicate_packets", &result.duplicate_packets},
                                                                {"late_packets", &result.late_packets},
                                                                {"host_drops", &result.host_drops},
                                                                {"chunks_recovered", &result.chunks_recovered},
                                                                {"fallbacks", &result.fallbacks},
                                                                {"receive_calls", &result.receive_calls}};
  for (const auto& [name, into] : fields) {
    const Result<std::uint64_t> value = get_number(json, name);
    if (!value) return value.error();
    *into = *value;
  }
  // Of a peer that knows of it.
  if (const auto told = json.find("offload_failure"); told != json.end() && told->is_string())
    result.offload_failure = told->get<std::string>();
  return result;
}

void add_perf(CLI::App& app, Run& run) {
  CLI::App* perf = app.add_subcommand("perf", "Measure how long Writes take, and check what arrives");
  perf->footer(kExamples);
  auto options = std::make_shared<PerfOptions>();
  add_two_ends_options(*perf, options->ends);
  perf->add_option("--size", options->size, "Length of a Write, such as 64MiB")
      ->check(size_text())
      ->type_name("SIZE")
      ->capture_default_str();
  perf->add_option("--iters", options->iterations, "Writes that count")
      ->check(whole_number(1, PerfPlan::kMaxWrites))
      ->type_name("N")
      ->capture_default_str();
  perf->add_option("--warmup", options->warmup, "Writes before those")
      ->check(whole_number(0, PerfPlan::kMaxWrites))
      ->type_name("N")
      ->capture_default_str();
  perf->add_option("--inflight", options->inflight, "Writes at a time")
      ->check(whole_number(1, PerfPlan::kMaxInflight))
      ->type_name("N")
      ->capture_default_str();
  perf->add_option("--profile", options->profile,
                   "Write what the sender learned of the path, for sdr plan --link-profile")
      ->type_name("FILE");
  perf->add_option("--offload", options->offload,
                   "Who does this end's work on every packet: this process, or a device of threads or emulated RV64")
      ->check(CLI::IsMember({"none", "host", "riscv"}))
      ->type_name("none|host|riscv")
      ->capture_default_str();
  perf->add_option("--offload-threads", options->offload_threads, "Threads of that device, at most one a channel")
      ->check(whole_number(1, 64))
      ->type_name("N")
      ->capture_default_str();
  perf->add_flag("--no-verify", options->no_verify, "Do not compare what arrives with what was sent");
  add_path_options(*perf, options->path, true);
  perf->callback([options, &run] { run = [options] { return run_perf(*options); }; });
}

}  // namespace sdr::cli

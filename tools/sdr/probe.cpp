// sdr probe: what a path loses, by payload size: Figure 2 of the SDR-RDMA paper as a tool.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "sdr/driver.hpp"
#include "sdr/json_fields.hpp"
#include "sdr/options.hpp"
#include "sdr/path.hpp"
#include "sdr/probe_plan.hpp"
#include "sdr/probe_plot.hpp"
#include "sdr/probe_report.hpp"
#include "sdr/probe_run.hpp"
#include "sdr/report.hpp"
#include "sdr/session.hpp"
#include "sdr/subcommands.hpp"
#include "sdr/two_ends.hpp"

namespace sdr::cli {
namespace {

constexpr std::string_view kName = "probe";
constexpr std::array<std::uint32_t, 4> kUsualPayloads = {1024, 2048, 4096, 8192};
constexpr Bandwidth kLoopbackRate{1e9};

constexpr const char* kExamples = R"(Examples:
  sdr probe --listen 0.0.0.0:7100           and on another host
  sdr probe 192.0.2.7:7100 --rate 10Gbit --profile link.json --plot loss.svg
  sdr plan --link-profile link.json --size 128MiB
  sdr probe --self --link rtt=25ms,rate=1Gbit,loss=1e-3,burst=8 --trials 5
      both ends here, over an emulated path

Ports for a firewall: the listener takes TCP on PORT, UDP on PORT (echoes) and on
PORT+1 to PORT+flows (load). The client's are chosen by its system.)";

struct ProbeOptions {
  TwoEndsOptions ends;
  std::uint32_t flows = 16;
  std::uint32_t trials = 20;
  std::vector<std::string> payloads;
  std::uint64_t packets = 0;
  std::string duration = "1s";
  std::string profile;
  std::string plot;
  PathOptions path;  // rate, link, device and timeout of it
};

Error invalid(std::string message) {
  return {ErrorCode::InvalidArgument, std::move(message)};
}

Result<SocketAddress> data_address(const ProbeOptions& options, const Session& session) {
  if (options.path.transport != "udp")
    return Error{ErrorCode::InvalidArgument,
                 "sdr probe sends UDP packets; it has no transport " + options.path.transport};
  if (options.path.device.empty()) return session.local().with_port(0);
  return transport::local_address(options.path.device);
}

// --- the client ---

// What the path to the peer carries, headers included, as far as this host knows and as the emulated link says.
Result<std::uint32_t> mtu_towards(const SocketAddress& local, const Session& session, const std::string& link) {
  Result<transport::UdpSocket> socket = transport::UdpSocket::open(local, {});
  if (!socket) return socket.error();
  if (Result<void> connected = socket->connect(session.peer()); !connected) return connected.error();
  Result<std::uint32_t> mtu = socket->path_mtu();
  const Result<simulation::LinkSpec> spec = simulation::LinkSpec::parse(link);
  if (!mtu || !spec || !spec->mtu_given) return mtu;
  return std::min<std::uint32_t>(*mtu, spec->mtu);
}

Result<std::vector<std::uint32_t>> payloads_of(const ProbeOptions& options, std::uint32_t mtu, std::uint32_t overhead) {
  const std::uint32_t most = std::min(mtu - std::min(mtu, overhead), ProbePlan::kMostPayload);
  std::vector<std::uint32_t> payloads;
  for (const std::string& text : options.payloads) {
    const std::uint64_t bytes = parse_bytes(text)->count;
    if (bytes < ProbePlan::kLeastPayload || bytes > most) {
      return Error{bytes > ProbePlan::kMostPayload ? ErrorCode::InvalidArgument : ErrorCode::Mismatch,
                   fmt::format("payload {} is not from {} to {}: the path carries packets of {} bytes, {} of them "
                               "headers, and a probe is not fragmented",
                               bytes, ProbePlan::kLeastPayload, most, mtu, overhead)};
    }
    payloads.push_back(static_cast<std::uint32_t>(bytes));
  }
  if (payloads.empty()) {
    std::copy_if(kUsualPayloads.begin(), kUsualPayloads.end(), std::back_inserter(payloads),
                 [most](std::uint32_t bytes) { return bytes <= most; });
    if (payloads.empty()) payloads.push_back(most);
  }
  std::sort(payloads.begin(), payloads.end());
  payloads.erase(std::unique(payloads.begin(), payloads.end()), payloads.end());
  return payloads;
}

Result<Bandwidth> rate_of(const ProbeOptions& options, const Session& session) {
  if (!options.path.rate.empty()) return parse_bandwidth(options.path.rate);
  const Result<simulation::LinkSpec> link = simulation::LinkSpec::parse(options.path.link);
  if (!link) return link.error();
  if (link->rate.limited()) return link->rate;
  if (session.same_machine()) return kLoopbackRate;
  return invalid(
      fmt::format("--rate is needed towards {}: the path leaves this machine; give the rate at which to "
                  "probe it, such as --rate 1Gbit",
                  session.peer().host()));
}

Result<ProbePlan> plan_of(const ProbeOptions& options, const Session& session, const SocketAddress& local) {
  const Result<Bandwidth> rate = rate_of(options, session);
  if (!rate) return rate.error();
  const Result<std::uint32_t> mtu = mtu_towards(local, session, options.path.link);
  if (!mtu) return mtu.error();
  ProbePlan plan{.payloads = {},
                 .flows = options.flows,
                 .trials = options.trials,
                 .packets = options.packets,
                 .duration = *parse_duration(options.duration),
                 .rate = *rate,
                 .overhead = local.is_ipv6() ? 48U : 28U,
                 .link = options.path.link,
                 .timeout = *parse_duration(options.path.timeout),
                 .token = Driver::random_token()};
  Result<std::vector<std::uint32_t>> payloads = payloads_of(options, *mtu, plan.overhead);
  if (!payloads) return payloads.error();
  plan.payloads = std::move(payloads).value();
  if (Result<void> good = plan.check(); !good) return good.error();
  return plan;
}

Result<std::vector<std::uint16_t>> ports_of(const Json& message) {
  std::vector<std::uint16_t> ports;
  for (const Json& port : message.value("ports", Json::array())) {
    const std::uint64_t number = port.is_number_unsigned() ? port.get<std::uint64_t>() : 0;
    if (number < 1 || number > UINT16_MAX || ports.size() > ProbePlan::kMostFlows) {
      return Error{ErrorCode::Protocol, "the field \"ports\" of the peer's message is not a list of UDP ports"};
    }
    ports.push_back(static_cast<std::uint16_t>(number));
  }
  return ports;
}

Result<void> check_version(const Json& message) {
  const Result<std::uint64_t> version = get_number(message, "version");
  if (!version) return version.error();
  if (*version == kProbeVersion) return {};
  return Error{ErrorCode::Mismatch,
               fmt::format("sdr probe has version {} at one end and {} at the other", kProbeVersion, *version)};
}

// The client's sockets are opened after the server's, which want ports of their own on the same machine.
Result<ProbeSockets> agree(Session& session, const ProbePlan& plan, const SocketAddress& local) {
  const Json hello = {{"command", kName}, {"version", kProbeVersion}, {"plan", plan.to_json()}};
  if (Result<void> sent = session.send(hello); !sent) return sent.error();
  const Result<Json> answer = session.receive(plan.timeout);
  if (!answer) return answer.error();
  if (Result<void> same = check_version(*answer); !same) return same.error();
  const auto ports = ports_of(*answer);
  if (!ports) return ports.error();
  Result<ProbeSockets> sockets = ProbeSockets::open(local, plan.flows, 0);
  if (!sockets) return sockets.error();
  const SocketAddress peer = session.peer().with_scope_of(local);
  if (Result<void> connected = sockets->connect(peer, *ports); !connected) return connected.error();
  if (Result<void> sent = session.send({{"ports", sockets->ports()}}); !sent) return sent.error();
  if (const Result<Json> ready = session.receive(plan.timeout); !ready) return ready.error();
  return sockets;
}

Result<void> write_files(const ProbeOptions& options, const ProbePlan& plan, const ProbeReport& report,
                         const ProbeResult& result) {
  if (!options.plot.empty()) {
    std::ofstream file(options.plot, std::ios::binary | std::ios::trunc);
    const std::string what = fmt::format("{} flows, {} trials, {}{}", plan.flows, plan.trials, to_string(plan.rate),
                                         plan.link.empty() ? "" : ", emulated link " + plan.link);
    draw_losses(result.payloads, what, file);
    if (!file.flush()) return Error{ErrorCode::System, fmt::format("cannot write {}", options.plot)};
  }
  if (!options.profile.empty()) {
    const Result<LinkProfile> profile = report.profile();
    if (!profile) return profile.error();
    if (Result<void> written = write_json(options.profile, profile->to_json()); !written) return written.error();
  }
  return {};
}

Result<int> measure(Session& session, const ProbeOptions& options) {
  const Result<SocketAddress> local = data_address(options, session);
  if (!local) return local.error();
  const Result<ProbePlan> plan = plan_of(options, session, *local);
  if (!plan) return plan.error();
  Result<ProbeSockets> sockets = agree(session, *plan, *local);
  if (!sockets) return sockets.error();
  const Result<ProbeResult> result = measure_path(*plan, *sockets, session);
  if (!result) return result.error();
  const ProbeReport report(*plan, session.peer().to_string(), *result);
  if (options.ends.json) {
    print_json(report.to_json());
  } else {
    report.print();
  }
  if (Result<void> written = write_files(options, *plan, report, *result); !written) return written.error();
  return kDone;
}

int run_client(const ProbeOptions& options, const std::string& peer) {
  for (const std::string& file : {options.profile, options.plot}) {
    if (Result<void> writable = check_writable(file); !writable) return complain(kName, writable.error());
  }
  Result<Session> session = Session::connect(peer, std::min(kSessionPatience, *parse_duration(options.path.timeout)));
  if (!session) return complain(kName, session.error());
  const Result<int> code = measure(*session, options);
  if (code) return *code;
  session->send_error(code.error().message);
  return complain(kName, code.error());
}

// --- the server ---

Result<ProbeSockets> accept(Session& session, const ProbeOptions& options, const ProbePlan& plan,
                            std::uint16_t base_port) {
  const Result<SocketAddress> local = data_address(options, session);
  if (!local) return local.error();
  Result<ProbeSockets> sockets = ProbeSockets::open(*local, plan.flows, base_port);
  if (!sockets) return sockets;
  if (Result<void> sent = session.send({{"version", kProbeVersion}, {"ports", sockets->ports()}}); !sent) {
    return sent.error();
  }
  const Result<Json> answer = session.receive(plan.timeout);
  if (!answer) return answer.error();
  const auto ports = ports_of(*answer);
  if (!ports) return ports.error();
  const SocketAddress peer = session.peer().with_scope_of(*local);
  if (Result<void> connected = sockets->connect(peer, *ports); !connected) return connected.error();
  if (Result<void> sent = session.send({{"ready", true}}); !sent) return sent.error();
  return sockets;
}

Result<ProbeServed> served(Session& session, const ProbeOptions& options, std::uint16_t base_port) {
  const Result<Json> hello = session.receive(kHelloPatience);
  if (!hello) return hello.error();
  if (Result<void> ours = check_command(*hello, kName); !ours) return ours.error();
  if (Result<void> same = check_version(*hello); !same) return same.error();
  const Result<ProbePlan> plan = ProbePlan::from_json(hello->value("plan", Json::object()));
  if (!plan) return Error{ErrorCode::Protocol, plan.error().message};
  Result<ProbeSockets> sockets = accept(session, options, *plan, base_port);
  if (!sockets) return sockets.error();
  return answer_probe(*plan, *sockets, session);
}

void print_served(const Session& session, const ProbeServed& served, bool json) {
  if (json) {
    return print_json({{"client", session.peer().to_string()},
                       {"trials", served.trials},
                       {"packets", served.packets},
                       {"host_drops", served.host_drops}});
  }
  fmt::print("{}: {} trials, {} packets arrived, {} dropped by this host\n", session.peer().to_string(), served.trials,
             served.packets, served.host_drops);
  std::fflush(stdout);
}

Result<void> serve(Session& session, const ProbeOptions& options, std::uint16_t base_port, bool quiet) {
  const Result<ProbeServed> probed = served(session, options, base_port);
  if (!probed) return probed.error();
  if (!quiet) print_served(session, *probed, options.ends.json);
  return {};
}

int run_probe(const ProbeOptions& options) {
  return run_two_ends({.name = kName,
                       .client = [&](const std::string& peer) { return run_client(options, peer); },
                       .serve = [&](Session& session, std::uint16_t base_port,
                                    bool quiet) { return serve(session, options, base_port, quiet); }},
                      options.ends);
}

}  // namespace

void add_probe(CLI::App& app, Run& run) {
  CLI::App* probe = app.add_subcommand("probe", "What a path loses, by payload size; RTT, reordering and rate");
  probe->footer(kExamples);
  auto options = std::make_shared<ProbeOptions>();
  add_two_ends_options(*probe, options->ends);
  CLI::Option* duration = probe->add_option("--duration", options->duration, "Length of a trial")
                              ->check(duration_text())
                              ->type_name("TIME")
                              ->capture_default_str();
  // What the client says is not the listener's to say.
  const std::vector<const CLI::Option*> of_client = {
      probe->add_option("--flows", options->flows, "UDP flows that the load is spread over")
          ->check(whole_number(1, ProbePlan::kMostFlows))
          ->type_name("N")
          ->capture_default_str(),
      probe
          ->add_option("--payload", options->payloads,
                       "Payloads of a packet (default: those of 1, 2, 4 and 8 KiB that the path carries)")
          ->delimiter(',')
          ->check(size_text())
          ->type_name("SIZE,...")
          ->expected(1)
          ->take_all(),
      probe->add_option("--trials", options->trials, "Trials of each payload")
          ->check(whole_number(1, ProbePlan::kMostTrials))
          ->type_name("N")
          ->capture_default_str(),
      probe->add_option("--packets", options->packets, "Packets of a flow in a trial, instead of --duration")
          ->check(whole_number(1, ProbePlan::kMostPackets))
          ->excludes(duration)
          ->type_name("N"),
      duration,
      probe
          ->add_option("--rate", options->path.rate,
                       "Rate of all flows together, headers included (default: the link's; 1Gbit on loopback)")
          ->check(rate_text())
          ->type_name("RATE"),
      probe->add_option("--link", options->path.link, "Emulate a link on the way: rtt=25ms,rate=1Gbit,loss=1e-3,...")
          ->transform(link_text())
          ->type_name("LINK"),
      probe->add_option("--profile", options->profile, "Write what was found for sdr plan --link-profile")
          ->type_name("FILE"),
      probe->add_option("--plot", options->plot, "Draw the losses by payload size, in SVG")->type_name("FILE"),
      probe->add_option("--timeout", options->path.timeout, "Give up when the peer was silent for this long")
          ->check(duration_text())
          ->type_name("TIME")
          ->capture_default_str()};
  add_device_options(*probe, options->path);
  probe->callback([options, of_client, &run] {
    for (const CLI::Option* option : of_client) {
      if (options->ends.listens() && option->count() > 0) throw CLI::ExcludesError(option->get_name(), "--listen");
    }
    run = [options] { return run_probe(*options); };
  });
}

}  // namespace sdr::cli

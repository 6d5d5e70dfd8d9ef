// sdr plan: which scheme, with which parameters, for these messages on this link.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "model/planner.hpp"
#include "sdr/bench_record.hpp"
#include "sdr/link_profile.hpp"
#include "sdr/options.hpp"
#include "sdr/plan_encode_speed.hpp"
#include "sdr/plan_report.hpp"
#include "sdr/report.hpp"
#include "sdr/subcommands.hpp"

namespace sdr::cli {
namespace {

constexpr std::string_view kName = "plan";
constexpr Bytes kDefaultMtu{4096};

constexpr const char* kExamples = R"(Examples:
  sdr plan --rtt 25ms --rate 400Gbit --loss 1e-5 --size 128MiB
  sdr plan --distance 3750km --rate 10Gbit --loss 1e-3 --burst 4 --size 1MiB,64MiB,4GiB --budget-overhead 5%
  sdr plan --link-profile path.json --size 128MiB --json

Columns: times until the sender knows a Write complete; slowdown: mean over the lossless
time; more bytes: parity and expected repeats over the message; fallback: Writes whose
parity does not suffice; holds to: packet loss up to which that is rarer than 1 in 1000;
cores: that make parity at --rate, by --bench or a short measurement on this machine.

Assumed: the theory of docs/model.md, one Write at a time on an idle path that loses
nothing to queues; --rate is of payload, headers and acknowledgements are not counted;
sr-rto repeats after 3 RTT, sr-nack after 1 RTT; coded schemes fall back as sr-nack,
RTT/2 after their last parity chunk; submessages are interleaved, XOR groups also.)";

struct PlanOptions {
  std::string rtt;
  std::string distance;
  std::string rate;
  std::string loss;
  std::string burst;
  std::vector<std::string> sizes;
  std::string budget = "10%";
  std::string mtu;
  std::string chunk = "auto";
  std::string profile;
  std::string bench;
  bool json = false;
};

Error refused(std::string message) {
  return {ErrorCode::InvalidArgument, std::move(message)};
}

// "1e-5", or "0.001%" where a share is meant.
Result<double> parse_number(std::string_view what, std::string_view text, bool share) {
  std::string_view digits = text;
  const bool percent = share && digits.ends_with('%');
  if (percent) digits.remove_suffix(1);
  double value = 0;
  const auto [stop, code] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (code != std::errc() || stop != digits.data() + digits.size()) {
    return refused(fmt::format("{} \"{}\" is not a number{}", what, text, share ? ", such as 1e-3 or 0.1%" : ""));
  }
  return percent ? value / 100 : value;
}

Result<Duration> parse_distance(std::string_view text) {
  std::string_view digits = text;
  if (!digits.ends_with("km"))
    return refused(fmt::format("distance \"{}\" is not a length in km, such as 3750km", text));
  digits.remove_suffix(2);
  const Result<double> kilometres = parse_number("distance", digits, false);
  if (!kilometres) return kilometres.error();
  return model::rtt_over({*kilometres});
}

Result<Duration> rtt_of(const PlanOptions& options, const std::optional<LinkProfile>& profile) {
  if (!options.rtt.empty()) return parse_duration(options.rtt);
  if (!options.distance.empty()) return parse_distance(options.distance);
  if (profile) return profile->rtt_p50;
  return refused("one of --rtt, --distance and --link-profile is needed");
}

Result<Bytes> mtu_of(const PlanOptions& options) {
  if (options.mtu.empty()) return kDefaultMtu;
  Result<Bytes> mtu = parse_bytes(options.mtu);
  if (!mtu) return mtu.error();
  if (mtu->count >= 64 && mtu->count <= 65488 && mtu->count % 8 == 0) return mtu;
  return refused(fmt::format("mtu {} bytes is not a multiple of 8 from 64 to 65488", mtu->count));
}

// Losses, as given or as measured for packets of this size; chooses the size where only the profile can tell.
Result<void> set_losses(const PlanOptions& options, const std::optional<LinkProfile>& profile, PlanQuestion& question) {
  model::PathSpec& path = question.path;
  if (profile) {
    const Result<LinkProfile::Payload> payload =
        options.mtu.empty() ? profile->payload_up_to(path.packet) : profile->payload_of(path.packet);
    if (!payload) return payload.error();
    path.packet = payload->bytes;
    path.loss = payload->loss;
    path.burst = payload->mean_burst;
    if (payload->loss == 0 && options.loss.empty()) {
      question.notes.push_back(
          fmt::format("the profile has no loss among {} packets of {} bytes; the loss may still be "
                      "as high as {:.1e} (95 % sure): try --loss",
                      payload->packets, payload->bytes.count, 3 / static_cast<double>(payload->packets)));
    }
  } else if (options.loss.empty()) {
    return refused("one of --loss and --link-profile is needed");
  }
  if (!options.loss.empty()) {
    const Result<double> loss = parse_number("loss", options.loss, true);
    if (!loss) return loss.error();
    path.loss = *loss;
  }
  if (!options.burst.empty()) {
    const Result<double> burst = parse_number("burst", options.burst, false);
    if (!burst) return burst.error();
    path.burst = *burst;
  }
  return {};
}

Result<void> set_chunk(const PlanOptions& options, model::PathSpec& path) {
  const Result<std::uint32_t> packets = packets_per_chunk(options.chunk, static_cast<std::uint32_t>(path.packet.count));
  if (!packets) return refused(packets.error().message);
  path.chunk = path.packet * *packets;
  return {};
}

// All but the message.
Result<PlanQuestion> question_of(const PlanOptions& options) {
  std::optional<LinkProfile> profile;
  if (!options.profile.empty()) {
    Result<LinkProfile> loaded = LinkProfile::load(options.profile);
    if (!loaded) return loaded.error();
    profile = std::move(loaded).value();
  }
  PlanQuestion question;
  model::PathSpec& path = question.path;
  const Result<Duration> rtt = rtt_of(options, profile);
  if (!rtt) return rtt.error();
  path.rtt = *rtt;
  if (options.rate.empty() && !profile) return refused("one of --rate and --link-profile is needed");
  const Result<Bandwidth> rate = options.rate.empty() ? profile->rate : parse_bandwidth(options.rate);
  if (!rate) return rate.error();
  path.rate = *rate;
  const Result<Bytes> mtu = mtu_of(options);
  if (!mtu) return mtu.error();
  path.packet = *mtu;
  if (Result<void> set = set_losses(options, profile, question); !set) return set.error();
  if (Result<void> set = set_chunk(options, path); !set) return set.error();
  return question;
}

Result<void> answer(const PlanOptions& options) {
  Result<PlanQuestion> question = question_of(options);
  if (!question) return question.error();
  const Result<double> budget = parse_number("budget", options.budget, true);
  if (!budget) return budget.error();
  std::optional<BenchRecord> record;
  if (!options.bench.empty()) {
    Result<BenchRecord> loaded = BenchRecord::load(options.bench);
    if (!loaded) return loaded.error();
    record = std::move(loaded).value();
  }
  EncodeSpeedometer speedometer(question->path.chunk);
  const model::EncodeSpeed speed = [&](const model::SchemeSpec& scheme) {
    return record ? record->encode(scheme) : speedometer(scheme);
  };
  std::vector<std::pair<Bytes, model::Plan>> plans;  // all of them, before the first is printed
  for (const std::string& size : options.sizes) {
    const Result<Bytes> message = parse_bytes(size);
    if (!message) return message.error();
    const Result<model::Plan> plan = model::plan(question->path, *message, *budget, speed);
    if (!plan) return plan.error();
    plans.emplace_back(*message, *plan);
  }
  Json list = Json::array();
  for (const auto& [message, plan] : plans) {
    question->message = message;
    if (options.json) {
      list.push_back(plan_to_json(*question, plan));
    } else {
      if (&plan != &plans.front().second) fmt::print("\n");
      print_plan(*question, plan);
    }
  }
  if (options.json) print_json(plans.size() == 1 ? list.front() : list);
  return {};
}

}  // namespace

void add_plan(CLI::App& app, Run& run) {
  CLI::App* plan = app.add_subcommand("plan", "Say which scheme, with which parameters, suits a link");
  plan->footer(kExamples);
  auto options = std::make_shared<PlanOptions>();
  CLI::Option* rtt =
      plan->add_option("--rtt", options->rtt, "Round trip time")->check(duration_text())->type_name("TIME");
  plan->add_option("--distance", options->distance, "One way, instead of --rtt: light takes 2 d / (3e5 km/s)")
      ->type_name("KM")
      ->excludes(rtt);
  plan->add_option("--rate", options->rate, "Rate of the path")->check(rate_text())->type_name("RATE");
  plan->add_option("--loss", options->loss, "Share of packets lost: 1e-5, 0.001%")->type_name("SHARE");
  plan->add_option("--burst", options->burst, "Mean run of lost packets (default 1: independent)")
      ->type_name("PACKETS");
  plan->add_option("--size", options->sizes, "Length of a Write; several: with commas, or again")
      ->required()
      ->delimiter(',')
      ->check(size_text())
      ->type_name("SIZE")
      ->expected(1)
      ->take_all();
  plan->add_option("--budget-overhead", options->budget, "Bytes that coded schemes may send beyond the message")
      ->type_name("SHARE")
      ->capture_default_str();
  plan->add_option("--mtu", options->mtu, "Payload of a packet (default 4096, or what the profile has below that)")
      ->check(size_text())
      ->type_name("SIZE");
  plan->add_option("--chunk", options->chunk, "Chunk: a size, packets (16p), or auto (1p)")
      ->type_name("SIZE")
      ->capture_default_str();
  plan->add_option("--link-profile", options->profile, "Take what is not given from this measurement (sdr probe)")
      ->type_name("FILE");
  plan->add_option("--bench", options->bench, "Take how fast a core makes parity from sdr bench coding --json")
      ->type_name("FILE");
  plan->add_flag("--json", options->json, "Report in JSON; several sizes: an array");
  plan->callback([options, &run] {
    run = [options] {
      const Result<void> answered = answer(*options);
      return answered ? kDone : complain(kName, answered.error());
    };
  });
}

}  // namespace sdr::cli

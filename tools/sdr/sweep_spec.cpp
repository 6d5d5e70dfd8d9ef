#include "sdr/sweep_spec.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <optional>
#include <span>
#include <utility>

#include "model/scheme.hpp"
#include "model/transfer.hpp"
#include "sdr/file_digest.hpp"
#include "sdr/json_fields.hpp"
#include "sdr/sim_trial.hpp"
#include "simulation/counter_random.hpp"

namespace sdr::cli {
namespace {

constexpr const char* kFile = "the spec";
constexpr std::size_t kLargestFile = std::size_t{1} << 20;
constexpr std::size_t kLongestList = 10'000;
constexpr std::uint64_t kSeedStream = 0x5eed;
// What every reader of JSON has exactly.
constexpr int kSeedBits = 53;

std::optional<std::string> text_of(const Json& value) {
  return value.is_string() ? std::optional(value.get<std::string>()) : std::nullopt;
}

// A real in a range: a number, or its text as the options take it, "1e-3" or "0.1%".
std::optional<double> real_of(const Json& value, double least, double most) {
  double real = 0;
  if (const auto text = text_of(value)) {
    const bool percent = text->ends_with('%');
    const char* end = text->data() + text->size() - (percent ? 1 : 0);
    const auto [stop, code] = std::from_chars(text->data(), end, real);
    if (code != std::errc() || stop != end || text->empty()) return std::nullopt;
    if (percent) real /= 100;
  } else if (value.is_number()) {
    real = value.get<double>();
  } else {
    return std::nullopt;
  }
  // Written so that what is not a number is refused as well.
  return real >= least && real <= most ? std::optional(real) : std::nullopt;
}

std::optional<Bytes> bytes_of(const Json& value, Bytes least, Bytes most) {
  Bytes bytes;
  if (const auto text = text_of(value)) {
    const Result<Bytes> parsed = parse_bytes(*text);
    if (!parsed) return std::nullopt;
    bytes = *parsed;
  } else if (value.is_number_unsigned()) {
    bytes = {value.get<std::uint64_t>()};
  } else {
    return std::nullopt;
  }
  return bytes >= least && bytes <= most ? std::optional(bytes) : std::nullopt;
}

std::optional<Duration> rtt_of(const Json& value) {
  constexpr Duration kLongest = std::chrono::hours(1);
  Duration rtt{-1};
  if (const auto text = text_of(value)) {
    const Result<Duration> parsed = parse_duration(*text);
    if (parsed) rtt = *parsed;
  } else if (const auto seconds = real_of(value, 0, 3600)) {
    rtt = Duration(std::llround(*seconds * 1e9));
  }
  return rtt >= Duration(1) && rtt <= kLongest ? std::optional(rtt) : std::nullopt;
}

std::optional<Duration> rtt_over(const Json& value) {
  constexpr double kFarthest = 1e8;
  std::optional<double> kilometres;
  if (auto text = text_of(value)) {
    if (!text->ends_with("km")) return std::nullopt;
    text->resize(text->size() - 2);
    kilometres = real_of(Json(*text), 1e-3, kFarthest);
  } else {
    kilometres = real_of(value, 1e-3, kFarthest);
  }
  if (!kilometres) return std::nullopt;
  const Result<Duration> rtt = model::rtt_over(model::Kilometres{*kilometres});
  return rtt ? std::optional(*rtt) : std::nullopt;
}

std::optional<Bandwidth> rate_of(const Json& value) {
  Bandwidth rate;
  if (const auto text = text_of(value)) {
    const Result<Bandwidth> parsed = parse_bandwidth(*text);
    if (parsed) rate = *parsed;
  } else if (value.is_number()) {
    rate = {value.get<double>()};
  }
  return rate.bits_per_second >= 1e3 && rate.bits_per_second <= 1e15 ? std::optional(rate) : std::nullopt;
}

std::optional<Bytes> mtu_of(const Json& value) {
  const std::optional<Bytes> mtu = bytes_of(value, Bytes{64}, Bytes{65488});
  return mtu && mtu->count % 8 == 0 ? mtu : std::nullopt;
}

// As --chunk takes it; bytes are written out, so that equal chunks have equal texts.
std::optional<std::string> chunk_of(const Json& value) {
  if (const auto bytes = bytes_of(value, Bytes{64}, 16_GiB)) return std::to_string(bytes->count);
  const auto text = text_of(value);
  if (!text) return std::nullopt;
  if (*text == "auto") return fmt::format("{}p", kDefaultChunkPackets);
  return text->ends_with('p') ? text : std::nullopt;
}

std::optional<SchemeChoice> scheme_in(const Json& value) {
  const auto text = text_of(value);
  if (!text) return std::nullopt;
  const Result<SchemeChoice> choice = parse_scheme_choice(*text, false);
  if (!choice) return std::nullopt;
  experiment::WriteTrial trial;
  trial.connection.scheme = *choice->scheme;
  trial.connection.data_chunks = choice->data_chunks;
  trial.connection.parity_chunks = choice->parity_chunks;
  return model::check(scheme_in_theory(trial)) ? std::optional(*choice) : std::nullopt;
}

// A list without repetitions; the same cell twice is a typing error.
template <typename T, typename Parse>
void take_list(JsonFields& fields, std::string_view name, std::vector<T>& into, Parse parse, std::string_view range) {
  const Json& list = fields.take(name);
  if (fields.error()) return;
  if (!list.is_array() || list.empty() || list.size() > kLongestList) {
    fields.fail(fmt::format("field {} {} is not a list of 1 to {} values", name, shown(list), kLongestList));
    return;
  }
  std::vector<Json> before;
  for (const Json& value : list) {
    const std::optional<T> parsed = parse(value);
    const std::string label = fmt::format("{}[{}]", name, into.size());
    if (!parsed) {
      fields.fail(fmt::format("field {} {} is not {}", label, shown(value), range));
      return;
    }
    if (std::any_of(into.begin(), into.end(), [&](const T& other) { return std::equal_to<>()(other, *parsed); })) {
      fields.fail(fmt::format("field {} {} is in the list already", label, shown(value)));
      return;
    }
    into.push_back(*parsed);
  }
}

bool same(const SchemeChoice& a, const SchemeChoice& b) {
  return a.text() == b.text();
}

void take_schemes(JsonFields& fields, SweepSpec& spec) {
  struct Named : SchemeChoice {
    bool operator==(const Named& other) const { return same(*this, other); }
  };
  std::vector<Named> schemes;
  take_list(
      fields, "schemes", schemes,
      [](const Json& value) -> std::optional<Named> {
        const std::optional<SchemeChoice> choice = scheme_in(value);
        return choice ? std::optional(Named{*choice}) : std::nullopt;
      },
      "adaptive, sr-rto, sr-nack, ec-xor, ec-rs or, with k data and m parity chunks, ec-rs:32:8 (k + m up to 255; m up "
      "to k for "
      "ec-xor)");
  spec.schemes.assign(schemes.begin(), schemes.end());
}

void take_kind(JsonFields& fields, SweepSpec& spec) {
  if (!fields.has("kind")) return;
  const Json& kind = fields.take("kind");
  for (const SweepKind known : {SweepKind::Simulation, SweepKind::Theory, SweepKind::Sampling}) {
    if (kind == kind_name(known)) {
      spec.kind = known;
      return;
    }
  }
  fields.fail(fmt::format("field kind {} is not simulation, theory or sampling", shown(kind)));
}

void take_link(JsonFields& fields, SweepSpec& spec) {
  if (!fields.has("link")) return;
  const Json& value = fields.take("link");
  if (fields.error()) return;
  const auto text = text_of(value);
  if (!text) {
    fields.fail(fmt::format("field link {} is not a text such as \"jitter=100us,queue=5ms\"", shown(value)));
    return;
  }
  const Result<simulation::LinkSpec> link = simulation::LinkSpec::parse(*text);
  if (!link) {
    fields.fail(fmt::format("field link {}: {}", shown(value), link.error().message));
    return;
  }
  const simulation::LinkSpec usual;
  if (link->rtt != usual.rtt || link->rate != usual.rate || link->loss != usual.loss || link->burst != usual.burst ||
      link->seed != usual.seed || link->mtu_given) {
    fields.fail(
        fmt::format("field link {} names one of rtt, rate, loss, burst, seed and mtu, which have fields of "
                    "their own (rtts, rates, losses, bursts, seed, mtus)",
                    shown(value)));
  }
  if (spec.kind != SweepKind::Simulation) {
    fields.fail(fmt::format("field link {} is of kind simulation; the theory knows nothing of it", shown(value)));
  }
  spec.link = *link;
}

// What `adaptive` knows of the link when the measured Write begins; the theory takes it to know the loss.
void take_knowledge(JsonFields& fields, SweepSpec& spec) {
  for (const char* name : {"known_loss", "warm_writes"}) {
    if (fields.has(name) && spec.kind != SweepKind::Simulation) {
      fields.fail(fmt::format("field {} is of kind simulation, not of kind {}", name, kind_name(spec.kind)));
      return;
    }
  }
  if (fields.has("known_loss")) {
    const Json& known = fields.take("known_loss");
    if (!known.is_boolean()) {
      fields.fail(fmt::format("field known_loss {} is not true or false", shown(known)));
      return;
    }
    spec.known_loss = known.get<bool>();
  }
  if (fields.has("warm_writes"))
    spec.warm_writes =
        static_cast<std::uint32_t>(fields.whole("warm_writes", 0, experiment::WriteTrial::kMostWarmWrites));
}

void take_lists(JsonFields& fields, SweepSpec& spec) {
  take_schemes(fields, spec);
  take_list(
      fields, "sizes", spec.sizes,
      [](const Json& v) { return bytes_of(v, Bytes{1}, experiment::WriteTrial::kLargest); },
      "a size from 1 B to 1 TiB, such as \"128MiB\", or a number of bytes");
  if (fields.has("distances") && fields.has("rtts")) fields.fail("field distances is beside rtts; give one of them");
  if (fields.has("distances")) {
    take_list(fields, "distances", spec.rtts, rtt_over,
              "a distance from 0.001 to 1e8 km, such as \"3750km\", or a number of kilometres");
  } else {
    take_list(fields, "rtts", spec.rtts, rtt_of, "a time from 1ns to 60min, such as \"25ms\", or a number of seconds");
  }
  take_list(fields, "rates", spec.rates, rate_of,
            "a rate from 1kbit to 1000Tbit, such as \"400Gbit\", or a number of bits a second");
  take_list(
      fields, "losses", spec.losses, [](const Json& v) { return real_of(v, 0, 1); },
      "a share from 0 to 1, such as 1e-3 or \"0.1%\"");
  spec.bursts = {1};
  if (fields.has("bursts")) {
    spec.bursts.clear();
    take_list(
        fields, "bursts", spec.bursts, [](const Json& v) { return real_of(v, 1, 1e6); },
        "a mean run of lost packets from 1 to 1e6");
  }
  spec.mtus = {Bytes{kUsualMtu}};
  if (fields.has("mtus")) {
    spec.mtus.clear();
    take_list(fields, "mtus", spec.mtus, mtu_of, "a payload of a packet, a multiple of 8 from 64 to 65488 bytes");
  }
  spec.chunks = {fmt::format("{}p", kDefaultChunkPackets)};
  if (fields.has("chunks")) {
    spec.chunks.clear();
    take_list(fields, "chunks", spec.chunks, chunk_of,
              "a number of packets (\"16p\"), a size (\"64KiB\"), or a number of bytes from 64");
  }
}

// What is in range by itself must also fit together.
void check_together(JsonFields& fields, const SweepSpec& spec) {
  if (fields.error()) return;
  for (const Bytes mtu : spec.mtus) {
    for (std::size_t i = 0; i < spec.chunks.size(); ++i) {
      const auto packets = packets_per_chunk(spec.chunks[i], static_cast<std::uint32_t>(mtu.count));
      if (!packets) fields.fail(fmt::format("field chunks[{}]: {}", i, packets.error().message));
    }
  }
  double cells = 1;
  for (const std::size_t n : {spec.schemes.size(), spec.sizes.size(), spec.rtts.size(), spec.rates.size(),
                              spec.losses.size(), spec.bursts.size(), spec.mtus.size(), spec.chunks.size()}) {
    cells *= static_cast<double>(n);
  }
  if (cells > SweepSpec::kMostCells) {
    fields.fail(fmt::format("the lists make {} cells; a spec has at most {}", cells, SweepSpec::kMostCells));
  }
}

}  // namespace

std::string_view kind_name(SweepKind kind) {
  switch (kind) {
    case SweepKind::Simulation:
      return "simulation";
    case SweepKind::Theory:
      return "theory";
    case SweepKind::Sampling:
      break;
  }
  return "sampling";
}

Result<SweepSpec> SweepSpec::parse(std::string_view text) {
  const Result<Json> json = parse_json(text);
  if (!json) return json.error();
  JsonFields fields(*json, kFile, "",
                    {"version", "kind", "schemes", "sizes", "rtts", "distances", "rates", "losses", "bursts", "mtus",
                     "chunks", "link", "known_loss", "warm_writes", "runs", "seed"});
  // First: a later version may have other fields.
  if (fields.has("version") && (*json)["version"] != kVersion) {
    return Error{ErrorCode::InvalidArgument,
                 fmt::format("field version {} is not {}", shown((*json)["version"]), kVersion)};
  }
  fields.whole("version", kVersion, kVersion);
  SweepSpec spec;
  take_kind(fields, spec);
  take_lists(fields, spec);
  take_link(fields, spec);
  take_knowledge(fields, spec);
  if (spec.kind == SweepKind::Theory && fields.has("runs")) {
    fields.fail(fmt::format("field runs {} is not of kind theory, which runs nothing", shown(fields.take("runs"))));
  }
  if (spec.kind != SweepKind::Theory) spec.runs = fields.whole("runs", 1, kMostRuns);
  if (fields.has("seed")) spec.seed = fields.whole("seed", 0, static_cast<double>(std::uint64_t{1} << kSeedBits));
  check_together(fields, spec);
  if (fields.error()) return *fields.error();
  return spec;
}

Result<SweepSpec> SweepSpec::load(const std::string& path) {
  const auto in_file = [&](const Error& error) {
    return Error{error.code, fmt::format("spec {}: {}", path, error.message)};
  };
  const Result<std::string> text = read_whole_file(path, kLargestFile);
  if (!text) return in_file(text.error());
  Result<SweepSpec> spec = parse(*text);
  if (!spec) return in_file(spec.error());
  return spec;
}

Json SweepSpec::to_json() const {
  Json json = {{"version", kVersion}, {"kind", kind_name(kind)}};
  for (const SchemeChoice& scheme : schemes) json["schemes"].push_back(scheme.text());
  for (const Bytes size : sizes) json["sizes"].push_back(size.count);
  for (const Duration rtt : rtts) json["rtts"].push_back(fmt::format("{}ns", rtt.count()));
  for (const Bandwidth rate : rates) json["rates"].push_back(rate.bits_per_second);
  json["losses"] = losses;
  json["bursts"] = bursts;
  for (const Bytes mtu : mtus) json["mtus"].push_back(mtu.count);
  json["chunks"] = chunks;
  if (kind == SweepKind::Simulation) json["link"] = simulation::to_string(link);
  if (kind != SweepKind::Theory) json["runs"] = runs;
  if (known_loss) json["known_loss"] = true;
  if (warm_writes > 0) json["warm_writes"] = warm_writes;
  json["seed"] = seed;
  return json;
}

std::string SweepSpec::digest() const {
  const std::string text = to_json().dump();
  Sha256 sha;
  sha.update(std::as_bytes(std::span(text)));
  return sha.finish_hex();
}

std::uint64_t SweepSpec::cells() const {
  return schemes.size() * sizes.size() * rtts.size() * rates.size() * losses.size() * bursts.size() * mtus.size() *
         chunks.size();
}

SweepCell SweepSpec::cell(std::uint64_t number) const {
  std::uint64_t rest = number;
  const auto pick = [&rest](const auto& list) {
    const std::uint64_t index = rest % list.size();
    rest /= list.size();
    return list[index];
  };
  SweepCell cell;
  cell.number = number;
  // From the list that runs fastest to the slowest.
  cell.chunk = pick(chunks);
  cell.mtu = pick(mtus);
  cell.burst = pick(bursts);
  cell.loss = pick(losses);
  cell.rate = pick(rates);
  cell.rtt = pick(rtts);
  cell.size = pick(sizes);
  cell.scheme = pick(schemes);
  return cell;
}

experiment::WriteTrial SweepSpec::trial(const SweepCell& cell) const {
  simulation::LinkSpec whole = link;
  whole.rtt = cell.rtt;
  whole.rate = cell.rate;
  whole.loss = cell.loss;
  whole.burst = cell.burst;
  const std::uint64_t own = simulation::CounterRandom(seed, kSeedStream)(cell.number) >> (64 - kSeedBits);
  experiment::WriteTrial trial =
      write_trial(whole, cell.scheme, cell.size, std::to_string(cell.mtu.count), cell.chunk, own).value();
  trial.known_loss = known_loss;
  trial.warm_writes = warm_writes;
  return trial;
}

}  // namespace sdr::cli

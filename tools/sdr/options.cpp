#include "sdr/options.hpp"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <array>
#include <bit>
#include <charconv>

#include "sdr/link_trace.hpp"
#include "sdr/tcp_socket.hpp"
#include "simulation/link_spec.hpp"

namespace sdr::cli {
namespace {

// The largest chunk that makes sense to name: what 18 bits of packet offset address.
constexpr std::uint32_t kMaxChunkPackets = 1U << 18;

template <typename Parse>
CLI::Validator check_with(Parse parse) {
  return CLI::Validator(
      [parse](std::string& text) {
        const auto parsed = parse(text);
        return parsed ? std::string() : parsed.error().message;
      },
      "");
}

template <typename Number>
bool parse_whole(std::string_view text, Number& value) {
  const auto [stop, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  return code == std::errc() && stop == text.data() + text.size() && !text.empty();
}

// "16p" -> 16; nothing when the text is not of that kind.
std::optional<unsigned> packets_of(std::string_view text) {
  unsigned packets = 0;
  if (!text.ends_with('p') || !parse_whole(text.substr(0, text.size() - 1), packets)) return std::nullopt;
  return packets;
}

Result<void> check_chunk_text(std::string_view text) {
  if (text == "auto" || packets_of(text)) return {};
  const Result<Bytes> bytes = parse_bytes(text);
  if (!bytes) {
    return Error{ErrorCode::InvalidArgument,
                 fmt::format("chunk \"{}\" is neither a size (64KiB) nor a number of packets (16p) nor auto", text)};
  }
  return {};
}

Result<void> check_mtu_text(std::string_view text) {
  if (text == "auto") return {};
  const Result<Bytes> bytes = parse_bytes(text);
  if (bytes && bytes->count >= 64 && bytes->count <= 65488 && bytes->count % 8 == 0) return {};
  return Error{ErrorCode::InvalidArgument,
               fmt::format("MTU \"{}\" is neither auto nor a multiple of 8 from 64 to 65488 bytes", text)};
}

Error no_such_scheme(std::string_view text, bool with_none) {
  return {
      ErrorCode::InvalidArgument,
      fmt::format(
          "unknown scheme \"{}\"; there are {}adaptive, sr-rto, sr-nack, ec-xor, ec-rs, the last two also with their "
          "data and parity chunks (ec-rs:32:8)",
          text, with_none ? "none, " : "")};
}

}  // namespace

CLI::Validator size_text() {
  return check_with([](const std::string& t) { return parse_bytes(t); });
}
CLI::Validator rate_text() {
  return check_with([](const std::string& t) -> Result<void> {
    const Result<Bandwidth> rate = parse_bandwidth(t);
    if (!rate) return rate.error();
    if (rate->bits_per_second >= 1e3 && rate->bits_per_second <= 1e15) return {};
    return Error{ErrorCode::InvalidArgument, fmt::format("rate \"{}\" is not from 1kbit to 1000Tbit", t)};
  });
}
CLI::Validator duration_text() {
  return check_with([](const std::string& t) -> Result<void> {
    const Result<Duration> duration = parse_duration(t);
    if (!duration) return duration.error();
    if (*duration > Duration(0)) return {};
    return Error{ErrorCode::InvalidArgument, fmt::format("time \"{}\" is not above zero", t)};
  });
}
CLI::Validator endpoint_text(bool any_port) {
  return check_with([any_port](const std::string& t) -> Result<void> {
    const Result<SocketAddress> parsed = parse_endpoint(t, any_port);
    if (!parsed && parsed.error().code == ErrorCode::InvalidArgument) return parsed.error();
    return {};  // a name that does not resolve is no wrong usage
  });
}

CLI::Validator link_text() {
  return CLI::Validator(
      [](std::string& text) {
        Result<std::string> inlined = inline_trace(text);
        if (!inlined) return inlined.error().message;
        text = std::move(inlined).value();
        const Result<simulation::LinkSpec> parsed = simulation::LinkSpec::parse(text);
        return parsed ? std::string() : parsed.error().message;
      },
      "");
}

CLI::Validator whole_number(std::uint64_t least, std::uint64_t most) {
  return check_with([least, most](const std::string& t) -> Result<void> {
    std::uint64_t value = 0;
    if (parse_whole(t, value) && value >= least && value <= most) return {};
    return Error{ErrorCode::InvalidArgument, fmt::format("\"{}\" is not a whole number from {} to {}", t, least, most)};
  });
}

void add_device_options(CLI::App& app, PathOptions& options) {
  app.add_option("--transport", options.transport, "How packets travel: udp, or verbs (RDMA)")
      ->check(check_with([](const std::string& t) -> Result<void> {
        if (t == "udp" || t == "verbs") return {};
        return Error{ErrorCode::InvalidArgument, fmt::format("unknown transport \"{}\"; there are udp and verbs", t)};
      }))
      ->type_name("NAME");
  app.add_option(
         "--device", options.device,
         "Address or interface for the data (default: what reaches the peer), or the RDMA device, such as mlx5_0")
      ->type_name("ADDR|IFACE|DEV");
  app.add_option("--gid", options.gid, "Address of the RDMA device: auto, or an index in its GID table")
      ->check(check_with([](const std::string& t) -> Result<void> {
        std::uint32_t index = 0;
        if (t == "auto" || (parse_whole(t, index) && index <= 255)) return {};
        return Error{ErrorCode::InvalidArgument,
                     fmt::format("GID \"{}\" is neither auto nor an index from 0 to 255", t)};
      }))
      ->type_name("auto|INDEX");
}

void add_scheme_options(CLI::App& app, PathOptions& options, bool with_scheme_none) {
  const auto scheme = [with_scheme_none](const std::string& t) { return parse_scheme_choice(t, with_scheme_none); };
  app.add_option("--scheme", options.scheme,
                 with_scheme_none ? "none (bare SDK), adaptive, sr-rto, sr-nack, ec-xor, ec-rs, ec-rs:32:8"
                                  : "adaptive, sr-rto, sr-nack, ec-xor, ec-rs, ec-rs:32:8")
      ->check(check_with(scheme))
      ->type_name("NAME")
      ->default_str(std::string(kDefaultScheme));
  app.add_option("--k", options.k, "Data chunks of an erasure-coded submessage (default 32)")
      ->check(whole_number(1, 255))
      ->type_name("N");
  app.add_option("--m", options.m, "Parity chunks of an erasure-coded submessage (default 8)")
      ->check(whole_number(1, 255))
      ->type_name("N");
}

void add_chunk_option(CLI::App& app, PathOptions& options) {
  app.add_option("--chunk", options.chunk,
                 fmt::format("Chunk: a size, a number of packets (16p), or auto ({}p)", kDefaultChunkPackets))
      ->check(check_with(check_chunk_text))
      ->type_name("SIZE")
      ->capture_default_str();
}

void add_mtu_option(CLI::App& app, PathOptions& options, const std::string& what_auto_is) {
  app.add_option("--mtu", options.mtu, "Payload of a packet in bytes, or auto: " + what_auto_is)
      ->check(check_with(check_mtu_text))
      ->type_name("SIZE")
      ->capture_default_str();
}

void add_path_options(CLI::App& app, PathOptions& options, bool with_scheme_none) {
  add_scheme_options(app, options, with_scheme_none);
  app.add_option(
         "--rate", options.rate,
         "Rate of a line of one's own, such as 1Gbit; auto (the default when the path leaves this machine): find "
         "it, and share the path with others")
      ->check(CLI::Validator([](std::string& text) { return text == "auto" ? std::string() : rate_text()(text); }, ""))
      ->type_name("RATE|auto");
  app.add_option("--max-rate", options.max_rate, "Never faster than this, whatever rate is found")
      ->check(rate_text())
      ->type_name("RATE");
  app.add_flag("--background", options.background, "Use what nobody else on the path wants, and yield at once");
  app.add_option("--link", options.link, "Emulate a link on the way: rtt=25ms,rate=1Gbit,loss=1e-3,burst=4,...")
      ->transform(link_text())
      ->type_name("LINK");
  add_mtu_option(app, options, "what the path carries");
  add_chunk_option(app, options);
  app.add_option("--channels", options.channels, "UDP sockets that the packets are spread over")
      ->check(whole_number(1, kMaxChannels))
      ->type_name("N")
      ->default_str("1");
  app.add_option("--timeout", options.timeout, "Give up when the peer was silent for this long")
      ->check(duration_text())
      ->type_name("TIME")
      ->capture_default_str();
  add_device_options(app, options);
}

void SchemeChoice::add_to(Json& json) const {
  json["scheme"] = text();
  json["k"] = coded() ? Json(data_chunks) : Json(nullptr);
  json["m"] = coded() ? Json(parity_chunks) : Json(nullptr);
}

std::string SchemeChoice::text() const {
  if (!scheme) return "none";
  if (!coded()) return std::string(to_string(*scheme));
  return fmt::format("{}:{}:{}", to_string(*scheme), data_chunks, parity_chunks);
}

Result<SchemeChoice> parse_scheme_choice(std::string_view text, bool with_none) {
  SchemeChoice choice;
  if (text == "none" && with_none) return choice;
  const std::size_t colon = text.find(':');
  const Result<Scheme> scheme = parse_scheme(text.substr(0, colon));
  if (!scheme) return no_such_scheme(text, with_none);
  choice.scheme = *scheme;
  if (colon == std::string_view::npos) return choice;
  const std::string_view numbers = text.substr(colon + 1);
  const std::size_t second = numbers.find(':');
  unsigned k = 0;
  unsigned m = 0;
  if (!choice.coded() || second == std::string_view::npos || !parse_whole(numbers.substr(0, second), k) ||
      !parse_whole(numbers.substr(second + 1), m)) {
    return no_such_scheme(text, with_none);
  }
  if (k < 1 || k > 255 || m < 1 || m > 255) {
    return Error{ErrorCode::InvalidArgument,
                 fmt::format("scheme \"{}\": data and parity chunks are from 1 to 255", text)};
  }
  choice.data_chunks = static_cast<int>(k);
  choice.parity_chunks = static_cast<int>(m);
  return choice;
}

Result<SchemeChoice> scheme_of(const PathOptions& options) {
  Result<SchemeChoice> choice = parse_scheme_choice(options.scheme.empty() ? kDefaultScheme : options.scheme, true);
  if (!choice) return choice;
  if ((options.k != 0 || options.m != 0) && !choice->coded()) {
    return Error{ErrorCode::InvalidArgument,
                 fmt::format("--k and --m are of the erasure codes; scheme {} has neither", choice->text())};
  }
  if (options.k != 0) choice->data_chunks = static_cast<int>(options.k);
  if (options.m != 0) choice->parity_chunks = static_cast<int>(options.m);
  return choice;
}

Result<std::uint32_t> packets_per_chunk(std::string_view text, std::uint32_t mtu) {
  if (text == "auto") return kDefaultChunkPackets;
  if (Result<void> valid = check_chunk_text(text); !valid) return valid.error();
  const std::optional<unsigned> packets = packets_of(text);
  const std::uint64_t bytes = packets ? std::uint64_t{*packets} * mtu : parse_bytes(text)->count;
  const std::uint64_t whole = std::max<std::uint64_t>(1, bytes / mtu);
  if (bytes == whole * mtu && std::has_single_bit(whole) && whole <= kMaxChunkPackets) {
    return static_cast<std::uint32_t>(whole);
  }
  const std::uint64_t below = std::min<std::uint64_t>(std::bit_floor(whole), kMaxChunkPackets);
  const std::uint64_t above = std::min<std::uint64_t>(below * 2, kMaxChunkPackets);
  if (below == above) {
    return Error{ErrorCode::Mismatch,
                 fmt::format("chunk size {} is more than {} packets of {} bytes", text, kMaxChunkPackets, mtu)};
  }
  const std::string shown = packets ? fmt::format("{} packets", *packets) : fmt::format("{} bytes", bytes);
  return Error{
      ErrorCode::Mismatch,
      fmt::format("chunk size {} is not a power-of-two multiple of the MTU {}; the nearest are {} ({}p) and {} "
                  "({}p)",
                  shown, mtu, below * mtu, below, above * mtu, above)};
}

}  // namespace sdr::cli

#include "sdr/path.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "sdk/table_geometry.hpp"
#include "sdr/driver.hpp"
#include "transport/transport.hpp"

namespace sdr::cli {
namespace {

// A peer can ask for no more patience than this.
constexpr Duration kLongestTimeout = std::chrono::hours(24);

Error invalid(std::string message) {
  return {ErrorCode::InvalidArgument, std::move(message)};
}

// What a peer asks for and cannot have.
Error refused(std::string message) {
  return {ErrorCode::Protocol, std::move(message)};
}

Result<std::string> device_name(const PathOptions& options, const Session& session) {
  const bool verbs = options.transport == "verbs";
  if (verbs && options.device.empty()) {
    return invalid("--transport verbs needs --device and an RDMA device, such as --device mlx5_0; sdr info lists them");
  }
  if (!verbs && !options.gid.empty()) return invalid("--gid is of an RDMA device: it goes with --transport verbs");
  const std::string gid = options.gid.empty() ? "" : ",gid=" + options.gid;
  if (options.device.starts_with(options.transport + ":")) return options.device + gid;
  if (!verbs && options.device.starts_with(options.transport)) return options.device;
  return options.transport + ":" + (options.device.empty() ? session.local().host() : options.device) + gid;
}

}  // namespace

Result<Path> Path::choose(const PathOptions& options, const Session& session) {
  Path path;
  const Result<SchemeChoice> scheme = scheme_of(options);
  if (!scheme) return scheme.error();
  path.scheme_ = *scheme;
  path.channels_ = std::max(options.channels, 1U);
  path.chunk_ = options.chunk;

  const Result<Duration> timeout = parse_duration(options.timeout);
  if (!timeout) return timeout.error();
  path.timeout_ = std::min(*timeout, kLongestTimeout);

  path.link_ = options.link;
  const Result<simulation::LinkSpec> link = simulation::LinkSpec::parse(options.link);
  if (!link) return link.error();
  path.link_spec_ = *link;
  if (Result<void> chosen = path.choose_rate(options, session); !chosen) return chosen.error();

  if (Result<void> opened = path.open(options, session, 0, false); !opened) return opened.error();
  path.mtu_given_ = options.mtu != "auto";
  if (path.mtu_given_) {
    const Result<Bytes> mtu = parse_bytes(options.mtu);
    if (!mtu) return mtu.error();
    if (Result<void> fits = path.set_mtu(static_cast<std::uint32_t>(mtu->count)); !fits) return fits.error();
  } else {
    const Result<std::uint16_t> mtu = path.device_->max_payload(session.peer().host());
    if (!mtu) return mtu.error();
    if (Result<void> fits = path.set_mtu(*mtu); !fits) return fits.error();
  }
  return path;
}

Result<void> Path::choose_rate(const PathOptions& options, const Session& session) {
  const bool find = options.rate == "auto";
  if (options.background && !options.rate.empty() && !find) {
    return invalid(
        fmt::format("--background finds a rate by itself, --rate {} gives it; --max-rate limits it", options.rate));
  }
  if (!options.max_rate.empty()) {
    const Result<Bandwidth> most = parse_bandwidth(options.max_rate);
    if (!most) return most.error();
    max_rate_ = *most;
  }
  if (scheme_.scheme) {
    if (find) rate_mode_ = RateMode::Model;
    if (options.background) rate_mode_ = RateMode::Background;
  } else if (find || options.background || max_rate_.limited()) {
    return invalid(
        "--rate auto, --max-rate and --background are of the schemes that repair; scheme none hears nothing "
        "of what arrives");
  }
  if (rate_mode_ != RateMode::Automatic) return {};
  rate_ = link_spec_.rate;
  if (!options.rate.empty()) {
    const Result<Bandwidth> rate = parse_bandwidth(options.rate);
    if (!rate) return rate.error();
    rate_ = *rate;
  }
  if (max_rate_.limited() && rate_.limited() && max_rate_ < rate_) rate_ = max_rate_;
  if (!rate_.limited() && !scheme_.scheme && !session.same_machine()) {
    return invalid(
        fmt::format("--rate is needed by scheme none towards {}: the path leaves this machine, and packets sent faster "
                    "than its slowest part are lost; give that part's rate, such as --rate 1Gbit",
                    session.peer().host()));
  }
  return {};
}

Result<Path> Path::accept(const Json& from_peer, const Session& session, const PathOptions& own,
                          std::uint16_t base_port) {
  const auto scheme = get_text(from_peer, "scheme");
  const auto mtu = get_number(from_peer, "mtu");
  const auto mtu_given = get_flag(from_peer, "mtu_given");
  const auto chunk = get_text(from_peer, "chunk");
  const auto channels = get_number(from_peer, "channels");
  const auto link = get_text(from_peer, "link");
  const auto rate = get_real(from_peer, "rate_bits_per_second");
  const auto timeout = get_number(from_peer, "timeout_ns");
  constexpr const char* kMaxRate = "max_rate_bits_per_second";
  const auto max_rate = from_peer.contains(kMaxRate) ? get_real(from_peer, kMaxRate) : Result<double>(0.0);
  if (!scheme) return scheme.error();
  if (!mtu) return mtu.error();
  if (!mtu_given) return mtu_given.error();
  if (!chunk) return chunk.error();
  if (!channels) return channels.error();
  if (!link) return link.error();
  if (!rate) return rate.error();
  if (!timeout) return timeout.error();
  if (!max_rate) return max_rate.error();
  if (*channels < 1 || *channels > kMaxChannels) {
    return refused(fmt::format("{} channels: from 1 to {} are possible", *channels, kMaxChannels));
  }
  if (!(*rate >= 0 && *rate <= 1e15)) return refused(fmt::format("rate {} bit/s is not from 0 to 1e15", *rate));

  Path path;
  const Result<SchemeChoice> choice = parse_scheme_choice(*scheme, true);
  if (!choice) return choice.error();
  path.scheme_ = *choice;
  path.mtu_given_ = *mtu_given;
  path.chunk_ = *chunk;
  path.channels_ = static_cast<unsigned>(*channels);
  path.link_ = *link;
  const Result<simulation::LinkSpec> spec = simulation::LinkSpec::parse(*link);
  if (!spec) return spec.error();
  path.link_spec_ = *spec;
  path.rate_ = Bandwidth{*rate};
  path.max_rate_ = Bandwidth{*max_rate};
  path.timeout_ = Duration(static_cast<std::int64_t>(
      std::clamp<std::uint64_t>(*timeout, 1, static_cast<std::uint64_t>(kLongestTimeout.count()))));
  if (Result<void> opened = path.open(own, session, base_port, true); !opened) return opened.error();

  const Result<std::uint16_t> most = path.device_->max_payload(session.peer().host());
  if (!most) return most.error();
  std::uint64_t agreed = *mtu;
  if (!path.mtu_given_) {
    agreed = std::min<std::uint64_t>(agreed, own.mtu == "auto" ? *most : parse_bytes(own.mtu)->count);
  }
  if (agreed > UINT16_MAX) return refused(fmt::format("MTU {} is more than {}", agreed, UINT16_MAX));
  if (Result<void> fits = path.set_mtu(static_cast<std::uint32_t>(agreed)); !fits) return fits.error();
  if (Result<void> same = path.check_against(own); !same) return same.error();
  return path;
}

Result<void> Path::check_against(const PathOptions& own) const {
  const auto differ = [](const char* what, const auto& here, const auto& there) {
    return Error{ErrorCode::Mismatch,
                 fmt::format("the two ends differ in {}: {} at the listener, {} at its peer", what, here, there)};
  };
  if (own.mtu != "auto" && parse_bytes(own.mtu)->count != mtu_) return differ("MTU", parse_bytes(own.mtu)->count, mtu_);
  if (own.chunk != "auto") {
    const Result<std::uint32_t> packets = packets_per_chunk(own.chunk, mtu_);
    if (!packets) return packets.error();
    if (*packets != chunk_packets_) return differ("packets per chunk", *packets, chunk_packets_);
  }
  if (own.channels != 0 && own.channels != channels_) return differ("channels", own.channels, channels_);
  if (!own.scheme.empty() || own.k != 0 || own.m != 0) {
    const Result<SchemeChoice> scheme = scheme_of(own);
    if (!scheme) return scheme.error();
    if (scheme->text() != scheme_.text()) return differ("scheme", scheme->text(), scheme_.text());
  }
  if (!own.link.empty() && *simulation::LinkSpec::parse(own.link) != link_spec_)
    return differ("link", own.link, link_.empty() ? "none" : link_);
  const bool lowered = max_rate_.limited() && rate_ == max_rate_;  // by the other end, which may
  if (!own.rate.empty() && own.rate != "auto" && *parse_bandwidth(own.rate) != rate_ &&
      !(lowered && rate_ < *parse_bandwidth(own.rate))) {
    return differ("rate", to_string(*parse_bandwidth(own.rate)), rate_.limited() ? to_string(rate_) : "none");
  }
  return {};
}

Json Path::to_json() const {
  return {{"scheme", scheme_.text()},
          {"mtu", mtu_},
          {"mtu_given", mtu_given_},
          {"chunk", chunk_},
          {"channels", channels_},
          {"link", link_},
          {"rate_bits_per_second", rate_.bits_per_second},
          {"rate_control", to_string(rate_mode_)},
          {"max_rate_bits_per_second", max_rate_.bits_per_second},
          {"timeout_ns", static_cast<std::uint64_t>(timeout_.count())}};
}

Result<void> Path::adopt(const Json& answer) {
  const Result<std::uint64_t> mtu = get_number(answer, "mtu");
  if (!mtu) return mtu.error();
  if (*mtu > mtu_) {
    return Error{ErrorCode::Protocol, fmt::format("the peer answers with MTU {} when offered {}", *mtu, mtu_)};
  }
  return set_mtu(static_cast<std::uint32_t>(*mtu));
}

ConnectionOptions Path::connection_options() const {
  ConnectionOptions options;
  options.scheme = scheme_.scheme.value_or(options.scheme);
  options.data_chunks = scheme_.data_chunks;
  options.parity_chunks = scheme_.parity_chunks;
  options.queue_pair = queue_pair_options();
  options.peer_timeout = timeout_;
  options.rate_mode = rate_mode_;
  options.max_rate = max_rate_;
  return options;
}

QueuePairOptions Path::queue_pair_options() const {
  QueuePairOptions options;
  options.mtu = Bytes{mtu_};
  options.packets_per_chunk = chunk_packets_;
  options.channels = static_cast<std::uint8_t>(channels_);
  options.rate = rate_;
  options.token = Driver::random_token();
  options.offload = offload_;
  // What the packet offset addresses, with small packets.
  options.max_message = std::min(options.max_message, sdk::addressable(options));
  if (emulated()) options.initial_rtt = std::max(Duration(link_spec_.rtt), Duration(std::chrono::milliseconds(1)));
  return options;
}

Result<void> Path::open(const PathOptions& where, const Session& session, std::uint16_t base_port, bool far_end) {
  const Result<std::string> name = device_name(where, session);
  if (!name) return name.error();
  auto device = open_device(*name, {.link = link_, .link_far_end = far_end, .base_port = base_port});
  if (!device) return device.error();
  device_ = std::move(device).value();
  return {};
}

Result<void> Path::set_mtu(std::uint32_t mtu) {
  if (mtu < 64 || mtu % 8 != 0)
    return Error{ErrorCode::Mismatch, fmt::format("MTU {} is not a multiple of 8 from 64 on", mtu)};
  const Result<std::uint32_t> packets = packets_per_chunk(chunk_, mtu);
  if (!packets) return packets.error();
  mtu_ = mtu;
  chunk_packets_ = *packets;
  return {};
}

Result<void> check_command(const Json& hello, std::string_view expected) {
  const Result<std::string> command = get_text(hello, "command");
  if (!command) return command.error();
  if (*command == expected) return {};
  return Error{ErrorCode::Mismatch,
               fmt::format("this end serves sdr {}, the peer runs sdr {}", expected, printable(*command))};
}

}  // namespace sdr::cli

// The texts of VerbsOptions: there in every build, so that a wrong one is told apart from a missing libibverbs.
#include <fmt/format.h>

#include <charconv>

#include "transport/verbs.hpp"

namespace sdr::transport {
namespace {

Error invalid(std::string message) {
  return {ErrorCode::InvalidArgument, std::move(message)};
}

std::optional<std::uint32_t> number(std::string_view text, std::uint32_t most) {
  std::uint32_t value = 0;
  const auto [stop, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || stop != text.data() + text.size() || value > most) return std::nullopt;
  return value;
}

Result<void> set(VerbsOptions& options, std::string_view key, std::string_view value) {
  if (key == "gid" && value == "auto") return {};
  if (key == "gid") {
    options.gid = number(value, 255);
    if (!options.gid) return invalid(fmt::format("gid \"{}\" is neither auto nor an index from 0 to 255", value));
  } else if (key == "port") {
    const auto port = number(value, 255);
    if (!port || *port == 0) return invalid(fmt::format("port \"{}\" is not from 1 to 255", value));
    options.port = static_cast<std::uint8_t>(*port);
  } else if (key == "keys") {
    for (const VerbsKeys keys : {VerbsKeys::Auto, VerbsKeys::Region, VerbsKeys::Window}) {
      if (value != to_string(keys)) continue;
      options.keys = keys;
      return {};
    }
    return invalid(fmt::format("keys \"{}\" are none of auto, region, window", value));
  } else {
    return invalid(fmt::format("\"{}\" is no option of an RDMA device; there are gid, port, keys", key));
  }
  return {};
}

}  // namespace

std::string_view to_string(VerbsKeys keys) {
  switch (keys) {
    case VerbsKeys::Region:
      return "region";
    case VerbsKeys::Window:
      return "window";
    default:
      return "auto";
  }
}

Result<VerbsOptions> parse_verbs_options(std::string_view text) {
  VerbsOptions options;
  for (bool first = true; first || !text.empty(); first = false) {
    const std::string_view part = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), part.size() + 1));
    if (first) {
      options.device = part;
      if (part.empty()) return invalid("an RDMA device needs its name, such as \"verbs:mlx5_0\"");
      continue;
    }
    const std::size_t equals = part.find('=');
    if (equals == std::string_view::npos) {
      return invalid(fmt::format("\"{}\" is not of the form option=value (gid, port, keys)", part));
    }
    if (Result<void> known = set(options, part.substr(0, equals), part.substr(equals + 1)); !known)
      return known.error();
  }
  return options;
}

}  // namespace sdr::transport

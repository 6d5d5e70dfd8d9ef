#include "sdr/link_trace.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <sstream>

#include "sdr/json_fields.hpp"

namespace sdr::cli {
namespace {

constexpr std::string_view kKey = "trace=";
// What a link's text may have of it: the session carries it to the other end (docs/cli.md).
constexpr std::size_t kLongestTrace = 2 << 20;
// Of a file, with its comments.
constexpr std::size_t kLongestFile = 16 << 20;

Error refused(std::string message) {
  return {ErrorCode::InvalidArgument, "link: " + std::move(message)};
}

bool is_inline(std::string_view value) {
  return std::all_of(value.begin(), value.end(), [](char c) { return (c >= '0' && c <= '9') || c == ':'; });
}

Result<std::string> read_trace(const std::string& file) {
  const Result<std::string> whole = read_whole_file(file, kLongestFile);
  if (!whole && whole.error().code == ErrorCode::InvalidArgument)
    return refused(fmt::format("trace={} {}", file, whole.error().message));
  if (!whole) return refused(fmt::format("trace={} is neither a file that can be read nor ARRIVED:LOST:...", file));
  std::istringstream in(*whole);
  std::string text;
  std::string line;
  for (std::size_t number = 1; std::getline(in, line); ++number) {
    std::istringstream words(line.substr(0, line.find('#')));
    std::string arrived;
    std::string lost;
    std::string more;
    if (!(words >> arrived)) continue;
    const bool two = words >> lost && !(words >> more);
    if (!two || arrived.find(':') != std::string::npos || lost.find(':') != std::string::npos || !is_inline(arrived) ||
        !is_inline(lost)) {
      return refused(fmt::format("trace={}: line {} \"{}\" is not two whole numbers, ARRIVED LOST", file, number,
                                 std::string_view(line).substr(0, 80)));
    }
    text += fmt::format("{}{}:{}", text.empty() ? "" : ":", arrived, lost);
    if (text.size() > kLongestTrace) {
      return refused(
          fmt::format("trace={} is longer than {} characters in ARRIVED:LOST:... form", file, kLongestTrace));
    }
  }
  if (text.empty()) return refused(fmt::format("trace={} has no line ARRIVED LOST", file));
  return text;
}

}  // namespace

Result<std::string> inline_trace(std::string_view link) {
  std::string text;
  while (true) {
    const std::size_t comma = link.find(',');
    std::string_view entry = link.substr(0, comma);
    while (entry.starts_with(' ')) entry.remove_prefix(1);
    if (entry.starts_with(kKey) && !is_inline(entry.substr(kKey.size()))) {
      const Result<std::string> trace = read_trace(std::string(entry.substr(kKey.size())));
      if (!trace) return trace.error();
      text += std::string(kKey) + *trace;
    } else {
      text += entry;
    }
    if (comma == std::string_view::npos) return text;
    text += ',';
    link.remove_prefix(comma + 1);
  }
}

}  // namespace sdr::cli

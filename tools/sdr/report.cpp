#include "sdr/report.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace sdr::cli {
namespace {

constexpr std::size_t kLongestText = 400;

}  // namespace

std::string printable(std::string_view text) {
  std::string out(text.substr(0, kLongestText));
  for (char& c : out) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\n') {
      c = ' ';
    } else if (byte < 0x20 || byte == 0x7f) {
      c = '?';
    }
  }
  return out;
}

int complain(std::string_view subcommand, const Error& error) {
  std::fflush(stdout);
  fmt::print(stderr, "sdr {}: {}\n", subcommand, printable(error.message));
  return error.code == ErrorCode::InvalidArgument ? kWrongUsage : kFailed;
}

void print_json(const Json& json) {
  // A peer's or a file's text may not be UTF-8.
  fmt::print("{}\n", json.dump(2, ' ', false, Json::error_handler_t::replace));
  std::fflush(stdout);
}

void Table::print() const {
  std::size_t width = 0;
  for (const auto& [name, value] : rows_) width = std::max(width, name.size());
  for (const auto& [name, value] : rows_) fmt::print("{:<{}}  {}\n", name, width, value);
  std::fflush(stdout);
}

double milliseconds(Duration duration) {
  return static_cast<double>(duration.count()) / 1e6;
}

Json number_or_null(double value) {
  return std::isfinite(value) ? Json(value) : Json(nullptr);
}

}  // namespace sdr::cli

#include "sdr/file_name.hpp"

#include <fmt/format.h>

#include <climits>
#include <cstddef>

#include "sdr/report.hpp"

namespace sdr::cli {

namespace {

Error bad(std::string_view name, std::string_view why) {
  return {ErrorCode::Protocol, fmt::format("the name \"{}\" is refused: {}", printable(name), why)};
}

bool plain(unsigned char c) {
  return c >= 0x20 && c < 0x7F && c != '%';
}

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

Result<void> check_name(std::string_view name) {
  if (name.empty()) return bad(name, "it is empty");
  if (name.size() >= PATH_MAX) return bad(name.substr(0, 64), fmt::format("it has more than {} bytes", PATH_MAX - 1));
  if (name.find('\0') != std::string_view::npos) return bad(name, "it has a NUL");
  if (name.front() == '/') return bad(name, "it is an absolute path");
  std::string_view rest = name;
  for (bool first = true; !rest.empty() || first; first = false) {
    const std::size_t slash = rest.find('/');
    const std::string_view part = rest.substr(0, slash);
    if (part.empty()) return bad(name, "a part of it is empty");
    if (part == "." || part == "..") return bad(name, "it leads out of the directory");
    if (part.size() > NAME_MAX) return bad(name, fmt::format("a part of it has more than {} bytes", NAME_MAX));
    if (first && part == kPartialFolder) return bad(name, "that is where the receiver keeps unfinished files");
    if (slash == std::string_view::npos) return {};
    rest = rest.substr(slash + 1);
    if (rest.empty()) return bad(name, "a part of it is empty");
  }
  return {};
}

std::string escape_name(std::string_view name) {
  std::string text;
  for (const char c : name) {
    if (plain(static_cast<unsigned char>(c))) {
      text += c;
    } else {
      text += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return text;
}

Result<std::string> unescape_name(std::string_view text) {
  std::string name;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (plain(static_cast<unsigned char>(text[i]))) {
      name += text[i];
      continue;
    }
    const int high = text[i] == '%' && i + 2 < text.size() ? hex_value(text[i + 1]) : -1;
    const int low = high >= 0 ? hex_value(text[i + 2]) : -1;
    if (low < 0) return bad(text, "it is not escaped as names on the wire are");
    name += static_cast<char>(high << 4 | low);
    i += 2;
  }
  return name;
}

}  // namespace sdr::cli

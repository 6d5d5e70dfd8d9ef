#include "file_name.hpp"

#include <fmt/format.h>

#include <climits>
#include <cstddef>

namespace sdr::tools {

namespace {

Error bad(std::string_view name, std::string_view why) {
  return {ErrorCode::InvalidArgument, fmt::format("the name \"{}\" is refused: {}", printable(name), why)};
}

bool plain(unsigned char c) { return c >= 0x20 && c < 0x7F && c != '%'; }

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// Length of the well-formed UTF-8 sequence of a printable character at the front; 0: there is none.
std::size_t printable_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  if (byte(0) < 0x80) return byte(0) >= 0x20 && byte(0) != 0x7F ? 1 : 0;
  const std::size_t length = byte(0) >= 0xF0 ? 4 : byte(0) >= 0xE0 ? 3 : byte(0) >= 0xC2 ? 2 : 0;
  if (length == 0 || text.size() < length || byte(0) > 0xF4) return 0;
  unsigned code = byte(0) & (0xFFU >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
    code = code << 6 | (byte(i) & 0x3FU);
  }
  const bool overlong = (length == 3 && code < 0x800) || (length == 4 && (code < 0x10000 || code > 0x10FFFF));
  // C1 controls act like C0 ones; the direction overrides make a name read backwards.
  const bool acts = code < 0xA0 || (code >= 0x202A && code <= 0x202E) || (code >= 0x2066 && code <= 0x2069);
  const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
  return overlong || acts || surrogate ? 0 : length;
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

std::string printable(std::string_view name) {
  std::string text;
  while (!name.empty()) {
    const std::size_t length = printable_length(name);
    if (length == 0) {
      text += fmt::format("\\x{:02x}", static_cast<unsigned char>(name.front()));
    } else {
      text += name.substr(0, length);
    }
    name.remove_prefix(length == 0 ? 1 : length);
  }
  return text;
}

}  // namespace sdr::tools

// Names of files as they travel: relative, with '/' between the parts, bytes as the file system has them.
//
// A name comes from the peer, and a receiver creates files by it: check_name() is what stands between a hostile sender
// and the rest of the disk. On the wire a name is escaped to printable ASCII ("%XX", as JSON can hold no arbitrary
// bytes); on the terminal printable() (report.hpp) keeps control characters of a hostile name from acting.
#pragma once

#include <string>
#include <string_view>

#include "sdr/result.hpp"

namespace sdr::cli {

// Where a receiver keeps what has not arrived in full, inside its directory. No name may start with it.
inline constexpr std::string_view kPartialFolder = ".sdr-partial";

// Protocol unless the name stays inside the directory it is relative to: no absolute path, no "." or "..", no
// empty part, no NUL, nothing longer than the file system takes.
Result<void> check_name(std::string_view name);

std::string escape_name(std::string_view name);
// Protocol when the text is not what escape_name() makes.
Result<std::string> unescape_name(std::string_view text);

}  // namespace sdr::cli

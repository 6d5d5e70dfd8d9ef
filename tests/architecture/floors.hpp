// The floors of the house and the arrows between them (docs/architecture.md), as a table and the check that reads it.
//
// A floor is a folder of src/. A public header belongs to the floor that implements it, and is open to every floor
// above that, however high: it shows nothing of the floor's inside. What the table does not name is an offence: a new
// floor or public header takes its place here first.
#pragma once

#include <algorithm>
#include <regex>
#include <string>
#include <string_view>
#include <vector>

#include "source_tree.hpp"

namespace sdr::architecture {

struct Floor {
  std::string_view name;
  std::vector<std::string_view> below;      // floors it may include, beside itself
  std::vector<std::string_view> libraries;  // prefixes of foreign headers it may include
  bool sockets = false;                     // whether it may speak to the network
};

inline const std::vector<Floor>& floors() {
  static const std::vector<Floor> table = {
      {"units", {}, {"fmt/"}},
      {"core", {}, {}},
      {"runtime", {"units"}, {"fmt/"}, true},
      {"simulation", {"units"}, {"fmt/"}},
      {"model", {"coding", "units"}, {"fmt/"}},
      {"coding", {"units"}, {"isa-l.h", "isa-l/"}},
      {"transport", {"core", "units"}, {"fmt/", "infiniband/"}, true},
      {"sdk", {"transport", "core", "units"}, {"fmt/"}},
      {"reliability", {"sdk", "coding", "core", "units"}, {"fmt/"}},
      {"driver", {"reliability", "sdk", "runtime", "units"}, {"fmt/"}, true},
      {"experiment", {"reliability", "sdk", "coding", "core", "transport", "simulation", "runtime", "units"}, {"fmt/"}},
      {"offload", {"sdk", "runtime", "core", "units"}, {"fmt/"}},
      {"capi", {"offload", "sdk", "transport", "runtime", "core", "units"}, {"fmt/"}},
      {"tools",
       {"capi", "offload", "driver", "experiment", "reliability", "sdk", "coding", "transport", "simulation", "model",
        "runtime", "core", "units"},
       {"fmt/", "CLI/", "nlohmann/", "openssl/"},
       true},
  };
  return table;
}

struct PublicHeader {
  std::string_view name;
  std::string_view floor;
};

inline const std::vector<PublicHeader>& public_headers() {
  static const std::vector<PublicHeader> table = {
      {"sdr/result.hpp", "units"},
      {"sdr/units.hpp", "units"},
      {"sdr/executor.hpp", "units"},
      {"sdr/device.hpp", "transport"},
      {"sdr/registered_memory.hpp", "transport"},
      {"sdr/queue_pair.hpp", "sdk"},
      {"sdr/offload.hpp", "offload"},
      {"sdr/sdr.h", "capi"},
      {"sdr/sdr_mr.h", "capi"},
      {"sdr/connection.hpp", "reliability"},
      {"sdr/link_estimator.hpp", "reliability"},
      {"sdr/path_rate.hpp", "reliability"},
      {"sdr/driver.hpp", "driver"},
  };
  return table;
}

// What there is of the standard library without an operating system, and the core needs.
inline const std::vector<std::string_view>& freestanding_headers() {
  static const std::vector<std::string_view> headers = {"atomic",      "cstdint",  "cstddef", "span",   "array",
                                                        "bit",         "concepts", "utility", "limits", "compare",
                                                        "type_traits", "new",      "version"};
  return headers;
}

inline const std::vector<std::string_view>& socket_headers() {
  static const std::vector<std::string_view> headers = {"sys/socket.h", "sys/un.h", "netinet/",  "arpa/",
                                                        "netdb.h",      "net/",     "ifaddrs.h", "linux/"};
  return headers;
}

inline const Floor* find_floor(std::string_view name) {
  for (const Floor& floor : floors()) {
    if (floor.name == name) return &floor;
  }
  return nullptr;
}

inline const PublicHeader* find_public_header(std::string_view name) {
  for (const PublicHeader& header : public_headers()) {
    if (header.name == name) return &header;
  }
  return nullptr;
}

// "src/core/immediate.hpp" -> "core"; "include/sdr/units.hpp" -> "units"; "tools/..." -> "tools"; else "".
inline std::string floor_of(std::string_view path) {
  if (path.starts_with("tools/")) return "tools";
  if (path.starts_with("include/")) {
    const PublicHeader* header = find_public_header(path.substr(8));
    return header == nullptr ? "" : std::string(header->floor);
  }
  if (!path.starts_with("src/")) return "";
  path.remove_prefix(4);
  return std::string(path.substr(0, path.find('/')));
}

namespace detail {

// Whether `from` stands on `to`, however many floors lie between.
inline bool is_above(const Floor& from, std::string_view to) {
  return std::any_of(from.below.begin(), from.below.end(), [&](std::string_view below) {
    const Floor* floor = find_floor(below);
    return below == to || (floor != nullptr && is_above(*floor, to));
  });
}

// The simulated and the emulated transport stand on the simulation's links, and so does who opens them by name; the
// transports of real networks do not.
inline bool stands_on_simulation(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  return name.starts_with("simulated") || name.starts_with("emulated") || name.starts_with("open_device");
}

inline std::string judge_floor(const SourceFile& file, const Floor& from, std::string_view to) {
  if (to == from.name || std::find(from.below.begin(), from.below.end(), to) != from.below.end()) return "";
  if (from.name == "transport" && to == "simulation" && stands_on_simulation(file.path)) return "";
  return std::string(from.name) + " may not include " + std::string(to);
}

inline std::string judge_foreign(const SourceFile& file, const Floor& from, std::string_view header) {
  const auto& freestanding = freestanding_headers();
  if (from.name == "core" && std::find(freestanding.begin(), freestanding.end(), header) == freestanding.end()) {
    return "core may include only itself and the freestanding standard library, not <" + std::string(header) + ">";
  }
  if (!from.sockets && starts_with_any(header, socket_headers())) {
    return std::string(from.name) + " may not speak to the network: <" + std::string(header) + ">";
  }
  static const std::vector<std::string_view> libraries = {
      "fmt/", "isa-l.h", "isa-l/", "infiniband/", "CLI/", "nlohmann/", "openssl/", "gtest/", "gmock/", "benchmark/"};
  const bool foreign = starts_with_any(header, libraries);
  if (foreign && file.path.starts_with("include/")) {
    return "a public header may not include a foreign library: <" + std::string(header) + ">";
  }
  if (foreign && !starts_with_any(header, from.libraries)) {
    return std::string(from.name) + " may not use the library of <" + std::string(header) + ">";
  }
  return "";
}

inline std::string judge_include(const SourceFile& file, const Floor& from, std::string_view header) {
  if (header.find("..") != std::string_view::npos) return "write paths from src/ on, not " + std::string(header);
  const std::string first(header.substr(0, header.find('/')));
  if (first == "sdr" && file.path.starts_with("tools/") && find_public_header(header) == nullptr) return "";
  if (first == "sdr") {
    const PublicHeader* target = find_public_header(header);
    if (target == nullptr) return std::string(header) + " is a public header of no floor: give it one in floors.hpp";
    if (target->floor == from.name || is_above(from, target->floor)) return "";
    return std::string(from.name) + " may not include " + std::string(target->floor);
  }
  if (first == "tests" || first == "tools" || first == "bench" || first == "examples") {
    return "nothing below may include " + std::string(header);
  }
  if (header.find('/') != std::string_view::npos && find_floor(first) != nullptr) {
    if (file.path.starts_with("include/")) return "a public header may not include " + std::string(header);
    return judge_floor(file, from, first);
  }
  return judge_foreign(file, from, header);
}

}  // namespace detail

// Every #include of `file` that the table does not allow.
inline Findings check_includes(const SourceFile& file) {
  const Floor* from = find_floor(floor_of(file.path));
  if (from == nullptr) return {{file.path, 1, "belongs to no floor: give it one in tests/architecture/floors.hpp"}};
  static const std::regex include(R"(^\s*#\s*include\s*["<]([^">]+)[">].*)");
  Findings findings;
  std::size_t number = 0;
  for (const std::string& line : lines_of(without_comments(file.text, Literals::Keep))) {
    ++number;
    std::smatch match;
    if (!std::regex_match(line, match, include)) continue;
    const std::string message = detail::judge_include(file, *from, match[1].str());
    if (!message.empty()) findings.push_back({file.path, number, message});
  }
  return findings;
}

}  // namespace sdr::architecture

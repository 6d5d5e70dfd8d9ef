#include "reliability/scheme.hpp"

#include <fmt/format.h>

#include <array>
#include <utility>

namespace sdr {
namespace {

constexpr std::array<std::pair<std::string_view, Scheme>, 5> kNames{{{"sr-rto", Scheme::SrRto},
                                                                     {"sr-nack", Scheme::SrNack},
                                                                     {"ec-xor", Scheme::EcXor},
                                                                     {"ec-rs", Scheme::EcRs},
                                                                     {"adaptive", Scheme::Adaptive}}};

}  // namespace

Result<Scheme> parse_scheme(std::string_view name) {
  std::string known;
  for (const auto& [text, scheme] : kNames) {
    if (text == name) return scheme;
    known += known.empty() ? "" : ", ";
    known += text;
  }
  return Error{ErrorCode::InvalidArgument, fmt::format("'{}' is not a reliability scheme; there are {}", name, known)};
}

std::string_view to_string(Scheme scheme) {
  for (const auto& [text, known] : kNames)
    if (known == scheme) return text;
  return "unknown";
}

}  // namespace sdr

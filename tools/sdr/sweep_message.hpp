// SweepMessage: what the ranks of a sweep say to each other.
//
// Rank 0 says Work, Beat, Finish and Refuse; the others say Hello (with what they are of), Beat and Result. A plain
// value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "sdr/report.hpp"

namespace sdr::cli {

struct SweepMessage {
  enum class Kind : std::uint8_t { Hello, Beat, Result, Work, Finish, Refuse };

  Kind kind = Kind::Beat;
  std::uint64_t cell = 0;  // Work
  Json content;            // Hello: program, spec, host, pid; Result: the entry; Finish: whether all is well;
                           // Refuse: why

  [[nodiscard]] std::string text() const;
  // Nothing when it is none.
  static std::optional<SweepMessage> parse(std::string_view text);
};

}  // namespace sdr::cli

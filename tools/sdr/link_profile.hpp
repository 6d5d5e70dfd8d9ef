// LinkProfile: what a measurement found out about a path, as a file: docs/link-profile.md has the format.
//
// Reading is strict: what a field may be is checked, and a field that is not known is refused, since a typing error
// would otherwise be a measurement that nobody looks at. A profile that parse() returned is in range throughout, has
// payloads in ascending order, and prints back to an equal one.
//
// A plain value.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sdr/link_estimator.hpp"
#include "sdr/report.hpp"
#include "sdr/result.hpp"
#include "sdr/units.hpp"

namespace sdr::cli {

struct LinkProfile {
  static constexpr std::uint64_t kVersion = 1;

  // What packets of one size met.
  struct Payload {
    Bytes bytes;                // of a packet, without headers
    std::uint64_t packets = 0;  // sent; the shares below are of these
    double loss = 0;            // share lost on the path; what the hosts dropped is not in it
    double mean_burst = 1;      // mean run of lost packets
    double reorder = 0;         // share that arrived behind a packet sent later

    friend bool operator==(const Payload&, const Payload&) = default;
  };

  Duration rtt_min{0};
  Duration rtt_p50{0};
  Duration rtt_p99{0};
  Bandwidth rate;  // achieved
  std::vector<Payload> payloads;

  // InvalidArgument names the field, the value and the range.
  static Result<LinkProfile> parse(std::string_view text);
  // System when the file cannot be read; all errors name it.
  static Result<LinkProfile> load(const std::string& path);
  // What a connection that sent packets of `payload` at `pace` (not limited: as fast as it could) has learned. It does
  // not count reordering, and knows its RTT by a mean and a deviation: p99 is the mean and four of those.
  static LinkProfile learned(const LinkEstimate& link, Bytes payload, Bandwidth pace);
  [[nodiscard]] Json to_json() const;

  // The entry for packets of `bytes`; InvalidArgument lists those there are.
  [[nodiscard]] Result<Payload> payload_of(Bytes bytes) const;
  // The largest that is not above `bytes`; the smallest when all are.
  [[nodiscard]] const Payload& payload_up_to(Bytes bytes) const;

  friend bool operator==(const LinkProfile&, const LinkProfile&) = default;
};

}  // namespace sdr::cli

// Environment: what the environment variables ask for, read when a context or a QP is made.
//
// Those of the authors' benchmark are honoured, or accepted where they mean nothing here, or refused where they ask for
// what this build has not: silence would let a measurement claim what did not happen. docs/c-api.md has the table.
//
// Offload: SDR_OFFLOAD_DEVICE names a device, which then takes what arrives; SDR_DPA_TX_OFFLOADING_ENABLE has a device
// make the packets to be sent, the named one, or else the emulated one where it can run and threads where not.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "sdr/offload.hpp"
#include "sdr/result.hpp"

namespace sdr::capi {

struct Environment {
  std::string link;                         // SDR_LINK; empty: none
  std::optional<std::uint8_t> generations;  // SDR_QP_NUM_GENERATIONS
  bool report_send = false;                 // SDR_DPA_TX_PROFILE_STATS_REPORT
  bool report_receive = false;              // SDR_DPA_RX_PROFILE_STATS_REPORT
  std::optional<OffloadOptions> offload;    // nothing: no device

  // The value of a variable, nothing when it is not set.
  using Lookup = std::function<std::optional<std::string>(std::string_view name)>;
  // InvalidArgument names the variable, its value and what it may be.
  static Result<Environment> read(const Lookup& lookup);
  // Of this process. An error goes to stderr as well: a program written for the authors' library asks nobody else.
  static Result<Environment> of_process();
};

}  // namespace sdr::capi

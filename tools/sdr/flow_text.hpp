// A flow of `sdr sim` as a person writes it, after --flow:
//
//   sdr,rtt=80ms,start=5s,controller=background     tcp-cubic,rtt=40ms,start=1s,hystart=off     rate=50Mbit,stop=20s
//
// The kind comes first and is sdr unless it is named: sdr, tcp-cubic or tcp-bbr. The keys: rtt (base, at least the
// path's), start, stop, bytes (without: until the end), name, and
//
//   sdr        scheme (as --scheme), controller (model, background, fixed), rate (fixed at it), maxrate, write (the
//              size of a Write), wake (how late its ends wake up in the mean)
//   tcp-cubic  hystart (on, off), ecn (on, off)
//
// Pure functions; any thread.
#pragma once

#include <string_view>

#include "experiment/shared_trial.hpp"
#include "sdr/result.hpp"

namespace sdr::cli {

// InvalidArgument names the key, the value and the range.
Result<experiment::FlowSpec> parse_flow(std::string_view text);

}  // namespace sdr::cli

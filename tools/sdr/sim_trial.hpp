// Simulated Writes as people describe them, by options or in a spec: the trial that is run, and what the theory
// (docs/model.md) makes of it.
//
// Pure functions; any thread.
#pragma once

#include <cstdint>
#include <string>

#include "experiment/write_trial.hpp"
#include "model/completion_time.hpp"
#include "model/scheme.hpp"
#include "model/transfer.hpp"
#include "sdr/options.hpp"
#include "sdr/result.hpp"

namespace sdr::cli {

inline constexpr std::uint32_t kUsualMtu = 4096;

// `mtu` and `chunk` are texts that their options take; `scheme` is not "none". Errors name the thing, the value and the
// range.
Result<experiment::WriteTrial> write_trial(const simulation::LinkSpec& link, const SchemeChoice& scheme, Bytes size,
                                           const std::string& mtu, const std::string& chunk, std::uint64_t seed);

// The Write as the theory sees it, each packet with `headers` bytes beside its payload. It knows losses, single or in
// runs; of a link with outages or a recorded trace it has nothing to say, nor of one without a rate.
Result<model::Transfer> transfer_of(const experiment::WriteTrial& trial, std::uint64_t headers);
model::SchemeSpec scheme_in_theory(const experiment::WriteTrial& trial);
// Of what is on the wire: packets with their headers.
Result<model::CompletionTime> time_in_theory(const experiment::WriteTrial& trial);

}  // namespace sdr::cli

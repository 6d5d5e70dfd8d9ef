// Trials for the tests of this floor: small Writes over short links, quick to run.
#pragma once

#include <string_view>

#include "experiment/trials.hpp"

namespace sdr::testing {

inline experiment::WriteTrial trial(std::string_view link, Scheme scheme, Bytes size, std::uint64_t mtu = 4096) {
  experiment::WriteTrial trial;
  trial.link = simulation::LinkSpec::parse(link).value();
  trial.connection.scheme = scheme;
  trial.connection.queue_pair.mtu = {mtu};
  trial.size = size;
  return trial;
}

inline std::vector<experiment::TrialResult> results(const experiment::WriteTrial& trial, std::uint64_t runs,
                                                    unsigned threads = 1) {
  return experiment::run_all(trial, {.runs = runs, .threads = threads}).value();
}

inline experiment::TrialResult sum(const std::vector<experiment::TrialResult>& results) {
  experiment::TrialResult sum;
  for (const experiment::TrialResult& result : results) sum += result;
  return sum;
}

inline double mean_ms(const std::vector<experiment::TrialResult>& results) {
  return static_cast<double>(sum(results).completion.count()) / 1e6 / static_cast<double>(results.size());
}

}  // namespace sdr::testing

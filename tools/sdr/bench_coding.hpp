// sdr bench coding: erasure coding of this machine, as a report, and the same for people.
//
// One thread.
#pragma once

#include <vector>

#include "experiment/coding_speed.hpp"
#include "sdr/report.hpp"
#include "sdr/result.hpp"

namespace sdr::cli {

struct BenchCodingOptions {
  experiment::CodingSpeedOptions speed;  // shapes: beside RS(32,8) and XOR(32,8), which are always measured
  bool tail = true;
};

// Codes of one overhead, of one length, and one as long as GF(2^8) allows: what is measured unless others are named.
[[nodiscard]] std::vector<coding::CodeShape> usual_codes();

// The fields are told in docs/cli.md. InvalidArgument names the option, the value and the limit.
Result<Json> bench_coding(const BenchCodingOptions& options);
void print_bench_coding(const Json& report);

}  // namespace sdr::cli

// BenchRecord: what `sdr bench coding --json` has written, as `sdr plan` takes it: how fast one core makes parity.
//
// Of Reed-Solomon codes the record holds some; what a byte of data takes grows with the parity and hardly depends on k.
// So the time a byte of another code is taken from the measured ones with the next fewer and the next more parity
// chunks, in proportion between them; beyond the most it grows in proportion to m, below the fewest it stays. XOR
// takes as long with any parity.
//
// Unlike most files that sdr reads, this one may hold more than is looked at: it is a report. A plain value.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "model/scheme.hpp"
#include "sdr/result.hpp"
#include "sdr/units.hpp"

namespace sdr::cli {

class BenchRecord {
 public:
  // Errors name the file, or the field, its value and its range.
  static Result<BenchRecord> load(const std::string& path);
  static Result<BenchRecord> parse(std::string_view text);

  // Of data, not of parity, by one core.
  [[nodiscard]] Bandwidth encode(const model::SchemeSpec& scheme) const;

 private:
  std::map<unsigned, double> seconds_;  // of Reed-Solomon, a byte of data, by m
  double xor_seconds_ = 0;
};

}  // namespace sdr::cli

// ReservedMemory: addresses without memory behind them, for buffers that are named and never touched.
//
// A simulation that counts payload and does not move it needs a place of the Write's size and no byte of it. Whoever
// reads or writes there all the same is stopped by the hardware: that is the proof that nobody does.
#pragma once

#include <cstdint>

#include "experiment/mapping.hpp"
#include "sdr/result.hpp"

namespace sdr::experiment {

class ReservedMemory : public Mapping {
 public:
  // System when there are not so many addresses.
  static Result<ReservedMemory> reserve(std::uint64_t bytes);

 private:
  using Mapping::Mapping;
};

}  // namespace sdr::experiment

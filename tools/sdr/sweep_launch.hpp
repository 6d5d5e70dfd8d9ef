// How this process was started: by itself, or by mpirun as one of several.
#pragma once

#include <memory>

#include "sdr/result.hpp"
#include "sdr/sweep_ranks.hpp"
#include "sdr/units.hpp"

namespace sdr::cli {

// The processes that mpirun started; null when there is only this one. An error when there are more and this program
// was built without MPI, or does not find its module.
Result<std::unique_ptr<SweepRanks>> meet_ranks(Duration patience);

}  // namespace sdr::cli

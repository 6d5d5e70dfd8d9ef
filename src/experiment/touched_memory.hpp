// TouchedMemory: memory that is mapped, and touched, before it is used, so that no page fault falls into a measurement;
// in huge pages where the system has them.
#pragma once

#include <cstdint>

#include "experiment/mapping.hpp"
#include "sdr/result.hpp"
#include "sdr/units.hpp"

namespace sdr::experiment {

class TouchedMemory : public Mapping {
 public:
  // At least `bytes`, all 0. System when there is not so much.
  static Result<TouchedMemory> allocate(std::uint64_t bytes);

 private:
  using Mapping::Mapping;
};

// InvalidArgument when `buffers` of that size are more than half of this machine's memory.
Result<void> fits_in_memory(std::uint64_t buffers, Bytes each);

}  // namespace sdr::experiment

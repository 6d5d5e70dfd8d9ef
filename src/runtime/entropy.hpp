// Randomness of this machine, for tokens that a stranger must not guess and for seeds. runtime/ is the only floor that
// draws it; everyone else is handed a value, so that a simulated run repeats from its seed.
#pragma once

#include <cstdint>

namespace sdr::runtime {

// 64 bits from the kernel (getrandom). Any thread; a system call each, so not for the packet path.
[[nodiscard]] std::uint64_t random_u64();

}  // namespace sdr::runtime

// Completion: what a transport reports for one packet whose payload it has placed. 8 bytes, so that a batch of 64
// stays in eight cache lines.
//
// Freestanding: included by the device program.
#pragma once

#include <cstdint>

namespace sdr::core {

struct Completion {
  std::uint32_t immediate = 0;  // host byte order
  std::uint16_t length = 0;     // payload bytes, 0 up to the MTU
  std::uint8_t generation = 0;  // of the transport QP it came in on
  std::uint8_t channel = 0;
};
static_assert(sizeof(Completion) == 8);

}  // namespace sdr::core

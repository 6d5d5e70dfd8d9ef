// XorSum: the xor of several buffers, byte by byte. All the time that the XOR code takes, hence in more than one
// implementation: AVX-512, AVX2, and one for any processor.
//
// ISA-L's xor_gen would do, but wants every buffer aligned to 32 bytes, which a user's is not. No state: any number of
// threads.
#pragma once

#include <cstddef>
#include <span>

#include "coding/stores.hpp"

namespace sdr::coding {

struct XorSum {
  const char* name;
  // At least one source; buffers at any address and of any length. The destination must not overlap a source.
  void (*apply)(std::span<const std::byte* const> sources, std::byte* destination, std::size_t bytes, Stores stores);
};

// Those that this processor can run, the fastest first; never empty.
[[nodiscard]] std::span<const XorSum* const> xor_sums();

// The fastest.
[[nodiscard]] inline const XorSum& xor_sum() {
  return *xor_sums().front();
}

[[nodiscard]] const XorSum& xor_sum_portable();
// Null where the processor, or the compiler's target, does not have it.
[[nodiscard]] const XorSum* xor_sum_avx512();
[[nodiscard]] const XorSum* xor_sum_avx2();

}  // namespace sdr::coding

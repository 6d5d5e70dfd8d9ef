// The seed of a randomised test: from SDR_TEST_SEED, or its own. Trace it, so that a failure can be run again:
//
//   const std::uint64_t seed = test_seed(7);
//   SCOPED_TRACE(seed_trace(seed));
#pragma once

#include <cstdint>
#include <cstdlib>
#include <random>
#include <string>

namespace sdr::testing_support {

inline std::uint64_t test_seed(std::uint64_t otherwise = std::random_device{}()) {
  const char* given = std::getenv("SDR_TEST_SEED");
  return given == nullptr ? otherwise : std::strtoull(given, nullptr, 0);
}

inline std::string seed_trace(std::uint64_t seed) {
  return "SDR_TEST_SEED=" + std::to_string(seed);
}

}  // namespace sdr::testing_support

// What the tests of this floor start from: two Connections over a simulated link in virtual time
// (experiment/virtual_pair.hpp), seeds and bytes.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "experiment/virtual_pair.hpp"
#include "sdr/connection.hpp"
#include "transport/simulated.hpp"

namespace sdr::testing {

using transport::PacketView;
using transport::Site;
using transport::Verdict;

// SDR_TEST_SEED repeats a failed run; tests put the seed into SCOPED_TRACE.
inline std::uint64_t test_seed(std::uint64_t fallback) {
  const char* text = std::getenv("SDR_TEST_SEED");
  return text == nullptr ? fallback : std::strtoull(text, nullptr, 10);
}
inline std::string seed_trace(std::uint64_t seed) {
  return "SDR_TEST_SEED=" + std::to_string(seed);
}

// Sanitizers cost a factor of ten and more: the same tests with fewer rounds.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

inline constexpr std::array<Scheme, 5> kAllSchemes{Scheme::SrRto, Scheme::SrNack, Scheme::EcXor, Scheme::EcRs,
                                                   Scheme::Adaptive};

// A scheme's name where only letters, digits and underscores may stand.
inline std::string identifier(Scheme scheme) {
  std::string name(to_string(scheme));
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

inline std::vector<std::byte> random_bytes(std::size_t size, std::uint64_t seed) {
  std::vector<std::byte> bytes(size);
  std::mt19937_64 random(seed);
  std::size_t i = 0;
  for (; i + 8 <= size; i += 8) {
    const std::uint64_t word = random();
    std::memcpy(bytes.data() + i, &word, 8);
  }
  for (; i < size; ++i) bytes[i] = static_cast<std::byte>(random());
  return bytes;
}

class ConnectionPair : public experiment::VirtualPair {
 public:
  ConnectionPair(const transport::SimulatedOptions& network, const ConnectionOptions& options) : VirtualPair(network) {
    if (const Result<void> opened = open(options); !opened) throw std::runtime_error(opened.error().message);
  }
  void kill_b() { stop(Site::B); }
};

}  // namespace sdr::testing

// CounterRandom: the n-th random number of a stream, by itself.
//
// A number depends on (seed, stream, n) and on nothing else: not on how many were drawn before, nor on the thread that
// draws. That is what makes a lossy run repeatable while its threads race.
//
// It is SplitMix64 (Steele, Lea, Flood, OOPSLA 2014) read as a counter-based generator: finaliser(key + n * gamma).
#pragma once

#include <cstdint>

namespace sdr::simulation {

class CounterRandom {
 public:
  constexpr CounterRandom(std::uint64_t seed, std::uint64_t stream) : key_(mixed(mixed(seed) ^ mixed(~stream))) {}

  [[nodiscard]] constexpr std::uint64_t operator()(std::uint64_t n) const { return mixed(key_ + n * kGamma); }

 private:
  static constexpr std::uint64_t kGamma = 0x9E3779B97F4A7C15;

  static constexpr std::uint64_t mixed(std::uint64_t z) {
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    return z ^ (z >> 31);
  }

  std::uint64_t key_;
};

// A probability against which a 64-bit draw is compared without floating point; exact at 0 and at 1.
class Chance {
 public:
  constexpr explicit Chance(double probability) : threshold_(static_cast<std::uint64_t>(probability * kOne)) {}
  [[nodiscard]] constexpr bool happens(std::uint64_t draw) const { return (draw >> 1) < threshold_; }
  [[nodiscard]] constexpr bool possible() const { return threshold_ != 0; }

 private:
  static constexpr double kOne = 9223372036854775808.0;  // 2^63
  std::uint64_t threshold_;
};

}  // namespace sdr::simulation

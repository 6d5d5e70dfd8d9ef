// Draws: the random numbers of one Monte Carlo sample.
//
// They depend on (seed, sample) and on the order of the calls within the sample, never on the thread that makes them:
// that is what gives a run of a million samples the same result for any number of threads. The generator is SplitMix64
// (Steele, Lea, Flood, OOPSLA 2014) with a key per sample.
//
// A plain value; one thread at a time.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

namespace sdr::model {

class Draws {
 public:
  Draws(std::uint64_t seed, std::uint64_t sample) : state_(mixed(mixed(seed) ^ mixed(~sample))) {}

  // Uniform in (0, 1], so that its logarithm is finite.
  double uniform() {
    state_ += 0x9E3779B97F4A7C15;
    return (static_cast<double>(mixed(state_) >> 11) + 1) * 0x1p-53;
  }

  bool happens(double chance) { return uniform() <= chance; }

  // Failures before the first success, each a failure with the chance exp(log_failure): P(n or more) = exp(n *
  // log_failure). Saturates far above any number of chunks.
  std::uint64_t failures(double log_failure) {
    if (log_failure >= 0) return kEndless;
    const double n = std::floor(std::log(uniform()) / log_failure);
    return n < static_cast<double>(kEndless) ? static_cast<std::uint64_t>(n) : kEndless;
  }

  // Successes among `trials`, each with `chance`; exact in distribution, cost bounded whatever the mean.
  std::uint64_t successes(std::uint64_t trials, double chance);

  static constexpr std::uint64_t kEndless = std::uint64_t{1} << 62;

 private:
  std::uint64_t rejection(double trials, double chance);

  static constexpr std::uint64_t mixed(std::uint64_t z) {
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    return z ^ (z >> 31);
  }

  std::uint64_t state_;
};

}  // namespace sdr::model

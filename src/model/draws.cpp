#include "model/draws.hpp"

namespace sdr::model {
namespace {

// lgamma() of the C library writes a global; this is Stirling's series, accurate to 1e-13 from 10 on.
double log_factorial(double n) {
  double shift = 0;
  double x = n + 1;
  for (; x < 10; x += 1) shift += std::log(x);
  const double inverse = 1 / x;
  const double square = inverse * inverse;
  const double series = inverse * (1.0 / 12 - square * (1.0 / 360 - square * (1.0 / 1260 - square / 1680)));
  constexpr double kHalfLogTwoPi = 0.91893853320467274178;
  return (x - 0.5) * std::log(x) - x + kHalfLogTwoPi + series - shift;
}

}  // namespace

std::uint64_t Draws::successes(std::uint64_t trials, double chance) {
  if (trials == 0 || chance <= 0) return 0;
  if (chance >= 1) return trials;
  if (chance > 0.5) return trials - successes(trials, 1 - chance);
  if (static_cast<double>(trials) * chance >= 10) return rejection(static_cast<double>(trials), chance);
  // Few: go from success to success.
  const double log_failure = std::log1p(-chance);
  std::uint64_t count = 0;
  for (std::uint64_t left = trials;;) {
    const std::uint64_t skipped = failures(log_failure);
    if (skipped >= left) return count;
    left -= skipped + 1;
    ++count;
  }
}

// Hörmann, "The generation of binomial random variates", J. Stat. Comput. Simul. 46 (1993), algorithm BTRS: a
// transformed density as the hat, the exact probability in the test. For trials * chance >= 10, chance <= 0.5.
std::uint64_t Draws::rejection(double trials, double chance) {
  const double deviation = std::sqrt(trials * chance * (1 - chance));
  const double b = 1.15 + 2.53 * deviation;
  const double a = -0.0873 + 0.0248 * b + 0.01 * chance;
  const double c = trials * chance + 0.5;
  const double v_r = 0.92 - 4.2 / b;
  const double alpha = (2.83 + 5.1 / b) * deviation;
  const double log_odds = std::log(chance / (1 - chance));
  const double mode = std::floor((trials + 1) * chance);
  const double h = log_factorial(mode) + log_factorial(trials - mode);
  while (true) {
    const double u = uniform() - 0.5;
    double v = uniform();
    const double us = 0.5 - std::abs(u);
    const double k = std::floor((2 * a / us + b) * u + c);
    if (us >= 0.07 && v <= v_r) return static_cast<std::uint64_t>(k);
    if (us <= 0 || k < 0 || k > trials) continue;
    v = std::log(v * alpha / (a / (us * us) + b));
    if (v <= h - log_factorial(k) - log_factorial(trials - k) + (k - mode) * log_odds) {
      return static_cast<std::uint64_t>(k);
    }
  }
}

}  // namespace sdr::model

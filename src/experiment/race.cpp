#include "experiment/race.hpp"

#include <algorithm>
#include <chrono>

#include "runtime/clock.hpp"

namespace sdr::experiment {
namespace {

double seconds_of_a_pass(const std::function<void()>& pass, Duration each) {
  const TimePoint begin = runtime::now();
  TimePoint now = begin;
  unsigned passes = 0;
  do {
    pass();
    ++passes;
    now = runtime::now();
  } while (now - begin < each);
  return std::chrono::duration<double>(now - begin).count() / passes;
}

}  // namespace

std::vector<double> race(const std::vector<std::function<void()>>& contestants, unsigned runs, Duration each) {
  std::vector<std::vector<double>> seconds(contestants.size());
  for (const auto& pass : contestants) pass();
  for (unsigned run = 0; run < std::max(1U, runs); ++run)
    for (std::size_t c = 0; c < contestants.size(); ++c) seconds[c].push_back(seconds_of_a_pass(contestants[c], each));
  std::vector<double> medians;
  for (auto& of_one : seconds) {
    const auto middle = of_one.begin() + static_cast<std::ptrdiff_t>(of_one.size() / 2);
    std::nth_element(of_one.begin(), middle, of_one.end());
    medians.push_back(*middle);
  }
  return medians;
}

}  // namespace sdr::experiment

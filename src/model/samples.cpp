#include "model/samples.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <thread>

namespace sdr::model {
namespace {

constexpr std::size_t kMostSamples = std::size_t{1} << 30;
constexpr unsigned kMostThreads = 1024;
constexpr std::size_t kBlock = 64;  // samples that a thread takes at a time: they differ in cost

Duration at_share(const std::vector<Duration>& sorted, double share) {
  const double rank = std::ceil(share * static_cast<double>(sorted.size()) * (1 - 1e-12));
  return sorted[static_cast<std::size_t>(std::max(rank, 1.0)) - 1];
}

}  // namespace

Result<void> check(const SampleOptions& options) {
  if (options.count < 1 || options.count > kMostSamples) {
    return Error{ErrorCode::InvalidArgument, fmt::format("samples {} is not from 1 to 2^30", options.count)};
  }
  if (options.threads < 1 || options.threads > kMostThreads) {
    return Error{ErrorCode::InvalidArgument,
                 fmt::format("threads {} is not from 1 to {}", options.threads, kMostThreads)};
  }
  return {};
}

Summary Samples::summary() const {
  std::vector<Duration> sorted = times;
  std::sort(sorted.begin(), sorted.end());
  double sum = 0;
  for (const Duration time : sorted) sum += to_seconds(time);
  return {to_duration(sum / static_cast<double>(sorted.size())), at_share(sorted, 0.5), at_share(sorted, 0.99),
          at_share(sorted, 0.999)};
}

Result<Duration> Samples::percentile(double share) const {
  if (!(share > 0 && share < 1)) {
    return Error{ErrorCode::InvalidArgument, fmt::format("percentile {} is not between 0 and 1", share)};
  }
  std::vector<Duration> sorted = times;
  std::sort(sorted.begin(), sorted.end());
  return at_share(sorted, share);
}

Samples draw_samples(const SampleOptions& options, const std::function<double(Draws&)>& draw_one) {
  Samples result;
  result.times.resize(options.count);
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    while (true) {
      const std::size_t begin = next.fetch_add(kBlock, std::memory_order_relaxed);
      if (begin >= options.count || (options.stop != nullptr && *options.stop)) return;
      for (std::size_t n = begin; n < std::min(begin + kBlock, options.count); ++n) {
        Draws draws(options.seed, n);
        result.times[n] = to_duration(draw_one(draws));
      }
    }
  };
  std::vector<std::thread> others;
  const std::size_t useful = (options.count + kBlock - 1) / kBlock;
  for (std::size_t t = 1; t < std::min<std::size_t>(options.threads, useful); ++t) others.emplace_back(work);
  work();
  for (std::thread& thread : others) thread.join();
  return result;
}

Result<Samples> samples(const Transfer& transfer, const SchemeSpec& scheme, const SampleOptions& options) {
  if (Result<void> checked = check(options); !checked) return checked.error();
  const Result<Sampler> sampler = Sampler::create(transfer, scheme, options.sender);
  if (!sampler) return sampler.error();
  return draw_samples(options, [&](Draws& draws) { return (*sampler)(draws); });
}

}  // namespace sdr::model

#include "model/allreduce.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <vector>

namespace sdr::model {
namespace {

constexpr std::uint32_t kMostDatacenters = 4096;
constexpr Duration kLongestCompute = std::chrono::hours(1);

std::uint32_t height(std::uint32_t datacenters) {
  return static_cast<std::uint32_t>(std::bit_width(datacenters - 1));
}

}  // namespace

Result<Allreduce> Allreduce::create(const PathSpec& path, const SchemeSpec& scheme, const AllreduceSpec& spec) {
  if (spec.datacenters < 2 || spec.datacenters > kMostDatacenters) {
    return Error{ErrorCode::InvalidArgument,
                 fmt::format("datacenters {} is not from 2 to {}", spec.datacenters, kMostDatacenters)};
  }
  if (spec.compute < Duration::zero() || spec.compute > kLongestCompute) {
    return Error{ErrorCode::InvalidArgument,
                 fmt::format("compute {} ns is not from 0 to 60 min", spec.compute.count())};
  }
  if (spec.buffer < 1_B) return Error{ErrorCode::InvalidArgument, "buffer 0 bytes is not at least 1 byte"};
  const bool ring = spec.topology == Topology::Ring;
  const Bytes share{ring ? (spec.buffer.count - 1) / spec.datacenters + 1 : spec.buffer.count};
  const Result<Transfer> message = Transfer::create(path, share);
  if (!message) return message.error();
  const Result<CompletionTime> time = CompletionTime::of(*message, scheme);
  if (!time) return time.error();
  return Allreduce(*message, scheme, spec, time->mean());
}

std::uint32_t Allreduce::rounds() const {
  return spec_.topology == Topology::Ring ? 2 * spec_.datacenters - 2 : 2 * height(spec_.datacenters);
}

Duration Allreduce::lossless() const {
  return to_duration(rounds() * (to_seconds(spec_.compute) + to_seconds(message_.lossless())));
}

Duration Allreduce::bound() const {
  return to_duration(rounds() * (to_seconds(spec_.compute) + to_seconds(mean_)));
}

Result<Samples> Allreduce::samples(const SampleOptions& options) const {
  if (Result<void> checked = check(options); !checked) return checked.error();
  const Result<Sampler> sampler = Sampler::create(message_, scheme_, options.sender);
  if (!sampler) return sampler.error();
  return draw_samples(options, [&](Draws& draws) {
    return spec_.topology == Topology::Ring ? ring(*sampler, draws) : tree(*sampler, draws);
  });
}

double Allreduce::ring(const Sampler& sampler, Draws& draws) const {
  const double compute = to_seconds(spec_.compute);
  std::vector<double> at(spec_.datacenters);
  for (std::uint32_t r = 0; r < rounds(); ++r) {
    double before = at.back();  // the datacenter before the first is the last
    for (double& time : at) {
      const double own = time;
      time = std::max(before, own) + compute + sampler(draws);
      before = own;
    }
  }
  return *std::max_element(at.begin(), at.end());
}

double Allreduce::tree(const Sampler& sampler, Draws& draws) const {
  const double compute = to_seconds(spec_.compute);
  std::vector<double> at(spec_.datacenters);
  const std::uint32_t count = spec_.datacenters;
  const std::uint32_t farthest = std::uint32_t{1} << (height(count) - 1);
  for (std::uint32_t stride = 1; stride <= farthest; stride *= 2) {
    for (std::uint32_t i = 0; i + stride < count; i += 2 * stride) {
      at[i] = std::max(at[i], at[i + stride]) + compute + sampler(draws);
    }
  }
  for (std::uint32_t stride = farthest; stride >= 1; stride /= 2) {
    for (std::uint32_t i = 0; i + stride < count; i += 2 * stride) {
      at[i] = at[i] + compute + sampler(draws);
      at[i + stride] = at[i];
    }
  }
  return *std::max_element(at.begin(), at.end());
}

}  // namespace sdr::model

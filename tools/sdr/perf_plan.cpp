#include "sdr/perf_plan.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "sdr/session.hpp"

namespace sdr::cli {
namespace {

constexpr std::uint64_t kSpareReceiveBytes = 256ULL << 20;

// splitmix64 (Steele, Lea, Flood 2014): one multiplication chain a word, fast enough to fill gigabytes.
std::uint64_t scrambled(std::uint64_t n) {
  n += 0x9e3779b97f4a7c15;
  n = (n ^ n >> 30) * 0xbf58476d1ce4e5b9;
  n = (n ^ n >> 27) * 0x94d049bb133111eb;
  return n ^ n >> 31;
}

}  // namespace

std::uint32_t PerfPlan::receives() const {
  const std::uint64_t spare = kSpareReceiveBytes / std::max<std::uint64_t>(size.count, 1);
  return inflight + static_cast<std::uint32_t>(std::clamp<std::uint64_t>(spare, 1, inflight));
}

Json PerfPlan::to_json() const {
  return {{"size_bytes", size.count}, {"iterations", iterations}, {"warmup", warmup},
          {"inflight", inflight},     {"verify", verify},         {"seed", seed}};
}

Result<PerfPlan> PerfPlan::from_json(const Json& json) {
  const auto size = get_number(json, "size_bytes");
  const auto iterations = get_number(json, "iterations");
  const auto warmup = get_number(json, "warmup");
  const auto inflight = get_number(json, "inflight");
  const auto verify = get_flag(json, "verify");
  const auto seed = get_number(json, "seed");
  if (!size) return size.error();
  if (!iterations) return iterations.error();
  if (!warmup) return warmup.error();
  if (!inflight) return inflight.error();
  if (!verify) return verify.error();
  if (!seed) return seed.error();
  const auto outside = [](std::string_view what, std::uint64_t value, std::uint64_t least, std::uint64_t most) {
    return Error{ErrorCode::InvalidArgument, fmt::format("{} {} is not from {} to {}", what, value, least, most)};
  };
  if (*size < 1) return outside("size", *size, 1, UINT64_MAX);
  if (*iterations < 1 || *iterations > kMaxWrites) return outside("iterations", *iterations, 1, kMaxWrites);
  if (*warmup > kMaxWrites) return outside("warmup", *warmup, 0, kMaxWrites);
  if (*inflight < 1 || *inflight > kMaxInflight) return outside("inflight", *inflight, 1, kMaxInflight);
  return PerfPlan{.size = Bytes{*size},
                  .iterations = *iterations,
                  .warmup = *warmup,
                  .inflight = static_cast<std::uint32_t>(*inflight),
                  .verify = *verify,
                  .seed = *seed};
}

Result<void> PerfPlan::check_memory(std::uint64_t buffers) const {
  return experiment::fits_in_memory(buffers, size);
}

Result<Payload> Payload::make(Bytes size, std::uint64_t seed) {
  auto memory = experiment::TouchedMemory::allocate(size.count + kPositions * kStep);
  if (!memory) return memory.error();
  const std::span<std::byte> bytes = memory->bytes();
  for (std::uint64_t i = 0; i < kPeriod; i += 8) {
    const std::uint64_t word = scrambled(seed + i);
    std::memcpy(bytes.data() + i, &word, 8);
  }
  for (std::uint64_t i = kPeriod; i < bytes.size(); i += kPeriod) {
    std::memcpy(bytes.data() + i, bytes.data(), std::min(kPeriod, bytes.size() - i));
  }
  return Payload(std::move(memory).value(), size.count);
}

bool Payload::matches(std::uint64_t write, std::uint64_t offset, std::span<const std::byte> bytes) const {
  std::uint64_t at = (write % kPositions * kStep + offset) % kPeriod;
  while (!bytes.empty()) {
    const std::uint64_t n = std::min<std::uint64_t>(kPeriod - at, bytes.size());
    if (std::memcmp(bytes.data(), memory_.bytes().data() + at, n) != 0) return false;
    bytes = bytes.subspan(n);
    at = 0;
  }
  return true;
}

}  // namespace sdr::cli

#include "model/transfer.hpp"

#include <fmt/format.h>

#include <cmath>
#include <string>

namespace sdr::model {
namespace {

constexpr double kLightKilometresPerSecond = 3e5;  // as the paper has it: fibre and its detours are rounded to c
constexpr double kHighestLoss = 0.999;             // beyond, a chunk takes thousands of transmissions
constexpr double kLongestBurst = 1e6;
constexpr Bandwidth kSlowest{1e3};
constexpr Bandwidth kFastest{1e15};
constexpr Duration kLongestRtt = std::chrono::hours(1);
constexpr Bytes kLargestChunk = 1_GiB;
constexpr std::uint64_t kMostChunks = std::uint64_t{1} << 40;
constexpr double kLongestInjection = 30.0 * 24 * 3600;

Error refused(std::string message) {
  return {ErrorCode::InvalidArgument, std::move(message)};
}

// Written so that a NaN is refused as well.
bool within(double value, double low, double high) {
  return value >= low && value <= high;
}

Result<void> check(const PathSpec& path) {
  if (path.chunk < 1_B || path.chunk > kLargestChunk) {
    return refused(fmt::format("chunk {} bytes is not from 1 byte to 1 GiB", path.chunk.count));
  }
  if (path.packet < 1_B || path.packet > path.chunk) {
    return refused(
        fmt::format("packet {} bytes is not from 1 byte to the chunk, {} bytes", path.packet.count, path.chunk.count));
  }
  if (!within(path.rate.bits_per_second, kSlowest.bits_per_second, kFastest.bits_per_second)) {
    return refused(fmt::format("rate {} bit/s is not from 1 kbit/s to 1000 Tbit/s", path.rate.bits_per_second));
  }
  if (path.rtt < Duration::zero() || path.rtt > kLongestRtt) {
    return refused(fmt::format("rtt {} ns is not from 0 to 60 min", path.rtt.count()));
  }
  if (!within(path.loss, 0, kHighestLoss)) {
    return refused(fmt::format("loss {} is not from 0 to {}", path.loss, kHighestLoss));
  }
  if (!within(path.burst, 1, kLongestBurst)) {
    return refused(fmt::format("burst {} is not from 1 to 1e6 packets", path.burst));
  }
  return {};
}

}  // namespace

Result<Duration> rtt_over(Kilometres distance) {
  if (!within(distance.count, 0, 1e8)) {
    return refused(fmt::format("distance {} km is not from 0 to 1e8 km", distance.count));
  }
  return to_duration(2 * distance.count / kLightKilometresPerSecond);
}

Result<Transfer> Transfer::create(const PathSpec& path, Bytes message) {
  if (Result<void> checked = check(path); !checked) return checked.error();
  if (message < 1_B) return refused("size 0 bytes is not at least 1 byte");
  Transfer transfer;
  transfer.chunks_ = (message.count - 1) / path.chunk.count + 1;
  if (transfer.chunks_ > kMostChunks) {
    return refused(fmt::format("size {} bytes is {} chunks of {} bytes, more than 2^40", message.count,
                               transfer.chunks_, path.chunk.count));
  }
  transfer.injection_ = static_cast<double>(path.chunk.count) * 8 / path.rate.bits_per_second;
  const double injection = transfer.injection_ * static_cast<double>(transfer.chunks_);
  if (injection > kLongestInjection) {
    return refused(fmt::format("size {} bytes takes {:.0f} s at {} bit/s, more than 30 days", message.count, injection,
                               path.rate.bits_per_second));
  }
  transfer.rtt_ = to_seconds(path.rtt);
  const std::uint64_t packets = (path.chunk.count - 1) / path.packet.count + 1;
  transfer.loss_ = ChunkLoss::of_packets(path.loss, path.burst, packets);
  if (!within(transfer.loss_.p(), 0, kHighestLoss)) {
    return refused(fmt::format("loss {} of packets is a loss of {:.4g} of chunks of {} packets, more than {}",
                               path.loss, transfer.loss_.p(), packets, kHighestLoss));
  }
  return transfer;
}

Duration Transfer::lossless() const {
  return to_duration(static_cast<double>(chunks_) * injection_ + rtt_);
}

Duration Transfer::floor() const {
  return to_duration(static_cast<double>(chunks_) * injection_ / (1 - loss_.p()) + rtt_);
}

Duration to_duration(double seconds) {
  const double nanoseconds = std::round(seconds * 1e9);
  if (!(nanoseconds < 9.2e18)) return Duration::max();
  return Duration(static_cast<std::int64_t>(nanoseconds));
}

double to_seconds(Duration time) {
  return static_cast<double>(time.count()) * 1e-9;
}

}  // namespace sdr::model

// PerfPlan: what a run of `sdr perf` does, and the bytes that it moves.
//
// Plan: so many Writes of one size, so many at a time, after some that do not count. The client decides it, the server
// reads it from the hello.
//
// Payload: Write n carries a window of one array of random numbers, and the window moves with n. So each Write differs
// from its predecessors in every word, costs nothing to make, and a receive buffer that still holds an earlier Write is
// seen to be wrong. Both ends fill the array from the same seed.
//
// Threads: one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "experiment/touched_memory.hpp"
#include "sdr/report.hpp"
#include "sdr/result.hpp"
#include "sdr/units.hpp"

namespace sdr::cli {

struct PerfPlan {
  static constexpr std::uint32_t kMaxInflight = 512;
  static constexpr std::uint64_t kMaxWrites = 100'000'000;

  Bytes size = 8_MiB;
  std::uint64_t iterations = 20;
  std::uint64_t warmup = 1;
  std::uint32_t inflight = 1;
  bool verify = true;
  std::uint64_t seed = 0;

  [[nodiscard]] std::uint64_t writes() const { return warmup + iterations; }
  // Receives that the server keeps posted: as many again as are in flight, so that no Write waits for its receive; less
  // when that would be much memory, but always one more.
  [[nodiscard]] std::uint32_t receives() const;

  [[nodiscard]] Json to_json() const;
  static Result<PerfPlan> from_json(const Json& json);
  // InvalidArgument when `buffers` of that size are more than half of this machine's memory.
  [[nodiscard]] Result<void> check_memory(std::uint64_t buffers) const;
};

// What Writes carry: a pattern of kPeriod random bytes over and over, each Write from another place of it on. The
// period is short, so that what is compared with stays in the first cache; and 8 times a prime, so that packets and
// chunks that change places show, up to 2038 of them apart.
class Payload {
 public:
  static Result<Payload> make(Bytes size, std::uint64_t seed);

  [[nodiscard]] std::span<const std::byte> of(std::uint64_t write) const {
    return memory_.bytes().subspan(write % kPositions * kStep, size_);
  }
  // Whether `bytes` are those of Write `write` from `offset` on.
  [[nodiscard]] bool matches(std::uint64_t write, std::uint64_t offset, std::span<const std::byte> bytes) const;
  // All that Writes are taken from, to be registered.
  [[nodiscard]] std::span<std::byte> memory() const { return memory_.bytes(); }

 private:
  // A step keeps the alignment of a cache line. All positions differ, and are more than a plan can have receives: a
  // buffer that still holds what came into it last time is seen to be wrong.
  static constexpr std::uint64_t kStep = 64;
  static constexpr std::uint64_t kPositions = 2039;
  static constexpr std::uint64_t kPeriod = std::uint64_t{8} * 2039;
  static_assert(kPositions > std::uint64_t{2} * PerfPlan::kMaxInflight);
  static_assert(kPositions * kStep >= 2 * kPeriod);  // a period from anywhere in the first one is in memory

  Payload(experiment::TouchedMemory memory, std::uint64_t size) : memory_(std::move(memory)), size_(size) {}
  experiment::TouchedMemory memory_;
  std::uint64_t size_;
};

}  // namespace sdr::cli

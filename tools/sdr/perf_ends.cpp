#include "sdr/perf_ends.hpp"

#include <algorithm>

namespace sdr::cli {
namespace {

constexpr std::uint64_t kVerifySlice = 256ULL << 10;
constexpr Duration kLookEvery = std::chrono::milliseconds(1);

}  // namespace

WriteBook::WriteBook(const PerfPlan& plan) : plan_(plan), starts_(plan.inflight), ends_(plan.inflight, kNever) {
  times_.reserve(plan.iterations);
}

bool WriteBook::may_post() const {
  if (posted_ == plan_.writes() || posted_ - oldest_ >= plan_.inflight) return false;
  return posted_ != plan_.warmup || outstanding() == 0;
}

void WriteBook::posted(TimePoint at) {
  if (posted_ == plan_.warmup) first_ = at;
  starts_[posted_ % plan_.inflight] = at;
  ends_[posted_ % plan_.inflight] = kNever;
  ++posted_;
}

void WriteBook::completed(std::uint64_t write, TimePoint at) {
  if (write >= posted_ || is_complete(write)) return;
  ends_[write % plan_.inflight] = at;
  ++completed_;
  last_ = std::max(last_, at);
  while (oldest_ < posted_ && ends_[oldest_ % plan_.inflight] != kNever) {
    const std::size_t i = oldest_ % plan_.inflight;
    if (oldest_ >= plan_.warmup) times_.push_back(ends_[i] - starts_[i]);
    ++oldest_;
  }
}

void WriteBook::report(SenderResult& result) const {
  result.completion_times = times_;
  result.elapsed = last_ - first_;
}

Result<ReceiveBuffers> ReceiveBuffers::make(const PerfPlan& plan, const Payload& payload) {
  // Two Writes never share a cache line.
  const std::uint64_t stride = (plan.size.count + 63) / 64 * 64;
  auto memory = experiment::TouchedMemory::allocate(stride * plan.receives());
  if (!memory) return memory.error();
  return ReceiveBuffers(plan, payload, std::move(memory).value(), stride);
}

ReceiveBuffers::ReceiveBuffers(const PerfPlan& plan, const Payload& payload, experiment::TouchedMemory memory,
                               std::uint64_t stride)
    : plan_(plan),
      payload_(&payload),
      memory_(std::move(memory)),
      stride_(stride),
      done_(plan.receives()),
      verified_(plan.receives()) {}

std::span<std::byte> ReceiveBuffers::buffer(std::uint64_t write) const {
  return memory_.bytes().subspan(write % plan_.receives() * stride_, plan_.size.count);
}

void ReceiveBuffers::verify(std::uint64_t write, std::uint64_t bytes) {
  Verified& verified = verified_[write % plan_.receives()];
  if (bytes <= verified.bytes) return;
  const std::span<const std::byte> fresh = buffer(write).subspan(verified.bytes, bytes - verified.bytes);
  if (!verified.wrong) verified.wrong = !payload_->matches(write, verified.bytes, fresh);
  verified.bytes = bytes;
}

void ReceiveBuffers::landed(std::uint64_t write, std::uint64_t bytes) {
  if (plan_.verify) verify(write, std::min(bytes, plan_.size.count));
}

void ReceiveBuffers::complete(std::uint64_t write, bool lost) {
  ++completed_;
  if (lost || !plan_.verify) {
    finish(write, false, lost);
  } else {
    waiting_.push_back(write);
  }
}

bool ReceiveBuffers::verify_some() {
  if (waiting_.empty()) return false;
  const std::uint64_t write = waiting_.front();
  const Verified& verified = verified_[write % plan_.receives()];
  verify(write, std::min(verified.bytes + kVerifySlice, plan_.size.count));
  if (verified.bytes < plan_.size.count) return true;
  waiting_.pop_front();
  finish(write, verified.wrong, false);
  return true;
}

void ReceiveBuffers::finish(std::uint64_t write, bool wrong, bool lost) {
  ++counted_;
  if (write >= plan_.warmup) {
    writes_ += lost ? 0 : 1;
    wrong_ += wrong ? 1 : 0;
    lost_ += lost ? 1 : 0;
  }
  verified_[write % plan_.receives()] = {};
  done_[write % plan_.receives()] = 1;
  while (released_ < posted_ && done_[released_ % plan_.receives()] != 0) {
    done_[released_ % plan_.receives()] = 0;
    ++released_;
  }
}

void ReceiveBuffers::report(ReceiverResult& result) const {
  result.writes = writes_;
  result.wrong = wrong_;
  result.lost = lost_;
}

bool SessionWatch::look(TimePoint now) {
  if (message_ || error_) return true;
  if (now < next_look_) return false;
  next_look_ = now + kLookEvery;
  Result<std::optional<Json>> polled = session_.poll();
  if (!polled) {
    error_ = polled.error();
  } else if (*polled) {
    message_ = std::move(**polled);
  }
  return message_ || error_;
}

}  // namespace sdr::cli

#include "transfer_worker.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <system_error>
#include <utility>

namespace sdr::tools {

TransferWorker::TransferWorker() : event_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  if (!event_.valid()) throw std::system_error(errno, std::generic_category(), "eventfd");
}

TransferWorker::~TransferWorker() { stopping_.store(true, std::memory_order_relaxed); }

void TransferWorker::give(Job job) {
  ++pending_;
  pool_.run([this, job = std::move(job)] {
    if (stopping()) return;
    Continuation then = job();
    const std::lock_guard lock(mutex_);
    done_.push_back(std::move(then));
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = write(event_.get(), &one, sizeof one);  // full means readable, too
  });
}

bool TransferWorker::collect() {
  std::vector<Continuation> done;
  {
    const std::lock_guard lock(mutex_);
    std::swap(done, done_);
    std::uint64_t count = 0;
    [[maybe_unused]] const ssize_t got = read(event_.get(), &count, sizeof count);
  }
  pending_ -= done.size();
  for (const Continuation& then : done) {
    if (then) then();
  }
  return !done.empty();
}

void GrowingDigest::advance(std::uint64_t end, const TransferWorker& worker) {
  constexpr std::uint64_t kStep = std::uint64_t{1} << 20;
  end = std::min<std::uint64_t>(end, content_.size());
  while (at_ < end && !worker.stopping()) {
    const std::uint64_t length = std::min(kStep, end - at_);
    hash_.update(content_.subspan(at_, length));
    at_ += length;
  }
}

}  // namespace sdr::tools

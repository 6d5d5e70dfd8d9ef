#include "sdr/transfer_worker.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <system_error>
#include <utility>

namespace sdr::cli {

TransferWorker::TransferWorker()
    : event_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)), pool_(std::make_unique<runtime::TaskPool>(1)) {
  if (!event_.valid()) throw std::system_error(errno, std::generic_category(), "eventfd");
}

TransferWorker::~TransferWorker() {
  stop();
}

void TransferWorker::stop() {
  stopping_.store(true, std::memory_order_relaxed);
  pool_.reset();
}

void TransferWorker::give(Job job) {
  if (!pool_) return;
  pool_->run([this, job = std::move(job)] {
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
    if (done_.empty()) return false;
    std::swap(done, done_);
    std::uint64_t count = 0;
    [[maybe_unused]] const ssize_t got = read(event_.get(), &count, sizeof count);
  }
  for (const Continuation& then : done) {
    if (then) then();
  }
  return true;
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

}  // namespace sdr::cli

// TransferWorker: the one thread beside the network's that a transfer has, for what takes long: checksums, fsync.
//
// Model: a job runs on the worker, after those given before it; what it returns runs on the owner's thread, in the same
// order, from collect(). A descriptor becomes readable when there is something to collect.
// Threads: give(), collect(), descriptor() from the owner's thread. Jobs that run long ask stopping() in between.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "runtime/task_pool.hpp"
#include "sdr/file_digest.hpp"
#include "sdr/file_store.hpp"

namespace sdr::cli {

class TransferWorker {
 public:
  using Continuation = std::function<void()>;
  using Job = std::function<Continuation()>;

  TransferWorker();
  ~TransferWorker();
  TransferWorker(const TransferWorker&) = delete;
  TransferWorker& operator=(const TransferWorker&) = delete;

  void give(Job job);
  // Runs what has come back; whether there was any.
  bool collect();
  // Abandons what has not begun and waits for the job that has. What came back is not collected any more.
  void stop();
  [[nodiscard]] bool stopping() const { return stopping_.load(std::memory_order_relaxed); }
  [[nodiscard]] int descriptor() const { return event_.get(); }

 private:
  FileDescriptor event_;
  std::atomic<bool> stopping_{false};
  std::mutex mutex_;
  std::vector<Continuation> done_;           // guarded by mutex_
  std::unique_ptr<runtime::TaskPool> pool_;  // null when stopped
};

// The SHA-256 of a file that becomes available from the front. Used from one worker's jobs only.
class GrowingDigest {
 public:
  explicit GrowingDigest(std::span<const std::byte> content) : content_(content) {}

  // Takes in all up to `end`, or less when the worker is stopping.
  void advance(std::uint64_t end, const TransferWorker& worker);
  std::string finish_hex() { return hash_.finish_hex(); }

 private:
  std::span<const std::byte> content_;
  std::uint64_t at_ = 0;
  Sha256 hash_;
};

}  // namespace sdr::cli

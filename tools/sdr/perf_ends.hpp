// What the two kinds of perf run (perf_run.hpp) have in common: the sender's book of Writes, the receiver's buffers and
// their verification, and an eye on the session.
//
// Threads: one.
#pragma once

#include <deque>
#include <optional>
#include <vector>

#include "sdr/perf_run.hpp"

namespace sdr::cli {

// Which Writes are posted and complete, and how long they took.
class WriteBook {
 public:
  explicit WriteBook(const PerfPlan& plan);

  // Whether the next Write may be posted now: room in flight, and the warm-up is over before the rest begins.
  [[nodiscard]] bool may_post() const;
  [[nodiscard]] std::uint64_t next() const { return posted_; }
  void posted(TimePoint at);
  // A Write may complete before an older one.
  void completed(std::uint64_t write, TimePoint at);
  [[nodiscard]] bool is_complete(std::uint64_t write) const {
    return write < oldest_ || ends_[write % ends_.size()] != kNever;
  }
  [[nodiscard]] std::uint64_t outstanding() const { return posted_ - completed_; }
  [[nodiscard]] std::uint64_t complete_count() const { return completed_; }
  [[nodiscard]] bool warmed_up() const { return completed_ >= plan_.warmup; }
  [[nodiscard]] bool finished() const { return completed_ == plan_.writes(); }
  void report(SenderResult& result) const;

 private:
  PerfPlan plan_;
  std::vector<TimePoint> starts_;  // by number modulo the window
  std::vector<TimePoint> ends_;    // kNever while in flight
  std::vector<Duration> times_;
  std::uint64_t posted_ = 0;
  std::uint64_t completed_ = 0;
  std::uint64_t oldest_ = 0;  // not complete
  TimePoint first_{};
  TimePoint last_{};
};

// The receive buffers, and the Writes that wait in them for verification.
//
// What is known to have landed of a Write in order is compared at once, out of the cache; the rest when it is complete,
// in slices, so that packets are not kept waiting by a long comparison.
class ReceiveBuffers {
 public:
  static Result<ReceiveBuffers> make(const PerfPlan& plan, const Payload& payload);

  // Receives are posted in order, each into the next buffer that is free.
  [[nodiscard]] bool has_free() const { return posted_ < released_ + plan_.receives() && posted_ < plan_.writes(); }
  [[nodiscard]] std::uint64_t next() const { return posted_; }
  [[nodiscard]] std::span<std::byte> buffer(std::uint64_t write) const;
  // That of all buffers, to be registered.
  [[nodiscard]] std::span<std::byte> memory() const { return memory_.bytes(); }
  void posted() { ++posted_; }

  // The first `bytes` of Write `write` are in its buffer.
  void landed(std::uint64_t write, std::uint64_t bytes);
  // Write `write` is complete in its buffer, in any order; a lost one is not looked at.
  void complete(std::uint64_t write, bool lost);
  // Does a slice of the waiting work; false when there is none.
  bool verify_some();
  [[nodiscard]] bool busy() const { return !waiting_.empty(); }
  [[nodiscard]] bool finished() const { return counted_ == plan_.writes(); }
  [[nodiscard]] std::uint64_t completed() const { return completed_; }
  void report(ReceiverResult& result) const;

 private:
  ReceiveBuffers(const PerfPlan& plan, const Payload& payload, experiment::TouchedMemory memory, std::uint64_t stride);
  // How far a buffer has been compared.
  struct Verified {
    std::uint64_t bytes = 0;
    bool wrong = false;
  };
  void verify(std::uint64_t write, std::uint64_t bytes);
  void finish(std::uint64_t write, bool wrong, bool lost);

  PerfPlan plan_;
  const Payload* payload_;
  experiment::TouchedMemory memory_;
  std::uint64_t stride_;
  std::uint64_t posted_ = 0;
  std::uint64_t released_ = 0;      // buffers of all Writes below are free again
  std::vector<char> done_;          // by number modulo receives(): finished, above released_
  std::vector<Verified> verified_;  // by number modulo receives()
  std::deque<std::uint64_t> waiting_;
  std::uint64_t completed_ = 0;
  std::uint64_t counted_ = 0;
  std::uint64_t writes_ = 0;
  std::uint64_t wrong_ = 0;
  std::uint64_t lost_ = 0;
};

// The session beside a run: what it says, or that it is over.
class SessionWatch {
 public:
  explicit SessionWatch(Session& session) : session_(session) {}
  // Looks for a message, a system call, once in a while; true when there is one, or the end.
  bool look(TimePoint now);
  [[nodiscard]] const std::optional<Json>& message() const { return message_; }
  [[nodiscard]] const std::optional<Error>& error() const { return error_; }

 private:
  Session& session_;
  std::optional<Json> message_;
  std::optional<Error> error_;
  TimePoint next_look_{};
};

}  // namespace sdr::cli

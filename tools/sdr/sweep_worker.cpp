#include "sdr/sweep_worker.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include "sdr/sweep_message.hpp"

namespace sdr::cli {
namespace {

// Between two looks at what has come.
constexpr Duration kLook = std::chrono::milliseconds(1);

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? std::string(name.data()) : "unknown host";
}

SweepMessage hello(const SweepIdentity& identity) {
  return {.kind = SweepMessage::Kind::Hello,
          .content = {{"program", identity.program},
                      {"spec_sha256", identity.digest},
                      {"host", host_name()},
                      {"pid", static_cast<std::uint64_t>(::getpid())}}};
}

}  // namespace

CellWorker::CellWorker(Compute compute) : compute_(std::move(compute)), thread_([this] { work(); }) {}

CellWorker::~CellWorker() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    wanted_.clear();
  }
  changed_.notify_all();
  thread_.join();
}

void CellWorker::start(std::uint64_t cell) {
  {
    const std::lock_guard lock(mutex_);
    wanted_.push_back(cell);
  }
  changed_.notify_all();
}

std::optional<Json> CellWorker::take(Duration patience) {
  std::unique_lock lock(mutex_);
  if (!changed_.wait_for(lock, patience, [this] { return !ready_.empty(); })) return std::nullopt;
  Json entry = std::move(ready_.front());
  ready_.pop_front();
  return entry;
}

void CellWorker::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stopping_ || !wanted_.empty(); });
    if (stopping_) return;
    const std::uint64_t cell = wanted_.front();
    wanted_.pop_front();
    lock.unlock();
    Json entry = compute_(cell);
    lock.lock();
    ready_.push_back(std::move(entry));
    changed_.notify_all();
  }
}

Duration beat_of(Duration patience) {
  return std::min<Duration>(std::chrono::seconds(1), patience / 4);
}

Result<bool> serve(SweepRanks& ranks, const SweepIdentity& identity, CellWorker& worker, Duration patience,
                   const std::function<TimePoint()>& now) {
  using Kind = SweepMessage::Kind;
  ranks.send(0, hello(identity).text());
  TimePoint heard = now();
  TimePoint said = heard;
  for (;;) {
    while (const std::optional<RankMessage> came = ranks.receive()) {
      const std::optional<SweepMessage> message = SweepMessage::parse(came->text);
      if (!message || came->from != 0) continue;
      heard = now();
      if (message->kind == Kind::Work && message->cell < identity.cells) worker.start(message->cell);
      if (message->kind == Kind::Finish) return message->content == true;
      if (message->kind == Kind::Refuse)
        return Error{ErrorCode::Mismatch,
                     message->content.is_string() ? message->content.get<std::string>() : "refused"};
    }
    if (now() - heard > patience) {
      return Error{ErrorCode::PeerUnreachable, fmt::format("rank {} gives up: nothing heard from rank 0 for {}",
                                                           ranks.rank(), to_string(patience))};
    }
    if (now() - said >= beat_of(patience)) {
      ranks.send(0, SweepMessage{.kind = Kind::Beat, .cell = 0, .content = nullptr}.text());
      said = now();
    }
    if (std::optional<Json> entry = worker.take(kLook)) {
      ranks.send(0, SweepMessage{.kind = Kind::Result, .cell = 0, .content = std::move(*entry)}.text());
    }
  }
}

}  // namespace sdr::cli

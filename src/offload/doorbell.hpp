// Doorbell: how the host programs slots of the device while packets fly.
//
// Model: a ring of commands in device memory, served in order by worker 0 between its batches. The host numbers its
// commands from 1; the number of the last one done is written into the host's window. Post opens a clean slot;
// Complete shuts it, waits until no worker is inside a batch and cleans it; Repost is both, under the next generation.
// End says that the message in an open slot has fewer packets than was posted.
//
// Threads: one host thread rings, worker 0 serves.
// Invariant: after `done` of a Complete no packet of that use touches bitmap or user immediate, however late it comes.
//
// Freestanding: included by the device program.
#pragma once

#include <atomic>
#include <cstdint>

#include "offload/orders.hpp"

namespace sdr::offload {

enum class Operation : std::uint32_t { Post = 1, Complete = 2, Repost = 3, End = 4 };

struct Command {
  Operation operation;
  std::uint32_t slot;
  std::uint32_t generation;  // of Post and Repost
  std::uint32_t packets;     // likewise, and of End
};

inline constexpr std::uint32_t kCommands = 256;  // in flight, a power of two

struct alignas(64) DoorbellRecord {
  std::atomic<std::uint64_t> rung;  // commands that lie ready
};
struct alignas(64) DoneRecord {
  std::atomic<std::uint64_t> done;  // commands carried out; in the host's window
};

template <typename O = Orders>
class Doorbell {
 public:
  Doorbell(Command* commands, DoorbellRecord* bell, DoneRecord* done) : commands_(commands), bell_(bell), done_(done) {}

  // The command's number, or 0: too many are in flight, nothing has happened.
  std::uint64_t ring(const Command& command) {
    if (rung_ - done() == kCommands) return 0;
    commands_[rung_ % kCommands] = command;
    bell_->rung.store(++rung_, O::doorbell_ring);
    return rung_;
  }
  [[nodiscard]] std::uint64_t done() const { return done_->done.load(O::command_seen_done); }

  // The device's side: carries out what lies ready, at most one command a call. False when there was none.
  template <typename Execute>
  bool serve(const Execute& execute) {
    if (bell_->rung.load(O::doorbell_see) == rung_) return false;
    execute(commands_[rung_ % kCommands]);
    done_->done.store(++rung_, O::command_done);
    return true;
  }

 private:
  Command* commands_;
  DoorbellRecord* bell_;
  DoneRecord* done_;
  std::uint64_t rung_ = 0;  // by the host; served, on the device
};

}  // namespace sdr::offload

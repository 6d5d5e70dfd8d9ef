// Traffic: a row of Writes from one end of a ConnectionPair to the other, checked byte for byte.
//
// Every receive buffer lies between canaries, at an address of its own, and is filled with the canary's byte: what the
// Write does not reach must stay so. Writes and receives are posted in windows of their own; completions are counted,
// each exactly once. A message in problem() says what went wrong first.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tests/reliability/pair.hpp"

namespace sdr::testing {

struct Message {
  std::uint64_t size = 0;
  std::uint64_t capacity = 0;  // of the receive
  std::optional<std::uint32_t> immediate;
  std::uint64_t source = 0;  // offset in the pool of random bytes: any alignment
  std::uint64_t shift = 0;   // of the receive buffer from an aligned address
};

class Traffic {
 public:
  Traffic(ConnectionPair& pair, Site from, std::vector<Message> messages, std::size_t writes_ahead = 8,
          std::size_t receives_ahead = 8)
      : pair_(pair),
        from_(from),
        messages_(std::move(messages)),
        writes_ahead_(writes_ahead),
        receives_ahead_(receives_ahead),
        writer_(pair.at(from)),
        reader_(pair.at(other(from))) {
    std::uint64_t reach = 0;
    for (const Message& message : messages_) reach = std::max(reach, message.source + message.size);
    pool_ = random_bytes(reach, 0x5EED + messages_.size());
  }

  // Posts what its windows allow and takes completions. True when all is done, or something is wrong.
  bool step() {
    if (!problem_.empty()) return true;
    while (receives_posted_ < messages_.size() && buffers_.size() < receives_ahead_ && post_receive()) {
    }
    while (writes_posted_ < messages_.size() && writes_posted_ - writes_done_ < writes_ahead_ && post_write()) {
    }
    while (auto done = writer_.poll_write()) take(*done);
    while (auto done = reader_.poll_receive()) take(*done);
    return !problem_.empty() || (writes_done_ == messages_.size() && receives_done_ == messages_.size());
  }

  [[nodiscard]] const std::string& problem() const { return problem_; }
  [[nodiscard]] std::size_t writes_done() const { return writes_done_; }
  [[nodiscard]] std::size_t receives_done() const { return receives_done_; }
  [[nodiscard]] std::string progress() const {
    return std::to_string(writes_done_) + " Writes and " + std::to_string(receives_done_) + " receives of " +
           std::to_string(messages_.size()) + " done";
  }

 private:
  static constexpr std::byte kCanary{0xA5};
  static constexpr std::size_t kMargin = 64;
  struct Buffer {
    std::vector<std::byte> memory;
    std::size_t begin = 0;
  };

  bool wrong(std::string what) {
    if (problem_.empty()) problem_ = std::move(what);
    return false;
  }
  bool post_receive() {
    const Message& message = messages_[receives_posted_];
    Buffer buffer{std::vector<std::byte>(message.capacity + 2 * kMargin + message.shift, kCanary),
                  kMargin + message.shift};
    const auto posted =
        pair_.at(other(from_)).post_receive(std::span(buffer.memory).subspan(buffer.begin, message.capacity));
    if (!posted) return posted.error().code == ErrorCode::Retry ? false : wrong(posted.error().message);
    receive_numbers_.emplace(posted->number, receives_posted_);
    buffers_.emplace(receives_posted_++, std::move(buffer));
    return true;
  }
  bool post_write() {
    const Message& message = messages_[writes_posted_];
    const auto posted =
        pair_.at(from_).post_write(std::span(pool_).subspan(message.source, message.size), message.immediate);
    if (!posted) return posted.error().code == ErrorCode::Retry ? false : wrong(posted.error().message);
    write_numbers_.emplace(posted->number, writes_posted_++);
    return true;
  }
  void take(const WriteCompletion& done) {
    const auto which = write_numbers_.find(done.handle.number);
    if (which == write_numbers_.end()) return void(wrong("a Write completed that was not under way"));
    const Message& message = messages_[which->second];
    if (done.error) wrong("Write " + std::to_string(which->second) + ": " + done.error->message);
    if (done.length != message.size) wrong("a Write completed with another length");
    write_numbers_.erase(which);
    ++writes_done_;
  }
  void take(const ReceiveCompletion& done) {
    const auto which = receive_numbers_.find(done.handle.number);
    if (which == receive_numbers_.end()) return void(wrong("a receive completed that was not posted"));
    const Message& message = messages_[which->second];
    const std::string name = "receive " + std::to_string(which->second) + " (" + std::to_string(message.size) + " of " +
                             std::to_string(message.capacity) + " bytes): ";
    if (done.error) wrong(name + done.error->message);
    if (done.length != message.size) wrong(name + "completed with " + std::to_string(done.length) + " bytes");
    if (done.immediate != message.immediate) wrong(name + "brought another immediate");
    const auto buffer = buffers_.find(which->second);
    check(name, message, buffer->second);
    buffers_.erase(buffer);
    receive_numbers_.erase(which);
    ++receives_done_;
  }
  void check(const std::string& name, const Message& message, const Buffer& buffer) {
    const auto at = buffer.memory.begin() + static_cast<std::ptrdiff_t>(buffer.begin);
    const auto end = at + static_cast<std::ptrdiff_t>(message.size);
    const auto source = pool_.begin() + static_cast<std::ptrdiff_t>(message.source);
    const auto differs = std::mismatch(at, end, source).first;
    if (differs != end) wrong(name + "wrong from byte " + std::to_string(differs - at) + " on");
    const auto intact = [](std::byte b) { return b == kCanary; };
    if (!std::all_of(end, buffer.memory.end(), intact)) wrong(name + "bytes behind the Write were touched");
    if (!std::all_of(buffer.memory.begin(), at, intact)) wrong(name + "bytes before the buffer were touched");
  }

  ConnectionPair& pair_;
  Site from_;
  std::vector<Message> messages_;
  std::size_t writes_ahead_;
  std::size_t receives_ahead_;
  Connection& writer_;
  Connection& reader_;
  std::vector<std::byte> pool_;
  std::map<std::size_t, Buffer> buffers_;
  std::map<std::uint64_t, std::size_t> write_numbers_;
  std::map<std::uint64_t, std::size_t> receive_numbers_;
  std::size_t writes_posted_ = 0;
  std::size_t receives_posted_ = 0;
  std::size_t writes_done_ = 0;
  std::size_t receives_done_ = 0;
  std::string problem_;
};

}  // namespace sdr::testing

#include "sdr/transfer_loop.hpp"

#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace sdr::cli {

using namespace std::chrono_literals;

namespace {

// How often the session and the interrupt are looked at while packets keep the thread awake; each look is a system
// call.
constexpr Duration kLook = 1ms;
constexpr Duration kLongestNap = 50ms;
constexpr Duration kSpeakEvery = 250ms;
constexpr Duration kParting = 500ms;

}  // namespace

TransferLoop::TransferLoop(Session& session, Connection& connection, TransferProgress& progress,
                           const Interrupt& interrupt, Duration timeout)
    : session_(session), connection_(connection), progress_(progress), interrupt_(interrupt), timeout_(timeout) {
  driver_.add(connection_);
  driver_.watch(session_.fd());
  driver_.watch(worker_.descriptor());
  driver_.watch(interrupt_.fd());
}

TransferLoop::~TransferLoop() {
  driver_.remove(connection_);
}

void TransferLoop::say(const Json& message) {
  if (failure_) return;
  if (const Result<void> sent = session_.send(message); !sent) {
    fail({sent.error().code, fmt::format("{}: {}", session_.peer().to_string(), sent.error().message)});
  }
}

void TransferLoop::fail(Error error) {
  if (!failure_) failure_ = std::move(error);
}

Result<void> TransferLoop::listen(TransferSide& side, TimePoint now) {
  // The peer may close as soon as there is nothing left to say.
  while (!side.finished()) {
    const Result<std::optional<Json>> message = session_.poll();
    if (!message) return message.error();
    if (!*message) return {};
    heard_ = now;
    Result<void> taken = side.hear(**message);
    if (!taken) return taken;
  }
  return {};
}

Result<void> TransferLoop::attend(TransferSide& side, TimePoint now) {
  // Before its silence is counted: this thread may have been away.
  if (Result<void> heard = listen(side, now); !heard) return heard;
  if (side.finished()) return {};
  if (const char* signal = Interrupt::caught())
    return Error{ErrorCode::System, fmt::format("interrupted by {}", signal)};
  if (now - heard_ >= timeout_) {
    return Error{ErrorCode::PeerUnreachable,
                 fmt::format("{} said nothing for {}", session_.peer().to_string(), to_string(timeout_))};
  }
  const TransferSample sample = side.sample();
  if (now >= speak_) {
    speak_ = now + std::min<Duration>(kSpeakEvery, timeout_ / 4);
    say(side.alive());
  }
  progress_.show(now, sample);
  return {};
}

Result<void> TransferLoop::run(TransferSide& side) {
  Result<void> result = turn(side);
  worker_.stop();
  side.sample();
  return result;
}

Result<void> TransferLoop::turn(TransferSide& side) {
  heard_ = Driver::now();
  TimePoint look{};
  for (;;) {
    worker_.collect();
    if (side.finished()) break;
    const TimePoint now = Driver::now();
    if (now >= look) {
      look = now + kLook;
      if (Result<void> attended = attend(side, now); !attended) return attended;
      if (side.finished()) break;
    }
    if (!failure_) {
      if (Result<void> advanced = side.advance(); !advanced) fail(advanced.error());
    }
    if (!failure_ && connection_.failure()) fail(*connection_.failure());
    if (failure_) {
      // The peer may have said why before it went away.
      if (Result<void> last = listen(side, now); !last && last.error().code == ErrorCode::Mismatch) return last;
      return *failure_;
    }
    driver_.run_once(kLongestNap);
  }
  return failure_ ? Result<void>(*failure_) : Result<void>();
}

void end_session(Session& session, const std::string& error) {
  if (!error.empty()) session.send_error(error);
  shutdown(session.fd(), SHUT_WR);
  const TimePoint deadline = Driver::now() + kParting;
  while (Driver::now() < deadline) {
    const Result<Json> rest = session.receive(deadline - Driver::now());
    if (!rest && rest.error().code != ErrorCode::Mismatch) return;
  }
}

}  // namespace sdr::cli

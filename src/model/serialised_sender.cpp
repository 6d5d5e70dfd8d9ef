#include "model/serialised_sender.hpp"

#include <algorithm>
#include <cmath>
#include <deque>

namespace sdr::model {
namespace {

class Wire {
 public:
  Wire(std::uint64_t chunks, double injection, double timeout)
      : unsent_(chunks), injection_(injection), timeout_(timeout) {}

  [[nodiscard]] bool done() const { return unsent_ == 0 && expiries_.empty(); }
  [[nodiscard]] double now() const { return now_; }

  // Sends up to `chunks` that all arrive, and says how many; not 0 unless done.
  std::uint64_t send(std::uint64_t chunks) {
    if (repeat_due()) {
      expiries_.pop_front();
      now_ += injection_;
      return 1;
    }
    std::uint64_t count = std::min(chunks, unsent_);
    if (!expiries_.empty()) {
      const double until = std::ceil((expiries_.front() - now_) / injection_);
      if (until < static_cast<double>(count)) count = static_cast<std::uint64_t>(until);
    }
    unsent_ -= count;
    now_ += static_cast<double>(count) * injection_;
    return count;
  }

  void lose_one() {
    if (send(1) == 1) expiries_.push_back(now_ + timeout_);
  }

 private:
  // With nothing else to send, waits for the first expiry.
  bool repeat_due() {
    if (expiries_.empty()) return false;
    if (unsent_ == 0) now_ = std::max(now_, expiries_.front());
    return expiries_.front() <= now_;
  }

  std::uint64_t unsent_;
  double injection_;
  double timeout_;
  double now_ = 0;
  std::deque<double> expiries_;  // of lost chunks, in the order they were sent in
};

}  // namespace

double serialised_injection(std::uint64_t chunks, double injection, double timeout, const ChunkLoss& loss,
                            Draws& draws) {
  Wire wire(chunks, injection, timeout);
  LossRuns runs(loss, draws);
  while (!wire.done()) {
    LossRuns::Run run = runs.next();
    while (run.arrive > 0 && !wire.done()) run.arrive -= wire.send(run.arrive);
    for (; run.lost > 0 && !wire.done(); --run.lost) wire.lose_one();
  }
  return wire.now();
}

}  // namespace sdr::model

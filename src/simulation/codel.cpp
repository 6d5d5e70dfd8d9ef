#include "simulation/codel.hpp"

#include <cmath>

namespace sdr::simulation {

Codel::Verdict Codel::dequeued(Duration sojourn, std::uint64_t backlog, TimePoint now) {
  const bool ok = ok_to_signal(sojourn, backlog, now);
  if (dropping_) {
    if (!ok) {
      dropping_ = false;
      return Verdict::Send;
    }
    if (signalled_) next_ = control_law(next_);
    signalled_ = now >= next_;
    if (!signalled_) return Verdict::Send;
    ++count_;
    return Verdict::Signal;
  }
  if (!ok) return Verdict::Send;
  dropping_ = true;
  // Back soon after the last time: go on near the rate that controlled the queue then.
  const std::uint32_t delta = count_ - last_count_;
  count_ = delta > 1 && now - next_ < 16 * interval_ ? delta : 1;
  next_ = control_law(now);
  last_count_ = count_;
  signalled_ = false;
  return Verdict::Signal;
}

bool Codel::ok_to_signal(Duration sojourn, std::uint64_t backlog, TimePoint now) {
  if (sojourn < target_ || backlog <= mtu_) {
    first_above_ = TimePoint{};
    return false;
  }
  if (first_above_ == TimePoint{}) {
    first_above_ = now + interval_;
    return false;
  }
  return now >= first_above_;
}

TimePoint Codel::control_law(TimePoint from) const {
  return from + Duration(static_cast<std::int64_t>(static_cast<double>(interval_.count()) / std::sqrt(count_)));
}

}  // namespace sdr::simulation

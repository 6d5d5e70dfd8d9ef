#include "model/erasure_code.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace sdr::model {
namespace {

constexpr unsigned kWidestMask = 12;

// A chunk's fate given that of the neighbour before it.
struct Neighbours {
  double lost_after_lost;
  double lost_after_arrival;
  double lost;  // nothing known

  Neighbours(const ChunkLoss& loss, std::uint64_t spacing)
      : lost_after_lost(loss.lost_after(true, static_cast<double>(spacing))),
        lost_after_arrival(loss.lost_after(false, static_cast<double>(spacing))),
        lost(loss.p()) {}
};

// Walks the shards of a submessage; a state is what matters of the losses so far, beside the fate of the last shard.
class ShardWalk {
 public:
  ShardWalk(std::size_t states, const Neighbours& neighbours)
      : neighbours_(neighbours), arrived_(states), lost_(states), next_arrived_(states), next_lost_(states) {
    arrived_[0] = 1;
  }

  // `after_loss(state)` is the state after one more loss, or one past the last: the submessage fails.
  template <typename AfterLoss>
  void step(bool starts_sequence, AfterLoss after_loss) {
    std::fill(next_arrived_.begin(), next_arrived_.end(), 0.0);
    std::fill(next_lost_.begin(), next_lost_.end(), 0.0);
    for (std::size_t state = 0; state < arrived_.size(); ++state) {
      const double all = arrived_[state] + lost_[state];
      if (all == 0) continue;
      const double lost = starts_sequence ? all * neighbours_.lost
                                          : arrived_[state] * neighbours_.lost_after_arrival +
                                                lost_[state] * neighbours_.lost_after_lost;
      next_arrived_[state] += all - lost;
      const std::size_t after = after_loss(state);
      (after < lost_.size() ? next_lost_[after] : failed_) += lost;
    }
    arrived_.swap(next_arrived_);
    lost_.swap(next_lost_);
  }

  [[nodiscard]] double failed() const { return failed_; }

 private:
  Neighbours neighbours_;
  std::vector<double> arrived_;
  std::vector<double> lost_;
  std::vector<double> next_arrived_;
  std::vector<double> next_lost_;
  double failed_ = 0;
};

// More than `bearable` losses; the state is their number.
double too_many_lost(unsigned k, unsigned m, unsigned bearable, const Neighbours& neighbours) {
  ShardWalk walk(bearable + 1, neighbours);
  for (unsigned i = 0; i < k + m; ++i) {
    walk.step(i == 0 || i == k, [](std::size_t state) { return state + 1; });
  }
  return walk.failed();
}

// Two losses in one XOR group; the state is the set of groups with one.
double group_lost_twice(unsigned k, unsigned m, const Neighbours& neighbours) {
  const std::size_t states = std::size_t{1} << m;
  ShardWalk walk(states, neighbours);
  for (unsigned i = 0; i < k + m; ++i) {
    const std::size_t group = std::size_t{1} << ((i < k ? i : i - k) % m);
    walk.step(i == 0 || i == k, [=](std::size_t state) { return (state & group) != 0 ? states : state | group; });
  }
  return walk.failed();
}

// Data chunks of XOR group g: those j with j mod m = g.
unsigned group_size(unsigned k, unsigned m, unsigned g) {
  return (k - g + m - 1) / m;
}

}  // namespace

double mds_failure(unsigned k, unsigned m, double p) {
  return binomial_tail(k + m, p, m);
}

double xor_failure(unsigned k, unsigned m, double p) {
  double log_success = 0;
  for (unsigned g = 0; g < m; ++g) log_success += std::log1p(-binomial_tail(group_size(k, m, g) + 1, p, 1));
  return -std::expm1(log_success);
}

double submessage_failure(SchemeKind code, unsigned k, unsigned m, const ChunkLoss& loss, std::uint64_t spacing) {
  const bool mds = code == SchemeKind::EcRs;
  if (loss.independent()) return mds ? mds_failure(k, m, loss.p()) : xor_failure(k, m, loss.p());
  const Neighbours neighbours(loss, spacing);
  if (mds) return too_many_lost(k, m, m, neighbours);
  if (m <= kWidestMask) return group_lost_twice(k, m, neighbours);
  const Neighbours of_a_group(loss, spacing * m);
  double log_success = 0;
  for (unsigned g = 0; g < m; ++g) {
    log_success += std::log1p(-too_many_lost(group_size(k, m, g), 1, 1, of_a_group));
  }
  return -std::expm1(log_success);
}

CodedMessage::CodedMessage(std::uint64_t message_chunks, const SchemeSpec& scheme)
    : chunks(message_chunks),
      whole(message_chunks / scheme.data_chunks),
      k(scheme.data_chunks),
      m(scheme.parity_chunks),
      last_k(static_cast<std::uint32_t>(message_chunks % scheme.data_chunks)) {
  last_m = (last_k * m + k - 1) / k;
}

SubmessageFailure::SubmessageFailure(const CodedMessage& message, const SchemeSpec& scheme, const ChunkLoss& loss) {
  const std::uint64_t spacing = scheme.interleaved ? message.submessages() : 1;
  if (message.whole > 0) whole = submessage_failure(scheme.kind, message.k, message.m, loss, spacing);
  if (message.last_k > 0) last = submessage_failure(scheme.kind, message.last_k, message.last_m, loss, spacing);
  if (scheme.interleaved && !loss.independent() && message.whole > 1) {
    const double losses = scheme.kind == SchemeKind::EcXor ? 2 : message.m + 1;
    run = std::min(-1 / std::expm1(losses * std::log1p(-loss.run_ends())), static_cast<double>(message.whole));
  }
}

double fallback_chance(const CodedMessage& message, const SubmessageFailure& failure) {
  const double log_none = static_cast<double>(message.whole) * std::log1p(-failure.run_begins());
  return -std::expm1(log_none + std::log1p(-failure.last));
}

}  // namespace sdr::model

// SelectiveRepeat: when the last of M chunks has been sent for good, as a distribution (paper section 4.2.1).
//
// Chunk i (1 to M) is injected by i T_inj and, should it be lost, again O = RTO + T_inj later, as often as it takes:
//
//   X_i = i T_inj + O (Y_i - 1)     Y_i geometric, success 1 - p     T_SR = max X_i + RTT
//   P(max X_i <= q) = prod_i (1 - p^(floor((q - i T_inj) / O) + 1))    for q >= M T_inj, else 0
//
// Chunks with the same exponent form at most M T_inj / O + 2 groups, and a group is one logarithm: that is why 2^29
// chunks cost microseconds. In runs of losses (loss.hpp) a group's p^n becomes newly_lost(n).
//
// Exact for the paper's sender, whose retransmissions take no time on the wire of others; for a real one it is so while
// M T_inj <= RTO, else a lower bound.
//
// Seconds, from the start of injection, without the RTT of the acknowledgement. Immutable; any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "model/loss.hpp"

namespace sdr::model {

// log(1 - newly_lost(n)) and what a first chunk differs by, for n = 1, 2, ... until M chunks no longer feel it. Shared
// by all SelectiveRepeats of a path.
class LossDepths {
 public:
  LossDepths(const ChunkLoss& loss, std::uint64_t most_chunks);

  [[nodiscard]] std::size_t count() const { return spared_.size(); }
  // Of a chunk behind others: the log of the chance that its first n transmissions are not all lost.
  [[nodiscard]] double log_spared(std::size_t n) const { return n <= spared_.size() ? spared_[n - 1] : 0; }
  [[nodiscard]] double log_first(std::size_t n) const { return n <= first_.size() ? first_[n - 1] : 0; }

 private:
  std::vector<double> spared_;
  std::vector<double> first_;
};

class SelectiveRepeat {
 public:
  // `period` is O. No chunks: it is over at 0.
  SelectiveRepeat(std::uint64_t chunks, double injection, double period, std::shared_ptr<const LossDepths> depths);

  // P(max X_i > q), to full relative precision also where it is tiny.
  [[nodiscard]] double survival(double q) const;
  // E[max X_i], the integral of the survival. By enumeration of the steps where they are few; otherwise the integral is
  // exact for the distribution whose steps of T_inj are replaced by ramps around them.
  [[nodiscard]] double mean() const;
  [[nodiscard]] double earliest() const { return chunks_ * injection_; }
  [[nodiscard]] double period() const { return period_; }

 private:
  template <typename ChunksDue>
  [[nodiscard]] double log_done(double q, ChunksDue due) const;
  [[nodiscard]] double log_done_stepwise(double q) const;
  [[nodiscard]] double log_done_ramped(double q) const;
  [[nodiscard]] double mean_of_steps() const;
  [[nodiscard]] double mean_of_ramps() const;
  // Where log_done_ramped() passes `level` (below 0), to a thousandth of a period.
  [[nodiscard]] double where(double level) const;

  double chunks_;
  double injection_;
  double period_;
  std::shared_ptr<const LossDepths> depths_;
};

}  // namespace sdr::model

// ChunkLoss: how chunks are lost on a path: each by itself, or in runs.
//
// Runs follow Gilbert (1960) and Elliott (1963) with the loss in the bad state 1 and in the good state 0, the same
// definition as the simulated link: for a mean loss p and a mean run of L, a bad state ends with r = 1/L and begins
// with q = p r / (1 - p). Independent losses are r = 1 - p, q = p; no shorter runs are modelled.
//
// Transmissions of one chunk are a timeout apart, far longer than a run, and are taken as independent of one another:
// the n-th transmissions of all chunks are a chain of their own.
//
// A plain value. Source: paper section 4.2 (independent losses, chunk loss from packet loss).
#pragma once

#include <cstdint>
#include <utility>

#include "model/draws.hpp"

namespace sdr::model {

class ChunkLoss {
 public:
  ChunkLoss() = default;
  // `loss` in 0 to below 1 and a run of `burst`, of chunks.
  ChunkLoss(double loss, double burst);
  // Of chunks of `packets` packets that are lost with `loss` and in runs of `burst`; a chunk is lost with any of them.
  // Independent: 1 - (1 - p)^N (paper section 4.2). Runs: 1 - (1 - p)(1 - q)^(N - 1), and the chunks' r from the exact
  // chance that two neighbours are both lost.
  static ChunkLoss of_packets(double loss, double burst, std::uint64_t packets);

  [[nodiscard]] double p() const { return p_; }
  [[nodiscard]] double run_begins() const { return begins_; }  // q
  [[nodiscard]] double run_ends() const { return ends_; }      // r
  [[nodiscard]] bool independent() const { return independent_; }

  // The chance that a chunk's first n transmissions are all lost: p^n.
  [[nodiscard]] double all_lost(double n) const;
  // The same, given that it is not so for the chunk before. The chance that none of c chunks in a row has its first n
  // transmissions lost is then (1 - all_lost(n)) (1 - newly_lost(n))^(c - 1). Independent: p^n again. In runs: n chains
  // are bad together with p^n, and stay so with (1 - r)^n, so that a run of n-fold losses begins with
  // p^n (1 - (1 - r)^n) / (1 - p^n): exact for n = 1, for more up to terms of the order of q.
  [[nodiscard]] double newly_lost(double n) const;
  // The chance of a loss `distance` chunks behind a chunk whose fate is known.
  [[nodiscard]] double lost_after(bool lost, double distance) const;

 private:
  double p_ = 0;
  double begins_ = 0;
  double ends_ = 1;
  bool independent_ = true;
};

// The losses among chunks in the order of the wire: so many arrive, so many are lost, and so on. Costs as much as there
// are runs of losses. The chain starts in its stationary state.
class LossRuns {
 public:
  LossRuns(const ChunkLoss& loss, Draws& draws);

  struct Run {
    std::uint64_t arrive = 0;
    std::uint64_t lost = 0;  // behind them
  };
  Run next();

 private:
  Draws& draws_;
  double log_arrives_;  // log of the chance that a chunk behind one that arrived arrives as well
  double log_lost_;     // and of a loss behind a loss
  bool starts_lost_;
};

// P(more than `above` of n are lost), n and above small; each is lost with p.
double binomial_tail(unsigned n, double p, unsigned above);

}  // namespace sdr::model

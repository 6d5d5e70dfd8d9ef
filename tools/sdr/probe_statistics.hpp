// ProbeStatistics: what the trials of one payload size come to: the losses of each flow and trial as the five numbers
// of a box plot, all of them together with a confidence interval, runs of losses, reordering and rates.
//
// The interval is Wilson's (1927) at 95 % for as many independent packets as those sent are worth: losses in runs vary
// more, by LossRuns::dispersion(), so that n packets are worth n / dispersion.
//
// Percentiles are by nearest rank, so that each is a value that was measured. No I/O; one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sdr/probe_analysis.hpp"

namespace sdr::cli {

// min, p25, p50, p75, max.
struct FiveNumbers {
  double min = 0;
  double p25 = 0;
  double p50 = 0;
  double p75 = 0;
  double max = 0;

  // All zero without values.
  static FiveNumbers of(std::vector<double> values);
};

// Of a sorted list that is not empty, by nearest rank.
double nearest_rank(const std::vector<double>& sorted, double share);

struct Interval {
  double low = 0;
  double high = 1;
};
// For a share `hits / n` that varies `dispersion` times as much as with independent draws.
Interval wilson(std::uint64_t hits, std::uint64_t n, double dispersion);

class ProbeStatistics {
 public:
  explicit ProbeStatistics(std::uint32_t payload) : payload_(payload) {}

  // `sent_at` is the rate at which the sender sent, payload bits.
  void add(const TrialOutcome& trial, Bandwidth sent_at);

  [[nodiscard]] std::uint32_t payload() const { return payload_; }
  [[nodiscard]] const FlowOutcome& total() const { return total_; }
  [[nodiscard]] double loss() const;
  [[nodiscard]] Interval loss_interval() const;
  // Over flows and trials.
  [[nodiscard]] FiveNumbers flow_losses() const { return FiveNumbers::of(flow_losses_); }
  [[nodiscard]] std::size_t samples() const { return flow_losses_.size(); }
  [[nodiscard]] std::size_t samples_without_loss() const;
  // The fewest packets that a sample is made of.
  [[nodiscard]] std::uint64_t packets_of_sample() const { return packets_of_sample_; }

  [[nodiscard]] const LossRuns& in_order() const { return in_order_; }
  [[nodiscard]] const LossRuns& in_flow() const { return in_flow_; }
  // What a message meets: the longer of the two means (docs/probe.md says why).
  [[nodiscard]] double mean_burst() const;
  // Of the packets sent.
  [[nodiscard]] double reorder() const;
  [[nodiscard]] FiveNumbers received_rate() const { return FiveNumbers::of(received_); }
  [[nodiscard]] FiveNumbers sent_rate() const { return FiveNumbers::of(sent_); }
  [[nodiscard]] const std::vector<double>& received_rates() const { return received_; }
  [[nodiscard]] const std::vector<double>& trial_losses() const { return trial_losses_; }

 private:
  std::uint32_t payload_;
  FlowOutcome total_;
  LossRuns in_order_;
  LossRuns in_flow_;
  std::uint64_t packets_of_sample_ = 0;
  std::vector<double> flow_losses_;
  std::vector<double> trial_losses_;
  std::vector<double> received_;
  std::vector<double> sent_;
};

}  // namespace sdr::cli

// What a trial of `sdr probe` found, from what each flow saw: the runs of losses, and the numbers that travel from the
// receiver to the sender.
//
// A run of losses is counted twice: in the order in which packets of all flows were sent, which is how a link that they
// share loses them, and in each flow by itself, which is how paths that do not know each other do. A packet that the
// host dropped came over the path, and ends a run. Losses in the middle of such drops are no known run.
//
// No I/O, no clock; plain values.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "sdr/probe_order.hpp"
#include "sdr/probe_record.hpp"
#include "sdr/report.hpp"
#include "sdr/result.hpp"
#include "sdr/units.hpp"

namespace sdr::cli {

class LossRuns {
 public:
  // Lengths 1, 2, 3 to 4, 5 to 8, and so on; the last bin holds what is longer.
  static constexpr std::size_t kBins = 28;

  void add(std::uint64_t length);
  LossRuns& operator+=(const LossRuns& other);

  [[nodiscard]] std::uint64_t runs() const { return runs_; }
  [[nodiscard]] std::uint64_t lost() const { return lost_; }
  [[nodiscard]] std::uint64_t longest() const { return longest_; }
  [[nodiscard]] const std::array<std::uint64_t, kBins>& bins() const { return bins_; }
  static std::uint64_t bin_from(std::size_t bin) { return bin == 0 ? 1 : (std::uint64_t{1} << (bin - 1)) + 1; }
  static std::uint64_t bin_to(std::size_t bin) { return std::uint64_t{1} << bin; }
  // 1 without losses.
  [[nodiscard]] double mean() const;
  // How much the count of lost packets varies beyond that of independent losses: the mean of the squared lengths over
  // the mean length (a compound Poisson process). 1 without losses.
  [[nodiscard]] double dispersion() const;

  [[nodiscard]] Json to_json() const;
  static Result<LossRuns> from_json(const Json& json);
  friend bool operator==(const LossRuns&, const LossRuns&) = default;

 private:
  std::uint64_t runs_ = 0;
  std::uint64_t lost_ = 0;
  std::uint64_t longest_ = 0;
  double squares_ = 0;
  std::array<std::uint64_t, kBins> bins_{};
};

struct TrialOutcome {
  std::vector<FlowOutcome> flows;
  LossRuns in_order;
  LossRuns in_flow;
  Duration elapsed{0};  // from the first arrival to the last

  [[nodiscard]] FlowOutcome total() const;
  // Payload bits a second between the first arrival and the last; zero when there were not two.
  [[nodiscard]] Bandwidth rate(std::uint32_t payload) const;

  [[nodiscard]] Json to_json() const;
  // Protocol error when it is not what a receiver of `expected_flows` could say.
  static Result<TrialOutcome> from_json(const Json& json, std::size_t expected_flows);
};

// Judges the first `total` packets of `order`; `records` has one for each flow.
TrialOutcome analyse(std::span<FlowRecord> records, const ProbeOrder& order, std::uint64_t total, Duration elapsed);

}  // namespace sdr::cli

// PerfReportCard: what a perf run amounts to, as JSON and as a table for a person.
//
// ideal = payload bits / rate + RTT: what a path without losses and without headers would take. The rate is --rate, or
// the link's; without either there is no ideal, and no slowdown. The RTT is that of the emulated link, or the smallest
// that was measured.
#pragma once

#include <string>
#include <vector>

#include "sdr/completion_times.hpp"
#include "sdr/path.hpp"
#include "sdr/perf_plan.hpp"
#include "sdr/perf_run.hpp"
#include "sdr/report.hpp"

namespace sdr::cli {

class PerfReportCard {
 public:
  PerfReportCard(const Path& path, const PerfPlan& plan, SenderResult sent, const ReceiverResult& received);

  [[nodiscard]] Json to_json() const;
  void print() const;
  // Every Write arrived as it was sent; true as well when nobody was to look.
  [[nodiscard]] bool good() const;
  // Why the offload devices of the two ends were left, if they were.
  [[nodiscard]] std::vector<std::string> offload_failures() const;
  // Why not, in one line.
  [[nodiscard]] std::string complaint() const;

 private:
  [[nodiscard]] double ideal_ms() const;  // NaN: not known
  [[nodiscard]] std::uint64_t packets_lost() const;
  [[nodiscard]] double per_packet(std::uint64_t count, std::uint64_t packets) const;

  const Path& path_;
  const PerfPlan& plan_;
  SenderResult sent_;
  ReceiverResult received_;
  CompletionTimes times_;
  double seconds_ = 0;
};

}  // namespace sdr::cli

// ProbeReport: what a run of `sdr probe` found, as a table for a person, as JSON, and as a link profile for `sdr plan`.
//
// Threads: one.
#pragma once

#include <string>
#include <vector>

#include "sdr/link_profile.hpp"
#include "sdr/probe_plan.hpp"
#include "sdr/probe_run.hpp"
#include "sdr/report.hpp"
#include "sdr/result.hpp"

namespace sdr::cli {

class ProbeReport {
 public:
  ProbeReport(const ProbePlan& plan, std::string peer, const ProbeResult& result)
      : plan_(plan), peer_(std::move(peer)), result_(result) {}

  void print() const;
  [[nodiscard]] Json to_json() const;
  // PeerUnreachable when so little arrived that there is no rate to tell.
  [[nodiscard]] Result<LinkProfile> profile() const;
  // Sentences on what may make the numbers other than the path's.
  [[nodiscard]] std::vector<std::string> notes() const;

 private:
  // Median of the trials; the highest of the payload sizes.
  [[nodiscard]] Bandwidth best_rate() const;

  const ProbePlan& plan_;
  std::string peer_;
  const ProbeResult& result_;
};

}  // namespace sdr::cli

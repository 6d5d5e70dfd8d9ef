// SharedResult: what became of the flows of a SharedTrial, in the end and over time.
//
// Rates are of bytes on the wire that have come out of the path, headers included, whatever their fate behind it;
// goodput is of payload that the receiving application has. RTTs are the path's truth for each packet: what it took
// one way, queue included, and the way back without one.
//
// Plain values. Times are from the start of the run; a share of an interval counts as such.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "experiment/delay_histogram.hpp"
#include "sdr/path_rate.hpp"
#include "sdr/result.hpp"
#include "sdr/units.hpp"
#include "simulation/path_model.hpp"
#include "simulation/path_spec.hpp"
#include "simulation/shared_way.hpp"

namespace sdr::experiment {

struct FlowResult {
  // One entry an interval.
  struct Series {
    std::vector<double> wire_bytes;       // that arrived in it
    std::vector<double> payload_bytes;    // that the application had at its end, in all
    std::vector<double> rtt_sum_ms;       // of the packets that arrived in it
    std::vector<double> packets;          // that is how many
    std::vector<double> pace;             // bit/s, as the sender has it at the end of the interval; 0: none
    std::vector<double> window;           // bytes; 0: none
    std::vector<std::string_view> state;  // of the sender's controller
  };

  std::string name;
  Duration start{0};
  Duration stop{0};  // or the end of the run, or when it was done
  Duration base_rtt{0};
  std::uint64_t payload_bytes = 0;
  std::optional<Duration> completed;  // from its start; of one with a size
  std::optional<Error> error;         // the connection failed
  simulation::SharedWay::FlowCounts data;
  std::uint64_t retransmitted = 0;  // packets or chunks
  std::uint64_t timeouts = 0;       // of TCP
  RateStatus rate;                  // of sdr, at the end
  DelayHistogram rtt;
  Series series;
};

struct SharedResult {
  simulation::PathSpec path;
  Duration duration{0};
  Duration interval{0};
  Duration sample_interval{0};
  std::vector<FlowResult> flows;
  std::vector<double> queue_bytes;  // one entry a sample
  simulation::PathCounts data;      // of the way there
  std::uint64_t packets = 0;        // both ways

  // Bytes per second.
  [[nodiscard]] double rate(std::size_t flow, Duration from, Duration to) const;
  [[nodiscard]] double goodput(std::size_t flow, Duration from, Duration to) const;
  [[nodiscard]] double rate_of_all(Duration from, Duration to) const;
  // What the path could have sent, outages excepted, in bytes per second.
  [[nodiscard]] double capacity(Duration from, Duration to) const;
  [[nodiscard]] double utilisation(Duration from, Duration to) const {
    return rate_of_all(from, to) / capacity(from, to);
  }
  // Jain's index of the rates: 1 when all are alike, 1 / n when one has all.
  [[nodiscard]] double jain(Duration from, Duration to) const;
  // The time in which all flows were there, if there was any.
  [[nodiscard]] std::optional<std::pair<Duration, Duration>> common() const;
  [[nodiscard]] double mean_rtt_ms(std::size_t flow, Duration from, Duration to) const;

  // How long a packet that came then would have waited.
  [[nodiscard]] Duration mean_queue(Duration from, Duration to) const;
  [[nodiscard]] Duration queue_percentile(double share, Duration from, Duration to) const;
  [[nodiscard]] Bandwidth rate_at(Duration at) const;

 private:
  [[nodiscard]] std::vector<double> queue_delays(Duration from, Duration to) const;
};

}  // namespace sdr::experiment

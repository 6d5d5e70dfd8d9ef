#include "experiment/shared_result.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>

namespace sdr::experiment {
namespace {

double seconds(Duration time) {
  return std::chrono::duration<double>(time).count();
}

// The sum of a series from `from` to `to`, the first and last interval by their share.
double sum_between(const std::vector<double>& series, Duration interval, Duration from, Duration to) {
  double sum = 0;
  const double begin = seconds(from) / seconds(interval);
  const double end = std::min(seconds(to) / seconds(interval), static_cast<double>(series.size()));
  for (auto i = static_cast<std::size_t>(std::max(0.0, begin)); static_cast<double>(i) < end; ++i) {
    const auto at = static_cast<double>(i);
    sum += series[i] * (std::min(end, at + 1) - std::max(begin, at));
  }
  return sum;
}

// A series of sums, read between its points.
double value_at(const std::vector<double>& sums, Duration interval, Duration at) {
  const double place = std::clamp(seconds(at) / seconds(interval), 0.0, static_cast<double>(sums.size()));
  const auto whole = static_cast<std::size_t>(place);
  const double before = whole == 0 ? 0 : sums[whole - 1];
  if (whole == sums.size()) return before;
  return before + (sums[whole] - before) * (place - static_cast<double>(whole));
}

}  // namespace

double SharedResult::rate(std::size_t flow, Duration from, Duration to) const {
  return sum_between(flows[flow].series.wire_bytes, interval, from, to) / seconds(to - from);
}

double SharedResult::goodput(std::size_t flow, Duration from, Duration to) const {
  const std::vector<double>& sums = flows[flow].series.payload_bytes;
  return (value_at(sums, interval, to) - value_at(sums, interval, from)) / seconds(to - from);
}

double SharedResult::rate_of_all(Duration from, Duration to) const {
  double sum = 0;
  for (std::size_t i = 0; i < flows.size(); ++i) sum += rate(i, from, to);
  return sum;
}

Bandwidth SharedResult::rate_at(Duration at) const {
  Bandwidth rate = path.link.rate;
  for (const simulation::PathChange& change : path.changes) {
    if (change.at <= at) rate = change.link.rate;
  }
  return rate;
}

double SharedResult::capacity(Duration from, Duration to) const {
  std::vector<Duration> edges{from, to};
  const auto add = [&](Duration edge) {
    if (edge > from && edge < to) edges.push_back(edge);
  };
  for (const simulation::PathChange& change : path.changes) add(change.at);
  for (const simulation::Outage& outage : path.link.outages) {
    add(outage.begin);
    add(outage.begin + outage.length);
  }
  std::sort(edges.begin(), edges.end());
  double bytes = 0;
  for (std::size_t i = 0; i + 1 < edges.size(); ++i) {
    const bool dark = std::any_of(path.link.outages.begin(), path.link.outages.end(), [&](const auto& outage) {
      return edges[i] >= outage.begin && edges[i] < outage.begin + outage.length;
    });
    if (!dark) bytes += rate_at(edges[i]).bits_per_second / 8 * seconds(edges[i + 1] - edges[i]);
  }
  return bytes / seconds(to - from);
}

// Source: Jain, Chiu, Hawe, DEC TR-301, 1984.
double SharedResult::jain(Duration from, Duration to) const {
  double sum = 0;
  double squares = 0;
  for (std::size_t i = 0; i < flows.size(); ++i) {
    const double x = rate(i, from, to);
    sum += x;
    squares += x * x;
  }
  return squares > 0 ? sum * sum / (static_cast<double>(flows.size()) * squares) : 1;
}

std::optional<std::pair<Duration, Duration>> SharedResult::common() const {
  Duration from{0};
  Duration to = duration;
  for (const FlowResult& flow : flows) {
    from = std::max(from, flow.start);
    to = std::min(to, flow.stop);
  }
  if (from >= to) return std::nullopt;
  return std::pair(from, to);
}

double SharedResult::mean_rtt_ms(std::size_t flow, Duration from, Duration to) const {
  const FlowResult::Series& series = flows[flow].series;
  return sum_between(series.rtt_sum_ms, interval, from, to) / sum_between(series.packets, interval, from, to);
}

std::vector<double> SharedResult::queue_delays(Duration from, Duration to) const {
  std::vector<double> delays;
  if (!path.link.rate.limited()) return delays;
  for (std::size_t i = 0; i < queue_bytes.size(); ++i) {
    const Duration at = sample_interval * static_cast<std::int64_t>(i);
    if (at >= from && at < to) delays.push_back(queue_bytes[i] * 8 / rate_at(at).bits_per_second);
  }
  return delays;
}

Duration SharedResult::mean_queue(Duration from, Duration to) const {
  const std::vector<double> delays = queue_delays(from, to);
  if (delays.empty()) return Duration::zero();
  const double mean = std::accumulate(delays.begin(), delays.end(), 0.0) / static_cast<double>(delays.size());
  return Duration(static_cast<std::int64_t>(mean * 1e9));
}

Duration SharedResult::queue_percentile(double share, Duration from, Duration to) const {
  std::vector<double> delays = queue_delays(from, to);
  if (delays.empty()) return Duration::zero();
  const auto place = static_cast<std::ptrdiff_t>(share * static_cast<double>(delays.size() - 1));
  std::nth_element(delays.begin(), delays.begin() + place, delays.end());
  return Duration(static_cast<std::int64_t>(delays[static_cast<std::size_t>(place)] * 1e9));
}

}  // namespace sdr::experiment

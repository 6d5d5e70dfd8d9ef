#include "experiment/shared_trial.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "experiment/shared_flow.hpp"
#include "simulation/counter_random.hpp"

namespace sdr::experiment {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kStepPackets = 16;
constexpr int kStepsAnRtt = 500;
constexpr int kIntervals = 300;
constexpr Duration kLeastSample = 100us;
constexpr Duration kMostSample = 1ms;
constexpr TimePoint kBegin{1s};
constexpr std::array kKinds = {std::pair(FlowKind::Sdr, "sdr"), std::pair(FlowKind::TcpCubic, "tcp-cubic"),
                               std::pair(FlowKind::TcpBbr, "tcp-bbr")};

Error refused(std::string message) {
  return {ErrorCode::InvalidArgument, std::move(message)};
}

// Over all that the path becomes.
template <typename Value>
auto extreme(const simulation::PathSpec& path, Value&& value, bool most) {
  auto found = value(path.link);
  for (const simulation::PathChange& change : path.changes) {
    const auto now = value(change.link);
    if (most ? found < now : now < found) found = now;
  }
  return found;
}

Duration rtt_of(const simulation::LinkSpec& link) {
  return link.rtt;
}
Bandwidth rate_of(const simulation::LinkSpec& link) {
  return link.rate;
}

Duration step_of(const SharedTrial& trial) {
  if (trial.step > Duration::zero()) return trial.step;
  const Duration packets =
      extreme(trial.path, rate_of, true).time_for(Bytes{std::uint64_t{trial.path.link.mtu} * kStepPackets});
  const Duration share = extreme(trial.path, rtt_of, false) / kStepsAnRtt;
  return std::max<Duration>(share == Duration::zero() ? packets : std::min(packets, share), 1us);
}

class World {
 public:
  World(const SharedTrial& trial, simulation::PathSpec path)
      : trial_(trial),
        path_(std::move(path)),
        forward_(path_, simulation::Direction::Forward, kBegin),
        backward_(path_, simulation::Direction::Backward, kBegin),
        step_(step_of(trial)) {
    result_.path = path_;
    result_.duration = trial.duration;
    result_.interval =
        trial.interval > Duration::zero() ? trial.interval : (trial.duration + kIntervals * 1ns - 1ns) / kIntervals;
    result_.sample_interval = std::clamp(path_.link.rtt / 10, kLeastSample, kMostSample);
    forward_.set_tap([this](const simulation::SharedWay::Crossed& crossed) { note(crossed); });
    for (const FlowSpec& spec : trial.flows) add(spec);
  }

  Result<SharedResult> run() {
    const TimePoint end = kBegin + trial_.duration;
    TimePoint now = kBegin;
    TimePoint next_sample = kBegin;
    TimePoint next_interval = kBegin + result_.interval;
    while (now < end) {
      forward_.advance(now);
      backward_.advance(now);
      TimePoint next = std::min(end, next_interval);
      for (std::size_t i = 0; i < flows_.size(); ++i) {
        if (Result<void> driven = drive(i, now); !driven) return driven.error();
        next = std::min(next, due(i));
      }
      for (; next_sample <= now; next_sample += result_.sample_interval)
        result_.queue_bytes.push_back(static_cast<double>(forward_.waiting_bytes()));
      for (; next_interval <= now; next_interval += result_.interval) close_interval();
      next = std::min({next, next_sample, next_interval, forward_.next(), backward_.next()});
      now = std::max(next, now + step_);
    }
    close_interval();
    finish();
    return std::move(result_);
  }

 private:
  struct Entry {
    std::unique_ptr<SharedFlow> flow;
    TimePoint start{};
    TimePoint stop = kNever;
    Duration way_back{0};  // beyond the path's
    bool begun = false;
  };

  void add(const FlowSpec& spec) {
    const Duration rtt = std::max(spec.rtt, Duration(path_.link.rtt));
    const SharedFlow::Place place{.forward = forward_,
                                  .backward = backward_,
                                  .further = rtt - path_.link.rtt,
                                  .rate = extreme(path_, rate_of, true),
                                  .longest_rtt = extreme(path_, rtt_of, true) + rtt - path_.link.rtt,
                                  .seed = simulation::CounterRandom(trial_.seed, 2)(flows_.size())};
    Entry entry{.flow = spec.kind == FlowKind::Sdr ? make_sdr_flow(spec, path_.link, place)
                                                   : make_tcp_flow(spec, path_.link, place),
                .start = kBegin + spec.start,
                .stop = spec.stop ? kBegin + *spec.stop : kNever,
                .way_back = place.further - place.further / 2};
    FlowResult result;
    result.name = spec.name.empty() ? fmt::format("{} {}", name_of(spec.kind), flows_.size() + 1) : spec.name;
    result.start = spec.start;
    result.stop = std::min(spec.stop.value_or(trial_.duration), trial_.duration);
    result.base_rtt = rtt;
    const std::uint32_t number = entry.flow->number();
    if (number >= of_way_.size()) of_way_.resize(number + 1);
    of_way_[number] = flows_.size();
    flows_.push_back(std::move(entry));
    result_.flows.push_back(std::move(result));
  }

  Result<void> drive(std::size_t i, TimePoint now) {
    Entry& entry = flows_[i];
    if (now < entry.start || now >= entry.stop) return {};
    if (!entry.begun) {
      entry.begun = true;
      return entry.flow->begin(now);
    }
    if (entry.flow->due() <= now) entry.flow->drive(now);
    return {};
  }
  [[nodiscard]] TimePoint due(std::size_t i) const {
    const Entry& entry = flows_[i];
    if (!entry.begun) return entry.start;
    const TimePoint due = entry.flow->due();
    return due < entry.stop ? due : kNever;
  }

  // The way back as it is without a queue.
  [[nodiscard]] Duration back_at(TimePoint at) const {
    Duration rtt = path_.link.rtt;
    for (const simulation::PathChange& change : path_.changes) {
      if (kBegin + change.at <= at) rtt = change.link.rtt;
    }
    return rtt - rtt / 2;
  }

  void note(const simulation::SharedWay::Crossed& crossed) {
    const std::size_t i = of_way_[crossed.flow];
    FlowResult& flow = result_.flows[i];
    const Duration rtt = crossed.arrived - crossed.offered + back_at(crossed.arrived) + flows_[i].way_back;
    flow.rtt.add(rtt);
    FlowResult::Series& series = flow.series;
    const auto interval = static_cast<std::size_t>((crossed.arrived - kBegin) / result_.interval);
    if (interval >= series.wire_bytes.size()) {
      series.wire_bytes.resize(interval + 1);
      series.rtt_sum_ms.resize(interval + 1);
      series.packets.resize(interval + 1);
    }
    series.wire_bytes[interval] += crossed.bytes;
    series.rtt_sum_ms[interval] += static_cast<double>(rtt.count()) / 1e6;
    series.packets[interval] += 1;
  }

  void close_interval() {
    for (std::size_t i = 0; i < flows_.size(); ++i) {
      FlowResult::Series& series = result_.flows[i].series;
      const SharedFlow::Sender sender = flows_[i].flow->sender();
      series.payload_bytes.push_back(static_cast<double>(flows_[i].flow->payload()));
      series.pace.push_back(sender.pace);
      series.window.push_back(sender.window);
      series.state.push_back(sender.state);
    }
  }

  void finish() {
    const auto intervals = static_cast<std::size_t>((trial_.duration + result_.interval - 1ns) / result_.interval);
    for (std::size_t i = 0; i < flows_.size(); ++i) {
      FlowResult& flow = result_.flows[i];
      const SharedFlow& own = *flows_[i].flow;
      own.finish(flow);
      flow.payload_bytes = own.payload();
      flow.data = forward_.counts(own.number());
      if (own.completed() != kNever) {
        flow.completed = own.completed() - flows_[i].start;
        flow.stop = own.completed() - kBegin;
      }
      for (auto* series : {&flow.series.wire_bytes, &flow.series.rtt_sum_ms, &flow.series.packets,
                           &flow.series.payload_bytes, &flow.series.pace, &flow.series.window}) {
        series->resize(intervals);
      }
      flow.series.state.resize(intervals);
    }
    result_.data = forward_.counts();
    result_.packets = result_.data.packets + backward_.counts().packets;
  }

  const SharedTrial& trial_;
  simulation::PathSpec path_;
  simulation::SharedWay forward_;
  simulation::SharedWay backward_;
  Duration step_;
  std::vector<Entry> flows_;
  std::vector<std::size_t> of_way_;  // a flow by its number on the way there
  SharedResult result_;
};

Result<void> check_flow(const SharedTrial& trial, const FlowSpec& flow, std::size_t number) {
  const auto name = flow.name.empty() ? fmt::format("flow {}", number + 1) : fmt::format("flow \"{}\"", flow.name);
  if (flow.rtt != Duration::zero() && flow.rtt < trial.path.link.rtt)
    return refused(fmt::format("{}: rtt {} is shorter than the path's, {}", name, to_string(flow.rtt),
                               to_string(trial.path.link.rtt)));
  if (flow.start < Duration::zero() || flow.start >= trial.duration)
    return refused(fmt::format("{}: start {} is not within the duration, {}", name, to_string(flow.start),
                               to_string(trial.duration)));
  if (flow.stop && *flow.stop <= flow.start)
    return refused(
        fmt::format("{}: stop {} is not behind its start {}", name, to_string(*flow.stop), to_string(flow.start)));
  if (flow.write.count == 0) return refused(fmt::format("{}: Writes of 0 bytes", name));
  return {};
}

}  // namespace

Result<void> check(const SharedTrial& trial) {
  if (trial.flows.empty() || trial.flows.size() > SharedTrial::kMostFlows)
    return refused(fmt::format("{} flows are not from 1 to {}", trial.flows.size(), SharedTrial::kMostFlows));
  if (trial.duration <= Duration::zero() || trial.duration > SharedTrial::kLongest)
    return refused(fmt::format("duration {} is not above 0 and up to {}", to_string(trial.duration),
                               to_string(SharedTrial::kLongest)));
  if (trial.interval < Duration::zero() || trial.interval > trial.duration)
    return refused(
        fmt::format("interval {} is not up to the duration, {}", to_string(trial.interval), to_string(trial.duration)));
  if (const std::int64_t intervals = trial.interval > Duration::zero() ? trial.duration / trial.interval : 0;
      intervals > SharedTrial::kMostIntervals)
    return refused(fmt::format("interval {} makes {} intervals of {}, more than {}", to_string(trial.interval),
                               intervals, to_string(trial.duration), SharedTrial::kMostIntervals));
  for (const simulation::PathChange& change : trial.path.changes)
    if (change.at >= trial.duration)
      return refused(
          fmt::format("a change at {} is not before the end, {}", to_string(change.at), to_string(trial.duration)));
  if (!extreme(trial.path, rate_of, false).limited())
    return refused("the path has no rate: several flows have nothing to share then");
  if (trial.path.link.mtu < 576) return refused(fmt::format("mtu {} is less than 576", trial.path.link.mtu));
  for (std::size_t i = 0; i < trial.flows.size(); ++i) {
    if (Result<void> fine = check_flow(trial, trial.flows[i], i); !fine) return fine;
  }
  return {};
}

Result<SharedResult> run(const SharedTrial& trial) {
  if (Result<void> fine = check(trial); !fine) return fine.error();
  simulation::PathSpec path = trial.path;
  path.link.seed = trial.seed;
  for (simulation::PathChange& change : path.changes) change.link.seed = trial.seed;
  return World(trial, std::move(path)).run();
}

Result<FlowKind> parse_flow_kind(std::string_view name) {
  for (const auto& [kind, text] : kKinds) {
    if (name == text) return kind;
  }
  return refused(fmt::format("unknown kind of flow \"{}\"; there are sdr, tcp-cubic and tcp-bbr", name.substr(0, 80)));
}

std::string_view name_of(FlowKind kind) {
  return kKinds[static_cast<std::size_t>(kind)].second;
}

}  // namespace sdr::experiment

// Several flows over one path for the tests of this floor, and what the tests ask of the results.
#pragma once

#include <chrono>
#include <string_view>
#include <vector>

#include "experiment/shared_trial.hpp"

namespace sdr::testing {

using experiment::FlowKind;
using experiment::FlowSpec;
using experiment::SharedResult;
using experiment::SharedTrial;

inline SharedTrial shared(std::string_view link, std::string_view queue, Duration duration,
                          std::vector<FlowSpec> flows) {
  SharedTrial trial;
  trial.path.link = simulation::LinkSpec::parse(link).value();
  trial.path.queue = simulation::QueueSpec::parse(queue, trial.path.link).value();
  trial.duration = duration;
  trial.flows = std::move(flows);
  return trial;
}

inline FlowSpec model() {
  FlowSpec flow;
  flow.connection.rate_mode = RateMode::Model;
  return flow;
}
inline FlowSpec background() {
  FlowSpec flow;
  flow.connection.rate_mode = RateMode::Background;
  return flow;
}
inline FlowSpec fixed(std::string_view rate) {
  FlowSpec flow;
  flow.connection.rate_mode = RateMode::Fixed;
  flow.connection.queue_pair.rate = parse_bandwidth(rate).value();
  return flow;
}
inline FlowSpec tcp(FlowKind kind, bool hystart = true) {
  FlowSpec flow;
  flow.kind = kind;
  flow.hystart = hystart;
  return flow;
}
inline FlowSpec starting(FlowSpec flow, Duration start) {
  flow.start = start;
  return flow;
}
inline FlowSpec at_rtt(FlowSpec flow, Duration rtt) {
  flow.rtt = rtt;
  return flow;
}

// Goodput as a share of what packets of the MTU carry of the capacity when `loss` of them is lost.
inline double of_possible(const SharedResult& result, std::size_t flow, Duration from, Duration to) {
  constexpr double kPayload = 1456.0 / 1500;
  return result.goodput(flow, from, to) / (result.capacity(from, to) * kPayload * (1 - result.path.link.loss));
}
// What came out of the path, as a share of what it could have sent.
inline double share(const SharedResult& result, std::size_t flow, Duration from, Duration to) {
  return result.rate(flow, from, to) / result.capacity(from, to);
}

}  // namespace sdr::testing

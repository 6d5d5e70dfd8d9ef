#include "sdr/probe_analysis.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <string>
#include <string_view>
#include <utility>

#include "sdr/session.hpp"

namespace sdr::cli {
namespace {

constexpr std::uint64_t kMostPackets = std::uint64_t{1} << 40;

// Puts runs together out of packets in their order.
class RunCounter {
 public:
  explicit RunCounter(LossRuns& runs) : runs_(runs) {}
  void next(bool lost) {
    if (lost) {
      ++length_;
    } else {
      end();
    }
  }
  void end() {
    if (length_ > 0) runs_.add(length_);
    length_ = 0;
  }

 private:
  LossRuns& runs_;
  std::uint64_t length_ = 0;
};

Error wrong(std::string_view what) {
  return {ErrorCode::Protocol, fmt::format("the peer's {} are not what a trial can have", what)};
}

// Numbers of an array, all of them in range; as many as `into` has.
bool take_numbers(const Json& json, std::span<std::uint64_t> into) {
  if (!json.is_array() || json.size() != into.size()) return false;
  for (std::size_t i = 0; i < into.size(); ++i) {
    if (!json[i].is_number_unsigned() || json[i].get<std::uint64_t>() > kMostPackets) return false;
    into[i] = json[i].get<std::uint64_t>();
  }
  return true;
}

}  // namespace

void LossRuns::add(std::uint64_t length) {
  ++runs_;
  lost_ += length;
  longest_ = std::max(longest_, length);
  squares_ += static_cast<double>(length) * static_cast<double>(length);
  ++bins_[std::min<std::size_t>(static_cast<std::size_t>(std::bit_width(length - 1)), kBins - 1)];
}

LossRuns& LossRuns::operator+=(const LossRuns& other) {
  runs_ += other.runs_;
  lost_ += other.lost_;
  longest_ = std::max(longest_, other.longest_);
  squares_ += other.squares_;
  for (std::size_t i = 0; i < kBins; ++i) bins_[i] += other.bins_[i];
  return *this;
}

double LossRuns::mean() const {
  return runs_ == 0 ? 1 : static_cast<double>(lost_) / static_cast<double>(runs_);
}

double LossRuns::dispersion() const {
  return lost_ == 0 ? 1 : squares_ / static_cast<double>(lost_);
}

Json LossRuns::to_json() const {
  return {{"runs", runs_}, {"lost", lost_}, {"longest", longest_}, {"squares", squares_}, {"bins", bins_}};
}

Result<LossRuns> LossRuns::from_json(const Json& json) {
  LossRuns runs;
  const auto count = get_number(json, "runs");
  const auto lost = get_number(json, "lost");
  const auto longest = get_number(json, "longest");
  const auto squares = get_real(json, "squares");
  if (!count) return count.error();
  if (!lost) return lost.error();
  if (!longest) return longest.error();
  if (!squares) return squares.error();
  runs.runs_ = *count;
  runs.lost_ = *lost;
  runs.longest_ = *longest;
  runs.squares_ = *squares;
  const bool binned = take_numbers(json.value("bins", Json::array()), runs.bins_);
  const bool sane = *count <= *lost && *longest <= *lost && *lost <= kMostPackets &&
                    *squares >= static_cast<double>(*lost) && *squares <= 1e25;
  if (!binned || !sane) return wrong("runs of losses");
  return runs;
}

FlowOutcome TrialOutcome::total() const {
  FlowOutcome sum;
  for (const FlowOutcome& flow : flows) sum += flow;
  return sum;
}

Bandwidth TrialOutcome::rate(std::uint32_t payload) const {
  const std::uint64_t arrived = total().arrived;
  if (arrived < 2 || elapsed <= Duration(0)) return {};
  // The first packet's bits had come before the time began.
  const double bits = 8.0 * payload * static_cast<double>(arrived - 1);
  return {bits * 1e9 / static_cast<double>(elapsed.count())};
}

Json TrialOutcome::to_json() const {
  Json list = Json::array();
  for (const FlowOutcome& flow : flows) {
    list.push_back({flow.sent, flow.arrived, flow.lost, flow.host_drops, flow.duplicates, flow.reordered});
  }
  return {{"flows", list},
          {"in_order", in_order.to_json()},
          {"in_flow", in_flow.to_json()},
          {"elapsed_ns", static_cast<std::uint64_t>(elapsed.count())}};
}

Result<TrialOutcome> TrialOutcome::from_json(const Json& json, std::size_t expected_flows) {
  TrialOutcome outcome;
  const Json flows = json.value("flows", Json::array());
  if (!flows.is_array() || flows.size() != expected_flows) return wrong("flows");
  for (const Json& entry : flows) {
    std::array<std::uint64_t, 6> n{};
    if (!take_numbers(entry, n)) return wrong("flows");
    const FlowOutcome flow{
        .sent = n[0], .arrived = n[1], .lost = n[2], .host_drops = n[3], .duplicates = n[4], .reordered = n[5]};
    if (flow.arrived + flow.lost > flow.sent || flow.reordered > flow.arrived) return wrong("flows");
    outcome.flows.push_back(flow);
  }
  auto in_order = LossRuns::from_json(json.value("in_order", Json::object()));
  auto in_flow = LossRuns::from_json(json.value("in_flow", Json::object()));
  const auto elapsed = get_number(json, "elapsed_ns");
  if (!in_order) return in_order.error();
  if (!in_flow) return in_flow.error();
  if (!elapsed) return elapsed.error();
  if (*elapsed > static_cast<std::uint64_t>(Duration::max().count())) return wrong("times");
  const std::uint64_t lost = outcome.total().lost;
  if (in_order->lost() > lost || in_flow->lost() > lost) return wrong("runs of losses");
  outcome.in_order = *in_order;
  outcome.in_flow = *in_flow;
  outcome.elapsed = Duration(static_cast<std::int64_t>(*elapsed));
  return outcome;
}

TrialOutcome analyse(std::span<FlowRecord> records, const ProbeOrder& order, std::uint64_t total, Duration elapsed) {
  TrialOutcome outcome;
  outcome.elapsed = elapsed;
  for (std::uint32_t flow = 0; flow < records.size(); ++flow) {
    outcome.flows.push_back(records[flow].finish(order.count(flow, total)));
    RunCounter counter(outcome.in_flow);
    const auto sent = static_cast<std::uint32_t>(outcome.flows.back().sent);
    for (std::uint32_t i = 0; i < sent; ++i) counter.next(records[flow].fate(i) == FlowRecord::Fate::Lost);
    counter.end();
  }
  RunCounter counter(outcome.in_order);
  for (std::uint64_t n = 0; n < total; ++n) {
    const ProbeOrder::Place at = order.place(n);
    counter.next(records[at.flow].fate(at.sequence) == FlowRecord::Fate::Lost);
  }
  counter.end();
  return outcome;
}

}  // namespace sdr::cli

// The receiving end of `sdr probe`: sends echoes back, records what arrives, says after each trial what it was.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <utility>

#include "runtime/clock.hpp"
#include "sdr/probe_packet.hpp"
#include "sdr/probe_run.hpp"
#include "sdr/probe_way.hpp"

namespace sdr::cli {
namespace {

using runtime::now;

// How long the ends of the flows may take when nothing else arrives.
constexpr Duration kEndPatience = std::chrono::seconds(1);
constexpr Duration kMostSettle = std::chrono::seconds(5);
// System calls on one socket before the others have their turn.
constexpr int kMostBatches = 16;

// What is known of the trial at hand.
struct Trial {
  std::uint32_t number = 0;
  Duration settle{0};
  ProbeOrder order;
  std::vector<FlowRecord> records;
  std::optional<std::uint64_t> sent;
  TimePoint told_at{};  // when `sent` came
  TimePoint first = kNever;
  TimePoint last{};
  TimePoint ended_at = kNever;  // when the last flow ended

  // When it is over; kNever as long as it is not known what was sent.
  [[nodiscard]] TimePoint over_at(Duration timeout) const {
    if (!sent) return kNever;
    if (ended_at != kNever) return std::max(ended_at, told_at) + settle;
    return std::min(std::max(told_at, last) + kEndPatience + 4 * settle, told_at + timeout);
  }
  [[nodiscard]] Duration elapsed() const { return first == kNever ? Duration(0) : last - first; }
};

class Responder {
 public:
  Responder(const ProbePlan& plan, ProbeSockets& sockets, Session& session)
      : plan_(plan),
        sockets_(sockets),
        session_(session),
        way_(sockets, plan.link_spec(), simulation::Direction::Backward, kSmallDatagram, plan.overhead),
        drop_counters_(plan.flows) {}

  Result<ProbeServed> run();

 private:
  // The peer's message; true when it was the last.
  Result<bool> hear(const Json& message);
  Result<void> begin_trial(std::uint64_t number, const Json& message);
  Result<void> end_trial();
  void drain(std::size_t socket);
  void take_load(std::size_t flow, const ProbeSockets::Batch& batch);
  void answer_echoes(const ProbeSockets::Batch& batch);

  const ProbePlan& plan_;
  ProbeSockets& sockets_;
  Session& session_;
  ProbeWay way_;
  std::vector<std::uint32_t> drop_counters_;  // of the flows' sockets, as last told
  std::optional<Trial> trial_;
  TimePoint heard_{};
  HostCounters before_;
  ProbeServed served_;
};

void Responder::answer_echoes(const ProbeSockets::Batch& batch) {
  for (const auto datagram : batch.datagrams) {
    auto packet = parse_probe_packet(datagram, plan_.token);
    if (!packet || packet->kind != ProbePacket::Kind::Echo) continue;
    packet->kind = ProbePacket::Kind::Reply;
    std::array<std::byte, kSmallDatagram> reply{};
    encode(*packet, reply);
    (void)way_.send(0, {.bytes = reply, .segment = reply.size(), .count = 1}, now());
    heard_ = now();
  }
}

void Responder::take_load(std::size_t flow, const ProbeSockets::Batch& batch) {
  const TimePoint at = now();
  for (const auto datagram : batch.datagrams) {
    const auto packet = parse_probe_packet(datagram, plan_.token);
    if (!packet || packet->flow != flow || !trial_ || packet->trial != trial_->number) continue;
    heard_ = at;
    FlowRecord& record = trial_->records[flow];
    if (packet->kind == ProbePacket::Kind::End) {
      record.ended(packet->sequence);
    } else if (packet->kind == ProbePacket::Kind::Load) {
      record.arrived(packet->sequence);
      trial_->first = std::min(trial_->first, at);
      trial_->last = at;
    }
  }
  if (trial_) trial_->records[flow].drops_so_far(batch.dropped);
  if (batch.dropped != 0) drop_counters_[flow] = batch.dropped;
}

void Responder::drain(std::size_t socket) {
  for (int i = 0; i < kMostBatches; ++i) {
    const ProbeSockets::Batch batch = sockets_.receive(socket);
    if (batch.datagrams.empty()) return;
    if (socket == 0) {
      answer_echoes(batch);
    } else {
      take_load(socket - 1, batch);
    }
  }
}

Result<void> Responder::begin_trial(std::uint64_t number, const Json& message) {
  const auto settle = get_number(message, "settle_ns");
  if (!settle) return settle.error();
  if (number >= plan_.all_trials()) {
    return Error{ErrorCode::Protocol, fmt::format("trial {}: there are {}", number, plan_.all_trials())};
  }
  trial_.emplace();
  trial_->number = static_cast<std::uint32_t>(number);
  const auto most = static_cast<std::uint64_t>(kMostSettle.count());
  trial_->settle = Duration(static_cast<std::int64_t>(std::min(*settle, most)));
  const std::uint32_t payload = plan_.payload_of_trial(trial_->number);
  trial_->order = plan_.order_of(payload);
  const std::uint64_t total = plan_.packets_of(payload);
  for (std::uint32_t flow = 0; flow < plan_.flows; ++flow) {
    trial_->records.emplace_back(trial_->order.count(flow, total), drop_counters_[flow]);
  }
  return session_.send({{"ready", number}});
}

Result<void> Responder::end_trial() {
  const TrialOutcome outcome = analyse(trial_->records, trial_->order, *trial_->sent, trial_->elapsed());
  trial_.reset();
  ++served_.trials;
  const FlowOutcome total = outcome.total();
  served_.packets += total.arrived;
  served_.host_drops += total.host_drops;
  heard_ = now();  // counting takes its time
  return session_.send(outcome.to_json());
}

Result<bool> Responder::hear(const Json& message) {
  heard_ = now();
  if (message.contains("trial") && !trial_) {
    const auto number = get_number(message, "trial");
    if (!number) return number.error();
    if (Result<void> begun = begin_trial(*number, message); !begun) return begun.error();
    return false;
  }
  if (message.contains("sent") && trial_ && !trial_->sent) {
    const auto sent = get_number(message, "sent");
    if (!sent) return sent.error();
    if (const std::uint64_t most = plan_.packets_of(plan_.payload_of_trial(trial_->number)); *sent > most) {
      return Error{ErrorCode::Protocol, fmt::format("{} packets sent: at most {} were announced", *sent, most)};
    }
    trial_->sent = *sent;
    trial_->told_at = heard_;
    return false;
  }
  if (!message.contains("done") || trial_) {
    return Error{ErrorCode::Protocol, fmt::format("{} said what has no place here", session_.peer().to_string())};
  }
  const Json last = {{"host", HostCounters::now().since(before_).to_json()},
                     {"receive_buffer", sockets_.receive_buffer()}};
  if (Result<void> sent = session_.send(last); !sent) return sent.error();
  return true;
}

Result<ProbeServed> Responder::run() {
  before_ = HostCounters::now();
  heard_ = now();
  for (;;) {
    TimePoint until = std::min(heard_ + plan_.timeout, way_.next_event());
    if (trial_) until = std::min(until, trial_->over_at(plan_.timeout));
    bool talks = false;
    // Echoes are first, and their reply does not wait for the load.
    for (const std::size_t socket : sockets_.wait(session_.fd(), true, until, talks)) drain(socket);
    way_.advance(now());
    if (talks) {
      const Result<std::optional<Json>> said = session_.poll();
      if (!said) return said.error();
      if (*said) {
        const Result<bool> last = hear(**said);
        if (!last) return last.error();
        if (*last) return served_;
      }
    }
    if (trial_) {
      const bool all_ended = std::all_of(trial_->records.begin(), trial_->records.end(),
                                         [](const FlowRecord& record) { return record.has_ended(); });
      if (all_ended && trial_->ended_at == kNever) trial_->ended_at = now();
      if (now() >= trial_->over_at(plan_.timeout)) {
        if (Result<void> ended = end_trial(); !ended) return ended.error();
      }
    }
    if (now() - heard_ >= plan_.timeout) {
      return Error{ErrorCode::PeerUnreachable,
                   fmt::format("{} said nothing for {}", session_.peer().to_string(), to_string(plan_.timeout))};
    }
  }
}

}  // namespace

Result<ProbeServed> answer_probe(const ProbePlan& plan, ProbeSockets& sockets, Session& session) {
  return Responder(plan, sockets, session).run();
}

}  // namespace sdr::cli

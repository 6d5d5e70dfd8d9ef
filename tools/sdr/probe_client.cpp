// The sending end of `sdr probe`: paces the load, sends echoes beside it, collects what the receiver says.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <utility>

#include "runtime/clock.hpp"
#include "sdk/pacer.hpp"
#include "sdr/probe_packet.hpp"
#include "sdr/probe_run.hpp"
#include "sdr/probe_way.hpp"

namespace sdr::cli {
namespace {

using runtime::now;

constexpr std::uint32_t kIdleEchoes = 100;
constexpr Duration kIdleEchoEvery = std::chrono::milliseconds(4);
constexpr Duration kLoadEchoEvery = std::chrono::milliseconds(10);
constexpr Duration kEndEvery = std::chrono::milliseconds(5);
constexpr Duration kRetry = std::chrono::microseconds(50);
constexpr Duration kLeastSettle = std::chrono::milliseconds(20);
constexpr Duration kMostSettle = std::chrono::seconds(5);

Duration from_ms(double ms) {
  return Duration(static_cast<std::int64_t>(ms * 1e6));
}

class Prober {
 public:
  Prober(const ProbePlan& plan, ProbeSockets& sockets, Session& session)
      : plan_(plan),
        sockets_(sockets),
        session_(session),
        way_(sockets, plan.link_spec(), simulation::Direction::Forward, std::max(plan.payloads.back(), kSmallDatagram),
             plan.overhead),
        batch_(transport::UdpSocket::kMaxBatchBytes) {}

  Result<ProbeResult> run() {
    const HostCounters before = HostCounters::now();
    if (Result<void> echoed = echo_while_idle(); !echoed) return echoed.error();
    for (std::uint32_t trial = 0; trial < plan_.all_trials(); ++trial) {
      if (Result<void> done = run_trial(trial); !done) return done.error();
    }
    if (Result<void> sent = session_.send({{"done", true}}); !sent) return sent.error();
    const Result<Json> last = session_.receive(plan_.timeout);
    if (!last) return last.error();
    const auto receiver = HostCounters::from_json(last->value("host", Json::object()));
    const auto buffer = get_number(*last, "receive_buffer");
    if (!receiver) return receiver.error();
    if (!buffer) return buffer.error();
    result_.receiver = *receiver;
    result_.receive_buffer = *buffer;
    result_.sender = HostCounters::now().since(before);
    result_.refused = sockets_.refused();
    std::sort(result_.loaded_rtt_ms.begin(), result_.loaded_rtt_ms.end());
    return std::move(result_);
  }

 private:
  Result<void> echo_while_idle();
  Result<void> run_trial(std::uint32_t trial);
  Result<Bandwidth> load(std::uint32_t trial, std::uint64_t& sent);
  Result<TrialOutcome> outcome_of(std::uint32_t trial, std::uint64_t sent);
  std::size_t send_some(std::uint32_t trial, const ProbeOrder& order, std::uint64_t first, std::uint64_t total);

  void send_small(ProbePacket packet, std::size_t socket);
  // Whether one was sent.
  bool echo_when_due(std::uint32_t trial, Duration every);
  void take_replies();
  // Sleeps until `deadline`, or something happens; does what is due; what the peer has said meanwhile.
  Result<std::optional<Json>> rest(TimePoint deadline);
  // The same where the peer has nothing to say.
  Result<void> rest_undisturbed(TimePoint deadline);

  const ProbePlan& plan_;
  ProbeSockets& sockets_;
  Session& session_;
  ProbeWay way_;
  std::vector<std::byte> batch_;
  TimePoint next_echo_ = kNever;
  std::uint32_t echo_ = 0;
  Duration settle_ = kLeastSettle;
  ProbeResult result_;
};

Result<std::optional<Json>> Prober::rest(TimePoint deadline) {
  bool talks = false;
  const TimePoint until = std::min({deadline, way_.next_event(), next_echo_});
  const auto ready = sockets_.wait(session_.fd(), false, until, talks);
  if (!ready.empty()) take_replies();
  way_.advance(now());
  if (!talks) return std::optional<Json>();
  return session_.poll();
}

Result<void> Prober::rest_undisturbed(TimePoint deadline) {
  const Result<std::optional<Json>> said = rest(deadline);
  if (!said) return said.error();
  if (!*said) return {};
  return Error{ErrorCode::Protocol,
               fmt::format("{} said something while nothing was asked", session_.peer().to_string())};
}

void Prober::send_small(ProbePacket packet, std::size_t socket) {
  std::array<std::byte, kSmallDatagram> bytes{};
  packet.token = plan_.token;
  const TimePoint at = now();
  packet.sent_at = static_cast<std::uint64_t>(at.time_since_epoch().count());
  encode(packet, bytes);
  (void)way_.send(socket, {.bytes = bytes, .segment = bytes.size(), .count = 1}, at);  // lost or not, another follows
}

bool Prober::echo_when_due(std::uint32_t trial, Duration every) {
  const TimePoint at = now();
  if (at < next_echo_) return false;
  next_echo_ = std::max(next_echo_ + every, at);
  send_small({.kind = ProbePacket::Kind::Echo, .trial = trial, .sequence = echo_++}, 0);
  ++result_.echoes_sent;
  return true;
}

void Prober::take_replies() {
  const ProbeSockets::Batch batch = sockets_.receive(0);
  const TimePoint at = now();
  for (const auto datagram : batch.datagrams) {
    const auto packet = parse_probe_packet(datagram, plan_.token);
    if (!packet || packet->kind != ProbePacket::Kind::Reply) continue;
    const auto since = at.time_since_epoch().count() - static_cast<std::int64_t>(packet->sent_at);
    if (since < 0) continue;  // no time of ours
    auto& times = packet->trial == ProbePacket::kNoTrial ? result_.idle_rtt_ms : result_.loaded_rtt_ms;
    times.push_back(static_cast<double>(since) / 1e6);
  }
}

Result<void> Prober::echo_while_idle() {
  next_echo_ = now();
  // Before the other end, which hears nothing either, gives up.
  const Duration patience = plan_.timeout * 3 / 4;
  TimePoint deadline = now() + patience;
  TimePoint last_echo{};
  std::vector<double>& times = result_.idle_rtt_ms;
  while (times.size() < kIdleEchoes && now() < deadline) {
    if (echo_ < kIdleEchoes) {
      (void)echo_when_due(ProbePacket::kNoTrial, kIdleEchoEvery);
      last_echo = now();
    } else {
      next_echo_ = kNever;
      // What takes half as long again as the slowest so far will not come.
      const double slowest = times.empty() ? 0 : *std::max_element(times.begin(), times.end());
      if (!times.empty()) deadline = std::min(deadline, last_echo + kLeastSettle + from_ms(1.5 * slowest));
    }
    if (Result<void> rested = rest_undisturbed(deadline); !rested) return rested;
  }
  next_echo_ = kNever;
  if (times.empty()) {
    return Error{
        ErrorCode::PeerUnreachable,
        fmt::format("no echo came back from {} in {}: is UDP blocked on the way? (sdr probe --help names the ports)",
                    session_.peer().host(), to_string(patience))};
  }
  std::sort(times.begin(), times.end());
  settle_ = std::clamp(from_ms(times.back()), kLeastSettle, kMostSettle);
  return {};
}

Result<void> Prober::run_trial(std::uint32_t trial) {
  const auto settle = static_cast<std::uint64_t>(settle_.count());
  if (Result<void> sent = session_.send({{"trial", trial}, {"settle_ns", settle}}); !sent) return sent;
  const Result<Json> answer = session_.receive(plan_.timeout);
  if (!answer) return answer.error();
  const auto ready = get_number(*answer, "ready");
  if (!ready) return ready.error();

  std::uint64_t sent = 0;
  const Result<Bandwidth> rate = load(trial, sent);
  if (!rate) return rate.error();
  const Result<TrialOutcome> outcome = outcome_of(trial, sent);
  if (!outcome) return outcome.error();
  const std::uint32_t payload = plan_.payload_of_trial(trial);
  if (result_.payloads.empty() || result_.payloads.back().payload() != payload) result_.payloads.emplace_back(payload);
  result_.payloads.back().add(*outcome, *rate);
  return {};
}

// Packet `first` of the order and those that go with it in one batch; how many were taken.
std::size_t Prober::send_some(std::uint32_t trial, const ProbeOrder& order, std::uint64_t first, std::uint64_t total) {
  const std::uint32_t payload = plan_.payload_of_trial(trial);
  const ProbeOrder::Place at = order.place(first);
  const std::size_t count = std::min<std::uint64_t>(order.quantum - at.sequence % order.quantum, total - first);
  const std::span<std::byte> bytes = std::span(batch_).first(count * payload);
  const TimePoint time = now();
  for (std::size_t i = 0; i < count; ++i) {
    const ProbePacket packet{.flow = static_cast<std::uint16_t>(at.flow),
                             .token = plan_.token,
                             .trial = trial,
                             .sequence = at.sequence + static_cast<std::uint32_t>(i),
                             .sent_at = static_cast<std::uint64_t>(time.time_since_epoch().count())};
    encode(packet, bytes.subspan(i * payload));
  }
  return way_.send(1 + at.flow, {.bytes = bytes, .segment = payload, .count = count}, time);
}

// Sends the trial's packets, or those that its time has room for; the rate in payload bits.
Result<Bandwidth> Prober::load(std::uint32_t trial, std::uint64_t& sent) {
  const std::uint32_t payload = plan_.payload_of_trial(trial);
  const std::uint64_t total = plan_.packets_of(payload);
  const ProbeOrder order = plan_.order_of(payload);
  std::fill(batch_.begin(), batch_.end(), std::byte{});
  // What this host was held up must not look like the path's loss: little is made up for.
  sdk::Pacer pacer(plan_.rate, sdk::kLeastCatchUp);
  const TimePoint begin = now();
  const TimePoint end = plan_.packets != 0 ? kNever : begin + plan_.duration + pacer.catch_up();
  pacer.idle(begin - pacer.catch_up(), begin);
  TimePoint progress = begin;
  next_echo_ = begin;
  while (sent < total && now() < end) {
    if (echo_when_due(trial, kLoadEchoEvery)) pacer.spend(kSmallDatagram + plan_.overhead);
    bool blocked = false;
    // A round at a time, then a look at the rest.
    for (std::uint32_t i = 0; i < order.flows && sent < total && !blocked && pacer.allowance(now()) > 0; ++i) {
      const std::uint64_t before = sent;
      sent += send_some(trial, order, sent, total);
      pacer.spend((sent - before) * (payload + plan_.overhead));
      blocked = sent % order.quantum != 0 && sent < total;
      blocked = blocked || sent == before;
      if (sent != before) progress = now();
    }
    if (now() - progress > plan_.timeout + Duration(plan_.rate.time_for({payload + plan_.overhead}))) {
      return Error{ErrorCode::System, fmt::format("this host has sent no packet of {} bytes to {} for {}", payload,
                                                  session_.peer().host(), to_string(plan_.timeout))};
    }
    if (sent == total) break;
    const TimePoint next = blocked ? now() + kRetry : pacer.next_time();
    if (Result<void> rested = rest_undisturbed(std::min(next, end)); !rested) return rested.error();
  }
  next_echo_ = kNever;
  const Duration elapsed = progress - begin;
  if (sent < 2 || elapsed <= Duration(0)) return Bandwidth{};
  return Bandwidth{8e9 * payload * static_cast<double>(sent - 1) / static_cast<double>(elapsed.count())};
}

// Says that the load is over, on every flow again and again, until the receiver says how it went.
Result<TrialOutcome> Prober::outcome_of(std::uint32_t trial, std::uint64_t sent) {
  if (Result<void> told = session_.send({{"sent", sent}}); !told) return told.error();
  const ProbeOrder order = plan_.order_of(plan_.payload_of_trial(trial));
  // The receiver ends its wait within the timeout, and then needs a moment to count.
  const Duration patience = plan_.timeout + kSessionPatience + kMostSettle;
  const TimePoint deadline = now() + patience;
  TimePoint next_end = now();
  while (now() < deadline) {
    if (now() >= next_end) {
      for (std::uint32_t flow = 0; flow < order.flows; ++flow) {
        send_small({.kind = ProbePacket::Kind::End,
                    .flow = static_cast<std::uint16_t>(flow),
                    .trial = trial,
                    .sequence = order.count(flow, sent)},
                   1 + flow);
      }
      next_end = now() + kEndEvery;
    }
    const Result<std::optional<Json>> said = rest(std::min(next_end, deadline));
    if (!said) return said.error();
    if (*said) return TrialOutcome::from_json(**said, plan_.flows);
  }
  return Error{ErrorCode::PeerUnreachable,
               fmt::format("{} said nothing for {}", session_.peer().to_string(), to_string(patience))};
}

}  // namespace

Result<ProbeResult> measure_path(const ProbePlan& plan, ProbeSockets& sockets, Session& session) {
  return Prober(plan, sockets, session).run();
}

}  // namespace sdr::cli

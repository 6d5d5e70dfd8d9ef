#include "experiment/write_trial.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>

#include "experiment/reserved_memory.hpp"
#include "experiment/virtual_pair.hpp"
#include "simulation/counter_random.hpp"

namespace sdr::experiment {
namespace {

using transport::Site;

constexpr std::uint64_t kStepPackets = 256;
constexpr int kStepsAnRtt = 1000;
constexpr int kRttsAhead = 6;                    // of receives announced
constexpr std::uint64_t kMessagesATransfer = 2;  // with parity
// Of virtual time. Whoever has not come through by then does not.
constexpr Duration kLongestWrite = std::chrono::hours(1);
constexpr Duration kLongestMeeting = std::chrono::hours(3);

// The link on which the ends meet: as far and as fast, and nothing lost.
simulation::LinkSpec without_losses(const simulation::LinkSpec& link) {
  simulation::LinkSpec spec = link;
  spec.loss = spec.reorder = spec.duplicate = 0;
  spec.outages.clear();
  spec.trace.clear();
  return spec;
}

// Never the receiver's memory, nor a message slot, that the sender waits for: transfers stay open until their losses
// are repaired, which takes round trips.
void open_the_window(ConnectionOptions& options, Duration rtt) {
  QueuePairOptions& qp = options.queue_pair;
  if (!qp.rate.limited() || qp.max_message.count == 0) return;
  const Bytes ahead = qp.rate.bytes_in(rtt * kRttsAhead);
  options.posted_ahead = std::max(options.posted_ahead, ahead);
  const std::uint64_t messages = kMessagesATransfer * (ahead.count / qp.max_message.count + 1);
  const std::uint64_t most = std::uint64_t{1} << qp.message_id_bits;
  if (messages > qp.slots) qp.slots = static_cast<std::uint32_t>(std::min(most, std::bit_ceil(messages)));
}

// The Write of one run, from its posting on.
class Run {
 public:
  Run(VirtualPair& pair, const WriteTrial& trial)
      : pair_(pair), trial_(trial), sender_(pair.a()), receiver_(pair.b()) {}

  Result<void> meet(std::span<std::byte> memory) {
    const bool met = pair_.get_ready(kLongestMeeting);
    for (std::uint32_t n = 0; n <= trial_.warm_writes; ++n) {
      const Result<ReceiveHandle> posted = pair_.b().post_receive(memory);
      if (!posted) return posted.error();
    }
    if (met && pair_.get_quiet(kLongestMeeting)) return {};
    return Error{ErrorCode::PeerUnreachable,
                 fmt::format("the two ends did not meet over \"{}\"", simulation::to_string(trial_.link))};
  }

  Result<TrialResult> write(std::span<const std::byte> memory, const simulation::LinkSpec& link) {
    pair_.network().set_link(link);
    const ConnectionStatistics sender_before = sender_.statistics();
    const ConnectionStatistics receiver_before = receiver_.statistics();
    const TimePoint begin = pair_.now();
    const Result<WriteHandle> posted = pair_.a().post_write(memory);
    if (!posted) return posted.error();
    std::optional<WriteCompletion> done;
    const auto is_done = [&] { return (done = sender_.poll_write()).has_value(); };
    TrialResult result;
    if (!pair_.run_until(is_done, kLongestWrite)) {
      result.error = Error{ErrorCode::PeerUnreachable,
                           fmt::format("not complete after {}: {} of {} bytes", to_string(kLongestWrite),
                                       sender_.bytes_acknowledged(), trial_.size.count)};
    } else if (done->error) {
      result.error = done->error;
    }
    result.completion = (done ? done->at : pair_.now()) - begin;
    count(result, sender_before, receiver_before);
    return result;
  }

 private:
  void count(TrialResult& result, const ConnectionStatistics& sender_before,
             const ConnectionStatistics& receiver_before) {
    const ConnectionStatistics sender = sender_.statistics();
    const ConnectionStatistics receiver = receiver_.statistics();
    const simulation::LinkCounts& link = pair_.network().counts(Site::A);
    result.packets_sent = sender.packets_sent - sender_before.packets_sent;
    result.packets_lost = link.lost + link.dropped_by_queue;
    result.queue_drops = link.dropped_by_queue;
    result.packets_received = receiver.packets_received - receiver_before.packets_received;
    result.duplicate_packets = receiver.duplicate_packets - receiver_before.duplicate_packets;
    result.late_packets = receiver.late_packets - receiver_before.late_packets;
    result.chunks_sent = sender.chunks_sent - sender_before.chunks_sent;
    result.chunks_retransmitted = sender.chunks_retransmitted - sender_before.chunks_retransmitted;
    result.parity_chunks_sent = sender.parity_chunks_sent - sender_before.parity_chunks_sent;
    result.chunks_recovered = receiver.chunks_recovered - receiver_before.chunks_recovered;
    result.fallbacks = receiver.fallbacks - receiver_before.fallbacks;
    result.controls_sent = sender.controls_sent - sender_before.controls_sent;
    result.controls_answered = receiver.controls_sent - receiver_before.controls_sent;
  }

  VirtualPair& pair_;
  const WriteTrial& trial_;
  Connection& sender_;
  Connection& receiver_;
};

}  // namespace

// In the order of their declaration.
constexpr std::array kCounts = {&TrialResult::packets_sent,       &TrialResult::packets_lost,
                                &TrialResult::queue_drops,        &TrialResult::packets_received,
                                &TrialResult::duplicate_packets,  &TrialResult::late_packets,
                                &TrialResult::chunks_sent,        &TrialResult::chunks_retransmitted,
                                &TrialResult::parity_chunks_sent, &TrialResult::chunks_recovered,
                                &TrialResult::fallbacks,          &TrialResult::controls_sent,
                                &TrialResult::controls_answered};

TrialResult& TrialResult::operator+=(const TrialResult& other) {
  completion += other.completion;
  for (const auto count : kCounts) this->*count += other.*count;
  return *this;
}

bool operator==(const TrialResult& a, const TrialResult& b) {
  const bool same = std::all_of(kCounts.begin(), kCounts.end(), [&](auto count) { return a.*count == b.*count; });
  if (!same || a.completion != b.completion || a.error.has_value() != b.error.has_value()) return false;
  return !a.error || a.error->message == b.error->message;
}

Bandwidth pace_of(const WriteTrial& trial) {
  const Bandwidth own = trial.connection.queue_pair.rate;
  const Bandwidth link = trial.link.rate;
  return !own.limited() || (link.limited() && link < own) ? link : own;
}

Duration step_of(const WriteTrial& trial) {
  if (trial.step > Duration::zero()) return trial.step;
  const std::uint64_t packet = trial.connection.queue_pair.mtu.count + trial.packet_overhead;
  const Duration packets = pace_of(trial).time_for(Bytes{packet * kStepPackets});
  const Duration share = trial.link.rtt / kStepsAnRtt;
  // Without a rate all is there at once; without a distance only the packets count.
  if (packets == Duration::zero()) return std::max(share, Duration(1));
  return share == Duration::zero() ? packets : std::max(std::min(packets, share), Duration(1));
}

Result<void> check(const WriteTrial& trial) {
  const auto refuse = [](std::string message) { return Error{ErrorCode::InvalidArgument, std::move(message)}; };
  if (trial.size.count < 1 || trial.size > WriteTrial::kLargest)
    return refuse(fmt::format("size {} is not from 1 B to {}", trial.size.count, to_string(WriteTrial::kLargest)));
  if (trial.step < Duration::zero()) return refuse(fmt::format("step {} is below 0", to_string(trial.step)));
  if (!(trial.loss_factor >= 0))
    return refuse(fmt::format("a loss {} times the true one is no belief", trial.loss_factor));
  if (trial.warm_writes > WriteTrial::kMostWarmWrites)
    return refuse(fmt::format("{} Writes before the measured one are more than {}", trial.warm_writes,
                              WriteTrial::kMostWarmWrites));
  return {};
}

Result<TrialResult> run(const WriteTrial& trial, std::uint64_t number, Timeline* timeline) {
  if (Result<void> checked = check(trial); !checked) return checked.error();
  const Result<ReservedMemory> memory = ReservedMemory::reserve(trial.size.count);
  if (!memory) return memory.error();
  simulation::LinkSpec link = trial.link;
  link.seed = simulation::CounterRandom(trial.seed, 0)(number);
  ConnectionOptions options = trial.connection;
  options.queue_pair.rate = pace_of(trial);
  if (trial.known_loss) {
    options.link = std::make_shared<LinkEstimator>();
    const auto wire = static_cast<std::uint32_t>(options.queue_pair.mtu.count + trial.packet_overhead);
    options.link->restore(std::min(1.0, link.loss_of(wire) * trial.loss_factor), link.burst);
  }
  open_the_window(options, link.rtt);
  options.queue_pair.initial_rtt = std::max(Duration(link.rtt), Duration(std::chrono::milliseconds(1)));

  VirtualPair pair({.link = without_losses(link), .carry_payload = false, .packet_overhead = trial.packet_overhead});
  pair.set_step(step_of(trial));
  if (Result<void> opened = pair.open(options); !opened) return opened.error();
  const std::span<std::byte> bytes = memory->bytes().first(trial.size.count);
  Run run(pair, trial);
  if (Result<void> met = run.meet(bytes); !met) return met.error();
  for (std::uint32_t n = 0; n < trial.warm_writes; ++n) {
    simulation::LinkSpec before = link;
    before.seed = simulation::CounterRandom(link.seed, 1)(n);
    Result<TrialResult> warm = run.write(bytes, before);
    if (!warm || warm->error) return warm;
  }
  if (timeline != nullptr) {
    const QueuePairOptions& qp = options.queue_pair;
    const bool coded = options.scheme != Scheme::SrRto && options.scheme != Scheme::SrNack;
    timeline->watch(pair.network(),
                    {.layout = {qp.message_id_bits, qp.packet_offset_bits, qp.user_bits},
                     .slots = qp.slots,
                     .generations = qp.generations,
                     .mtu = pair.a().geometry().mtu,
                     .coded = coded},
                    pair.now());
  }
  Result<TrialResult> result = run.write(bytes, link);
  if (timeline != nullptr && result) timeline->complete(timeline->begin() + result->completion);
  return result;
}

}  // namespace sdr::experiment

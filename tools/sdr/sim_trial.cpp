#include "sdr/sim_trial.hpp"

#include <algorithm>

#include "sdk/table_geometry.hpp"

namespace sdr::cli {
namespace {

// What is missing is named by the receiver, one RTT after it was sent; coded schemes fall back to that.
constexpr double kRepeatAfterNack = 1;

model::SchemeKind kind_of(Scheme scheme) {
  switch (scheme) {
    case Scheme::SrRto:
      return model::SchemeKind::SrRto;
    case Scheme::SrNack:
      return model::SchemeKind::SrNack;
    case Scheme::EcXor:
      return model::SchemeKind::EcXor;
    case Scheme::EcRs:
      return model::SchemeKind::EcRs;
    case Scheme::Adaptive:
      break;
  }
  return model::SchemeKind::Adaptive;
}

}  // namespace

Result<experiment::WriteTrial> write_trial(const simulation::LinkSpec& link, const SchemeChoice& scheme, Bytes size,
                                           const std::string& mtu, const std::string& chunk, std::uint64_t seed) {
  experiment::WriteTrial trial;
  trial.link = link;
  trial.seed = seed;
  trial.link.seed = trial.seed;
  trial.size = size;
  const std::uint16_t carried = link.payload_within(trial.packet_overhead);
  const std::uint32_t usual = link.mtu_given ? std::min<std::uint32_t>(carried, kUsualMtu) : kUsualMtu;
  const std::uint64_t payload = mtu == "auto" ? usual : parse_bytes(mtu)->count;
  const Result<std::uint32_t> packets = packets_per_chunk(chunk, static_cast<std::uint32_t>(payload));
  if (!packets) return packets.error();
  ConnectionOptions& connection = trial.connection;
  connection.scheme = *scheme.scheme;
  connection.data_chunks = scheme.data_chunks;
  connection.parity_chunks = scheme.parity_chunks;
  connection.queue_pair.mtu = {payload};
  connection.queue_pair.packets_per_chunk = *packets;
  // What the packet offset addresses, with small packets.
  QueuePairOptions& qp = connection.queue_pair;
  qp.max_message = std::min(qp.max_message, sdk::addressable(qp));
  if (Result<void> checked = experiment::check(trial); !checked) return checked.error();
  return trial;
}

Result<model::Transfer> transfer_of(const experiment::WriteTrial& trial, std::uint64_t headers) {
  const simulation::LinkSpec& link = trial.link;
  const QueuePairOptions& qp = trial.connection.queue_pair;
  if (!link.outages.empty() || !link.trace.empty())
    return Error{ErrorCode::InvalidArgument, "the theory knows neither outages nor recorded losses"};
  const std::uint64_t chunk = qp.mtu.count * qp.packets_per_chunk;
  const std::uint64_t chunks = (trial.size.count + chunk - 1) / chunk;
  const Bytes wire_chunk{(qp.mtu.count + headers) * qp.packets_per_chunk};
  return model::Transfer::create(
      {.chunk = wire_chunk,
       .packet = Bytes{qp.mtu.count + headers},
       .rate = link.rate,
       .rtt = link.rtt,
       .loss = link.loss_of(static_cast<std::uint32_t>(qp.mtu.count + trial.packet_overhead)),
       .burst = link.burst},
      wire_chunk * chunks);
}

model::SchemeSpec scheme_in_theory(const experiment::WriteTrial& trial) {
  model::SchemeSpec scheme{.kind = kind_of(trial.connection.scheme),
                           .data_chunks = static_cast<unsigned>(trial.connection.data_chunks),
                           .parity_chunks = static_cast<unsigned>(trial.connection.parity_chunks),
                           .rto_rtts = trial.connection.rto_factor,
                           .repair_target = trial.connection.repair_target,
                           .max_overhead = trial.connection.max_overhead};
  if (scheme.coded()) scheme.rto_rtts = kRepeatAfterNack;
  return scheme;
}

Result<model::CompletionTime> time_in_theory(const experiment::WriteTrial& trial) {
  const Result<model::Transfer> transfer = transfer_of(trial, trial.packet_overhead);
  if (!transfer) return transfer.error();
  return model::CompletionTime::of(*transfer, scheme_in_theory(trial));
}

}  // namespace sdr::cli

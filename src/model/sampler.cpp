#include "model/sampler.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "model/loss_tally.hpp"
#include "model/serialised_sender.hpp"

namespace sdr::model {
namespace {

// Chunks in a row, by number on the wire.
struct Stretch {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

// The lost ones among chunks 0 to count - 1.
std::vector<Stretch> lost_stretches(std::uint64_t count, const ChunkLoss& loss, Draws& draws) {
  std::vector<Stretch> lost;
  LossRuns runs(loss, draws);
  for (std::uint64_t at = 0;;) {
    const LossRuns::Run run = runs.next();
    if (run.arrive >= count - at) return lost;
    at += run.arrive;
    const std::uint64_t length = std::min(run.lost, count - at);
    lost.push_back({at, at + length});
    at += length;
    if (at == count) return lost;
  }
}

// Those of `chunks` that a fresh sequence of losses hits. Between stretches the chain is only asked where it stands at
// the next one.
std::vector<Stretch> lost_again(const std::vector<Stretch>& chunks, const ChunkLoss& loss, Draws& draws) {
  const double log_arrives = std::log1p(-loss.run_begins());
  const double log_lost = std::log1p(-loss.run_ends());
  std::vector<Stretch> lost;
  bool before = false;      // the fate of the last chunk looked at
  std::uint64_t place = 0;  // and where it was
  for (const Stretch& stretch : chunks) {
    const double distance = static_cast<double>(stretch.begin - place);
    bool now = draws.happens(&stretch == chunks.data() ? loss.p() : loss.lost_after(before, distance));
    for (std::uint64_t at = stretch.begin; at < stretch.end;) {
      const std::uint64_t length = std::min(1 + draws.failures(now ? log_lost : log_arrives), stretch.end - at);
      if (now) lost.push_back({at, at + length});
      at += length;
      before = now;
      now = !now;
    }
    place = stretch.end - 1;
  }
  return lost;
}

// A lost shard as one number that sorts by submessage.
constexpr std::uint64_t kShards = 256;

// Where shard number `place` of a sequence lies when submessages have `width` such shards, the last, short one
// `last_width`. Interleaved: shard j of every submessage, then shard j + 1.
std::uint64_t shard_at(std::uint64_t place, const CodedMessage& message, std::uint64_t width, std::uint64_t last_width,
                       bool interleaved) {
  if (!interleaved) return place / width * kShards + place % width;
  const std::uint64_t all = message.submessages();
  if (last_width == 0 || place < last_width * all) return place % all * kShards + place / all;
  const std::uint64_t beyond = place - last_width * all;
  return beyond % message.whole * kShards + last_width + beyond / message.whole;
}

}  // namespace

Sampler::Sampler(const Transfer& transfer, const SchemeSpec& scheme, Sender sender)
    : transfer_(transfer),
      scheme_(scheme),
      sender_(sender),
      message_(transfer.chunks(), scheme.coded() ? scheme : SchemeSpec()),
      failure_(message_, scheme.coded() ? scheme : SchemeSpec(),
               transfer.loss().independent() ? transfer.loss() : ChunkLoss()),
      log_loss_(std::log(transfer.loss().p())),
      tail_(transfer, scheme) {}

Result<Sampler> Sampler::create(const Transfer& transfer, const SchemeSpec& scheme, Sender sender) {
  if (Result<void> checked = check(scheme); !checked) return checked.error();
  return Sampler(transfer, scheme, sender);
}

double Sampler::operator()(Draws& draws) const {
  if (scheme_.kind == SchemeKind::Adaptive) return adaptive(draws);
  if (!scheme_.coded()) return repeated(transfer_.chunks(), draws) + transfer_.rtt();
  const double injected = static_cast<double>(message_.chunks + message_.parity_chunks()) * transfer_.injection();
  const std::uint64_t again = undecodable(draws);
  if (again == 0) return injected + transfer_.rtt();
  const double asked_again = injected + (1 + scheme_.fallback_beta) * transfer_.rtt();
  return asked_again + repeated(again, draws) + transfer_.rtt();
}

double Sampler::repeated(std::uint64_t chunks, Draws& draws) const {
  if (transfer_.loss().p() <= 0) return static_cast<double>(chunks) * transfer_.injection();
  if (sender_ == Sender::Serialised) {
    const double timeout = scheme_.period(transfer_) - transfer_.injection();
    return serialised_injection(chunks, transfer_.injection(), timeout, transfer_.loss(), draws);
  }
  return transfer_.loss().independent() ? repeated_independent(chunks, draws) : repeated_in_runs(chunks, draws);
}

// X_i = i T_inj + O (losses of i). A chunk before another one must have been lost more often to be later.
double Sampler::repeated_independent(std::uint64_t chunks, Draws& draws) const {
  const double period = scheme_.period(transfer_);
  double latest = static_cast<double>(chunks) * transfer_.injection();
  double losses = 1;  // that the next chunk must have
  for (std::uint64_t left = chunks; left > 0;) {
    const std::uint64_t passed = draws.failures(std::log1p(-std::exp(losses * log_loss_)));
    if (passed >= left) break;
    left -= passed;
    losses += static_cast<double>(draws.failures(log_loss_));
    latest = std::max(latest, static_cast<double>(left) * transfer_.injection() + losses * period);
    ++losses;
    --left;
  }
  return latest;
}

double Sampler::repeated_in_runs(std::uint64_t chunks, Draws& draws) const {
  const double period = scheme_.period(transfer_);
  double latest = static_cast<double>(chunks) * transfer_.injection();
  std::vector<Stretch> lost = lost_stretches(chunks, transfer_.loss(), draws);
  for (double losses = 1; !lost.empty(); ++losses) {
    latest = std::max(latest, static_cast<double>(lost.back().end) * transfer_.injection() + losses * period);
    lost = lost_again(lost, transfer_.loss(), draws);
  }
  return latest;
}

double Sampler::adaptive(Draws& draws) const {
  const double p = transfer_.loss().p();
  std::uint64_t chunks = transfer_.chunks();
  for (std::uint64_t lost = tail_.head; p > 0 && lost > 0; chunks += lost) lost = draws.successes(lost, p);
  // Repairs of the last round trip: all of them go once more in every pass, until each has arrived once.
  const std::uint64_t exposed = draws.successes(std::min(tail_.head, tail_.tail), p);
  std::uint32_t passes = 0;
  for (std::uint64_t lost = draws.successes(exposed, p); lost > 0; lost = draws.successes(lost, p)) ++passes;
  const std::uint32_t layers = layers_needed(draws);
  const std::uint32_t copies = tail_.cover.copies;
  std::uint32_t sent_layers = std::min(layers, tail_.plan.parity_each);
  bool again = layers > tail_.plan.parity_each;
  if (tail_.cover.code.submessages > 0) {
    // Parity over the repairs, before that of the tail.
    again = draws.happens(tail_.cover.code.failure) || again;
    if (passes > 0 || layers > 0) chunks += tail_.cover_parity();
  } else {
    again = passes > copies || again;
    if (passes > 0) sent_layers = tail_.plan.parity_each;
    chunks += std::min(passes, copies) * exposed;
  }
  chunks += std::uint64_t{sent_layers} * tail_.plan.submessages;
  const double rtts = 1 + (again ? 1 + kSettleRtts : 0);
  return static_cast<double>(chunks) * transfer_.injection() + rtts * transfer_.rtt();
}

std::uint32_t Sampler::layers_needed(Draws& draws) const {
  if (transfer_.loss().p() <= 0 || tail_.tail == 0) return 0;
  const std::uint64_t submessages = std::max<std::uint32_t>(tail_.plan.submessages, 1);
  std::vector<std::uint64_t> lost;  // by submessage, data before parity
  for (const Stretch& run : lost_stretches(tail_.tail + tail_.parity_chunks(), transfer_.loss(), draws)) {
    for (std::uint64_t at = run.begin; at < run.end; ++at) {
      const std::uint64_t shard = at < tail_.tail ? 0 : 1 + (at - tail_.tail) / submessages;
      const std::uint64_t place = at < tail_.tail ? at : at - tail_.tail;
      lost.push_back(place % submessages * kShards + shard);
    }
  }
  std::sort(lost.begin(), lost.end());
  std::uint32_t most = 0;
  for (std::size_t i = 0; i < lost.size();) {
    const std::uint64_t submessage = lost[i] / kShards;
    std::uint32_t needed = 0;
    for (; i < lost.size() && lost[i] / kShards == submessage; ++i) {
      // A parity chunk beyond those that are needed so far is not missed.
      const std::uint64_t shard = lost[i] % kShards;
      if (shard == 0 || shard <= needed) ++needed;
    }
    most = std::max(most, needed);
  }
  return most;
}

std::uint64_t Sampler::undecodable(Draws& draws) const {
  if (!scheme_.coded() || transfer_.loss().p() <= 0) return 0;
  return transfer_.loss().independent() ? undecodable_independent(draws) : undecodable_in_runs(draws);
}

// The order of the chunks does not matter: submessage by submessage, data and parity.
std::uint64_t Sampler::undecodable_independent(Draws& draws) const {
  const std::uint64_t chunks = message_.chunks + message_.parity_chunks();
  if (static_cast<double>(chunks) * transfer_.loss().p() > kCountedLosses) {
    const std::uint64_t last = draws.happens(failure_.last) ? message_.last_k : 0;
    return draws.successes(message_.whole, failure_.whole) * message_.k + last;
  }
  const double log_arrives = std::log1p(-transfer_.loss().p());
  const std::uint64_t width = message_.k + message_.m;
  std::uint64_t again = 0;
  for (std::uint64_t at = draws.failures(log_arrives); at < chunks;) {
    const std::uint64_t submessage = at / width;
    const bool whole = submessage < message_.whole;
    LossTally tally(scheme_.kind, whole ? message_.k : message_.last_k, whole ? message_.m : message_.last_m);
    for (; at < chunks && at / width == submessage; at += 1 + draws.failures(log_arrives)) {
      tally.lose(static_cast<unsigned>(at % width));
    }
    if (!tally.decodes()) again += whole ? message_.k : message_.last_k;
  }
  return again;
}

// All data chunks in the order of the wire, then all parity chunks.
std::uint64_t Sampler::undecodable_in_runs(Draws& draws) const {
  std::vector<std::uint64_t> lost;
  for (const Stretch& run : lost_stretches(message_.chunks, transfer_.loss(), draws)) {
    for (std::uint64_t at = run.begin; at < run.end; ++at) {
      lost.push_back(shard_at(at, message_, message_.k, message_.last_k, scheme_.interleaved));
    }
  }
  for (const Stretch& run : lost_stretches(message_.parity_chunks(), transfer_.loss(), draws)) {
    for (std::uint64_t at = run.begin; at < run.end; ++at) {
      const std::uint64_t shard = shard_at(at, message_, message_.m, message_.last_m, scheme_.interleaved);
      lost.push_back(shard + (shard / kShards < message_.whole ? message_.k : message_.last_k));
    }
  }
  std::sort(lost.begin(), lost.end());
  std::uint64_t again = 0;
  for (std::size_t i = 0; i < lost.size();) {
    const std::uint64_t submessage = lost[i] / kShards;
    const bool whole = submessage < message_.whole;
    LossTally tally(scheme_.kind, whole ? message_.k : message_.last_k, whole ? message_.m : message_.last_m);
    for (; i < lost.size() && lost[i] / kShards == submessage; ++i)
      tally.lose(static_cast<unsigned>(lost[i] % kShards));
    if (!tally.decodes()) again += whole ? message_.k : message_.last_k;
  }
  return again;
}

}  // namespace sdr::model

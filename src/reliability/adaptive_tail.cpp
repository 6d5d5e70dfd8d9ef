#include "reliability/adaptive_tail.hpp"

#include <algorithm>
#include <cmath>

#include "coding/parity_budget.hpp"

namespace sdr::reliability {
namespace {

// A gap is sampled and settled (a tolerance each), and may just have missed its report.
constexpr int kNoticeTolerances = 3;
// Parity chunks per data chunk while other Writes wait: it is their time.
constexpr double kMostWhenBusy = 0.25;
// Plans are made for losses on a ladder of such steps, upwards: an estimate that moves a little changes nothing.
constexpr double kLossStep = 1.05;
// Round trips with the news of a loss, that Writes behind must last for one's tail to need no parity.
constexpr std::uint64_t kHidingNotices = 2;
// Runs of at most this are taken for independent losses.
constexpr double kIndependent = 1.25;
// Copies of a repair are so many mean bursts apart.
constexpr double kBurstsApart = 4;

double step_up(double value) {
  return std::pow(kLossStep, std::ceil(std::log(value) / std::log(kLossStep) - 1e-9));
}

}  // namespace

void AdaptiveTail::assume(const LinkEstimate& link, Bandwidth pace, const Timing& timing) {
  link_ = link;
  pace_ = pace.limited() ? pace : link.delivery_rate;
  rtt_ = timing.rtt.smoothed();
  notice_ = rtt_ + kNoticeTolerances * timing.tolerance();
  repair_notice_ = notice_ + timing.behind_repair();
}

std::uint64_t AdaptiveTail::bytes_in(Duration time) const {
  return pace_.limited() ? pace_.bytes_in(time).count : UINT64_MAX;
}

bool AdaptiveTail::hides_repairs(std::uint64_t bytes_behind, std::uint64_t bytes_open) const {
  if (!pace_.limited()) return false;
  const std::uint64_t hidden = kHidingNotices * exposed_bytes();
  return bytes_behind >= hidden && bytes_open >= hidden + bytes_in(rtt_);
}

std::uint32_t AdaptiveTail::parity_most(const TransferShape& shape, std::uint32_t tail, bool alone) const {
  double most = shape.max_overhead * tail;
  if (!alone) {
    most = std::min(most, kMostWhenBusy * tail);
  } else {
    most = std::max(most, coding::kLeastParity);
    if (shape.max_overhead >= 1 && pace_.limited())
      most = std::max(most, static_cast<double>(bytes_in(rtt_ / coding::kFreeShare)) / shape.chunk_bytes);
  }
  return static_cast<std::uint32_t>(std::min(most, static_cast<double>(shape.adaptive_parity_most(tail))));
}

coding::LossProcess AdaptiveTail::chunk_loss(const TransferShape& shape) const {
  if (link_.loss_upper <= 0) return {0, 1};
  const double packet = std::min(link_.loss_upper, 1.0);
  const double chunk = -std::expm1(shape.packets_per_chunk * std::log1p(-std::min(packet, 1 - 1e-12)));
  return {std::min(coding::kMostLoss, step_up(chunk)), link_.burst <= kIndependent ? 1.0 : step_up(link_.burst)};
}

CodingLayout AdaptiveTail::layout(const TransferShape& shape, std::uint64_t bytes, std::uint64_t offset,
                                  std::uint64_t write_bytes, bool alone) {
  const std::uint64_t behind = write_bytes - offset - bytes;
  const std::uint32_t chunks = shape.chunks_of(bytes);
  const std::uint64_t exposed = exposed_bytes();
  if (chunks == 0 || behind >= exposed) return CodingLayout::uncoded(chunks);
  const std::uint32_t tail = std::min(chunks, shape.chunks_of(std::min(bytes, exposed - behind)));
  const coding::LossProcess process = chunk_loss(shape);
  // Its part of what may fail of the Write.
  const double share = tail / static_cast<double>(shape.chunks_of(std::min(write_bytes, exposed)));
  const double target = shape.repair_target * std::min(1.0, share);
  const std::uint32_t most = parity_most(shape, tail, alone);
  if (last_.chunks != tail || last_.process != process || last_.target != target || last_.most != most)
    last_ = {tail, most, process, target, coding::plan_parity(tail, process, target, most)};
  return {chunks, chunks - tail, last_.plan.submessages, last_.plan.parity_each};
}

TransferSender::Covering AdaptiveTail::covering(const TransferShape& shape, std::uint64_t bytes_left,
                                                std::uint64_t write_chunks, double lost) const {
  const std::uint64_t exposed = bytes_in(repair_notice_);
  if (bytes_left >= exposed) return {};
  coding::LossProcess process = chunk_loss(shape);
  process.loss = std::max(process.loss, lost);
  if (process.loss <= 0 || process.loss > coding::kMostLoss) return {};
  // Repairs that may be lost: those of a round trip, or of all that there is.
  const double chunks = std::min(static_cast<double>(write_chunks),
                                 static_cast<double>(exposed) / static_cast<double>(shape.chunk_bytes));
  TransferSender::Covering covering;
  covering.copies = coding::copies_to_cover(chunks * process.loss, process.loss, shape.repair_target);
  if (process.burst > 1 && pace_.limited())
    covering.spacing = pace_.time_for({static_cast<std::uint64_t>(process.burst * kBurstsApart * shape.chunk_bytes)});
  return covering;
}

coding::CoverPlan AdaptiveTail::cover_plan(const TransferShape& shape, const Repairs& repairs) const {
  coding::LossProcess process = chunk_loss(shape);
  process.loss = std::min(std::max(process.loss, repairs.lost), coding::kMostLoss);
  const double timeless = pace_.limited() ? static_cast<double>(bytes_in(rtt_ / coding::kFreeShare)) / shape.chunk_bytes
                                          : static_cast<double>(UINT32_MAX);
  const double free = repairs.share * std::max(timeless, static_cast<double>(coding::kFewCovers));
  return coding::plan_cover(repairs.count, process, repairs.share * shape.repair_target,
                            static_cast<std::uint64_t>(free), repairs.parity_most, repairs.longest);
}

std::uint32_t AdaptiveTail::statements(const TransferShape& shape, std::uint32_t of) const {
  const double loss = std::min(link_.loss_upper, coding::kMostLoss);
  return 2 + coding::copies_to_cover(of, loss, shape.repair_target);
}

}  // namespace sdr::reliability

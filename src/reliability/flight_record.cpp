#include "reliability/flight_record.hpp"

#include <algorithm>

namespace sdr::reliability {

void FlightRecord::offered(Stamp stamp, std::uint64_t packets, std::uint64_t bytes, const Mark& mark,
                           bool app_limited) {
  newest_ = std::max(newest_, stamp);
  offered_ = packets;
  limited_ += app_limited ? 1U : 0U;
  offers_[next_++ % kOffers] = {.stamp = stamp,
                                .packets = packets,
                                .bytes = bytes,
                                .mark = mark,
                                .limited = limited_,
                                .last_answered = answered_.stamp,
                                .last_arrival = arrival_,
                                .last_limited = answered_.limited};
}

std::optional<FlightRecord::Sample> FlightRecord::landed(const Word& word, TimePoint now) {
  if (word.echo == 0 || word.echo <= answered_.stamp || word.landed < landed_) return std::nullopt;
  const auto found =
      std::find_if(offers_.begin(), offers_.end(), [&word](const Offer& offer) { return offer.stamp == word.echo; });
  if (found == offers_.end() || found->packets < answered_.packets) return std::nullopt;
  const Offer& offer = *found;
  Sample sample;
  sample.packets_landed = word.landed - landed_;
  const std::uint64_t sent = offer.packets - answered_.packets;
  const double mean = sent > 0 ? static_cast<double>(offer.bytes - answered_.bytes) / static_cast<double>(sent)
                      : offer.packets > 0 ? static_cast<double>(offer.bytes) / static_cast<double>(offer.packets)
                                          : 0;
  sample.delivered = static_cast<std::uint64_t>(mean * static_cast<double>(sample.packets_landed));
  sample.sent = offer.bytes - answered_.bytes;
  missing_[word_++ % kWords] = offer.packets - std::min(offer.packets, word.landed);
  const std::uint64_t missing = word_ < kWords ? 0 : *std::min_element(missing_.begin(), missing_.end());
  if (missing > lost_) {
    sample.packets_lost = missing - lost_;
    sample.lost = static_cast<std::uint64_t>(mean * static_cast<double>(sample.packets_lost));
    lost_ = missing;
  }
  sample.marks = word.marks - std::min(word.marks, marks_);
  const auto time = [](std::uint64_t to, std::uint64_t from) {
    return Duration(from == 0 || to <= from ? 0 : static_cast<std::int64_t>(to - from));
  };
  sample.landed_in = time(word.arrival, offer.last_arrival);
  sample.sent_in = time(offer.stamp, offer.last_answered);
  sample.apart_there = time(word.arrival, arrival_);
  sample.apart_here = time(offer.stamp, answered_.stamp);
  const Stamp stamp = to_stamp(now);
  const std::uint64_t round = stamp - std::min(stamp, word.echo);
  // A peer that reads its clock once a round is off by up to a round in what it says of its holding time.
  if (word.held == Duration::zero())
    sample.rtt = Duration(static_cast<std::int64_t>(std::max<std::uint64_t>(round, 1)));
  sample.delay = Duration(static_cast<std::int64_t>(word.arrival - word.echo));
  sample.mark = offer.mark;
  sample.app_limited = offer.limited > offer.last_limited;
  answered_ = offer;
  arrival_ = word.arrival;
  landed_ = word.landed;
  marks_ = std::max(marks_, word.marks);
  return sample;
}

}  // namespace sdr::reliability

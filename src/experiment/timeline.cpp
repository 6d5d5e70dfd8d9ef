#include "experiment/timeline.hpp"

#include <algorithm>
#include <variant>

#include "reliability/control_message.hpp"
#include "sdk/control_message.hpp"

namespace sdr::experiment {

using transport::PacketView;
using transport::Site;

void Timeline::watch(transport::SimulatedNetwork& network, const MessageMap& map, TimePoint begin) {
  map_ = map;
  begin_ = begin;
  for (const Site site : {Site::A, Site::B}) {
    network.set_observer(site, [this, site](const PacketView& view, const simulation::Fate& fate) {
      note(view, fate, site == Site::B);
    });
  }
}

void Timeline::complete(TimePoint at) {
  completed_ = at;
  for (Passage& passage : passages_) {
    if (passage.cargo == Cargo::Data || passage.cargo == Cargo::Repair) {
      passage.position += transfer(passage.transfer).offset;
    }
  }
}

void Timeline::note(const PacketView& view, const simulation::Fate& fate, bool backward) {
  if (completed_ != kNever) return;
  Passage passage{.sent = view.now,
                  .departed = fate.drop == simulation::Drop::Queue ? view.now : fate.departure,
                  .arrived = fate.copies == 0 ? kNever : fate.arrival[0],
                  .bytes = view.length,
                  .backward = backward};
  if (view.kind == PacketView::Kind::Data) {
    note_packet(view, passage);
  } else {
    note_datagram(view, passage);
  }
  passages_.push_back(passage);
  if (fate.copies == 2) {
    passage.arrived = fate.arrival[1];
    passage.duplicate = true;
    passages_.push_back(passage);
  }
}

Timeline::Seen& Timeline::transfer(std::uint64_t number) {
  if (number >= transfers_.size()) transfers_.resize(number + 1);
  return transfers_[number];
}

// Slot and generation are the number modulo slots times generations; the one nearest to the latest is meant.
std::uint64_t Timeline::message_of(std::uint32_t slot, std::uint8_t generation) {
  const std::uint64_t cycle = std::uint64_t{map_.slots} * map_.generations;
  const std::uint64_t within = std::uint64_t{generation} * map_.slots + slot;
  std::uint64_t number = latest_message_ / cycle * cycle + within;
  if (number > latest_message_ + cycle / 2 && number >= cycle) number -= cycle;
  if (number + cycle / 2 < latest_message_) number += cycle;
  latest_message_ = std::max(latest_message_, number);
  return number;
}

void Timeline::note_packet(const PacketView& view, Passage& passage) {
  const core::Immediate where = map_.layout.decode(view.immediate);
  const std::uint64_t message = message_of(where.slot.value, view.generation.value);
  passage.transfer = static_cast<std::uint32_t>(map_.coded ? message / 2 : message);
  passage.position = std::uint64_t{where.offset.value} * map_.mtu;
  if (map_.coded && message % 2 == 1) {
    passage.cargo = Cargo::Parity;
    return;
  }
  Seen& seen = transfer(passage.transfer);
  if (passage.position < seen.reach) passage.cargo = Cargo::Repair;
  seen.reach = std::max(seen.reach, passage.position + view.length);
}

void Timeline::note_datagram(const PacketView& view, Passage& passage) {
  passage.cargo = Cargo::Grant;
  const auto message = sdk::parse_control(view.bytes);
  if (!message) return;
  if (const auto* upper = std::get_if<sdk::UpperDatagram>(&*message)) note_upper(upper->body, passage);
}

void Timeline::note_upper(std::span<const std::byte> body, Passage& passage) {
  auto message = reliability::parse(body);
  passage.cargo = Cargo::Ping;
  if (!message) return;
  if (auto* offers = std::get_if<reliability::OffersReader>(&*message)) {
    passage.cargo = Cargo::Offer;
    while (const auto offer = offers->next()) transfer(offer->transfer).offset = offer->offset;
  }
  if (auto* reports = std::get_if<reliability::ReportsReader>(&*message)) {
    // Completed transfers are not named one by one: all below a number are.
    const std::uint64_t below = reports->header.completed_below;
    const bool news = below != 0 && (below > completed_below_ || below == transfers_.size());
    passage.cargo = news ? Cargo::Done : Cargo::Report;
    completed_below_ = std::max(completed_below_, below);
    reliability::Report report;
    while (reports->next(report)) {
      if (report.complete) passage.cargo = Cargo::Done;
      if (!report.missing.empty() && passage.cargo == Cargo::Report) passage.cargo = Cargo::Nack;
    }
  }
}

}  // namespace sdr::experiment

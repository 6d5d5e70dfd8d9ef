#include "reliability/control_message.hpp"

#include <algorithm>

namespace sdr::reliability {
namespace {

enum class Kind : std::uint8_t { Ping = 1, Pong = 2, Offers = 3, Reports = 4, RepairGroups = 5 };
constexpr std::uint8_t kFullSize = 1;  // flag of Ping and Pong
constexpr std::uint8_t kQuestion = 1;  // flag of Offers
constexpr std::uint8_t kAllSent = 1;   // flags of an offer
constexpr std::uint8_t kImmediate = 2;
constexpr std::uint8_t kTailCode = 4;
constexpr std::uint8_t kComplete = 1;  // flags of a report
constexpr std::uint8_t kHoles = 2;
constexpr std::size_t kOfferBytes = 8 * 4 + 1 + 4;
constexpr std::size_t kTailCodeBytes = 4 + 4 + 2;
constexpr std::size_t kLossBytes = 4 + 4;  // of a complete report
constexpr std::size_t kReportFixedBytes = 8 + 1 + 4 * 3 + 2;
constexpr std::size_t kRepairGroupsBytes = 1 + 1 + 8 + 4 + 4 + 1 + 1;

void head(ByteWriter& writer, Kind kind) {
  writer.u8(static_cast<std::uint8_t>(kind));
  writer.u8(kReliabilityVersion);
}

}  // namespace

std::optional<Message> parse(std::span<const std::byte> datagram) {
  ByteReader reader(datagram);
  const auto kind = static_cast<Kind>(reader.u8());
  if (reader.u8() != kReliabilityVersion || !reader.ok()) return std::nullopt;
  switch (kind) {
    case Kind::Ping: {
      const Stamp stamp = reader.u64();
      const bool full = (reader.u8() & kFullSize) != 0;
      return reader.ok() ? std::optional<Message>(Ping{stamp, full}) : std::nullopt;
    }
    case Kind::Pong: {
      const Stamp stamp = reader.u64();
      const bool full = (reader.u8() & kFullSize) != 0;
      return reader.ok() ? std::optional<Message>(Pong{stamp, full}) : std::nullopt;
    }
    case Kind::Offers: {
      OffersHeader header;
      header.stamp = reader.u64();
      header.settled_below = reader.u64();
      header.rate_bits = reader.u64();
      header.question = (reader.u8() & kQuestion) != 0;
      if (!reader.ok()) return std::nullopt;
      return OffersReader(header, reader);
    }
    case Kind::Reports: {
      ReportsHeader header;
      header.echo = reader.u64();
      header.echo_newest = reader.u64();
      header.echo_held = reader.u64();
      header.completed_below = reader.u64();
      header.packets_landed = reader.u64();
      header.arrival = reader.u64();
      header.marks = reader.u64();
      if (!reader.ok()) return std::nullopt;
      return ReportsReader(header, reader);
    }
    case Kind::RepairGroups: {
      RepairGroupsHeader header;
      header.transfer = reader.u64();
      header.block.parity_first = reader.u32();
      header.block.groups = reader.u32();
      header.block.data_each = reader.u8();
      header.block.parity_each = reader.u8();
      if (!reader.ok()) return std::nullopt;
      return RepairGroupsReader(header, reader);
    }
  }
  return std::nullopt;
}

std::optional<Offer> OffersReader::next() {
  if (records_.left() < kOfferBytes) return std::nullopt;
  Offer offer;
  offer.transfer = records_.u64();
  offer.write = records_.u64();
  offer.write_length = records_.u64();
  offer.offset = records_.u64();
  const std::uint8_t flags = records_.u8();
  const std::uint32_t immediate = records_.u32();
  offer.all_sent = (flags & kAllSent) != 0;
  if ((flags & kImmediate) != 0) offer.immediate = immediate;
  if ((flags & kTailCode) != 0) {
    TailCode code;
    code.first = records_.u32();
    code.submessages = records_.u32();
    code.parity_each = records_.u16();
    if (!records_.ok()) return std::nullopt;
    offer.code = code;
  }
  return offer;
}

bool ReportsReader::next(Report& report) {
  if (records_.left() < kReportFixedBytes) return false;
  report.transfer = records_.u64();
  const std::uint8_t flags = records_.u8();
  report.complete = (flags & kComplete) != 0;
  report.base = records_.u32();
  report.from = records_.u32();
  report.horizon = records_.u32();
  if (report.from < report.base) return false;
  const std::uint16_t ranges = records_.u16();
  report.lost = report.complete ? records_.u32() : 0;
  report.runs = report.complete ? records_.u32() : 0;
  report.missing.clear();
  std::uint64_t at = report.from;
  for (std::uint16_t i = 0; i < ranges; ++i) {
    const std::uint64_t gap = records_.varint();
    const std::uint64_t count = records_.varint();
    if (!records_.ok() || count == 0 || at > report.horizon || gap > report.horizon - at) return false;
    const std::uint64_t first = at + gap;
    if (count > report.horizon - first) return false;
    report.missing.push_back({static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(count)});
    at = first + count;
  }
  report.holes.clear();
  const std::uint16_t holes = (flags & kHoles) != 0 ? records_.u16() : std::uint16_t{0};
  at = report.from;
  for (std::uint16_t i = 0; i < holes; ++i) {
    const std::uint64_t gap = records_.varint();
    const std::uint64_t packets = records_.varint();
    if (!records_.ok() || packets == 0 || at >= report.horizon || gap >= report.horizon - at) return false;
    report.holes.push_back({static_cast<std::uint32_t>(at + gap), packets});
    at += gap + 1;
  }
  return records_.ok();
}

bool RepairGroupsReader::next(RepairGroup& group) {
  if (records_.left() == 0) return false;
  const std::uint64_t number = records_.varint();
  const std::uint64_t count = records_.varint();
  if (!records_.ok() || number >= header.block.groups || count == 0 || count > header.block.data_each) return false;
  group.group = static_cast<std::uint32_t>(number);
  group.chunks.clear();
  for (std::uint64_t i = 0, at = 0; i < count; ++i) {
    const std::uint64_t gap = records_.varint();
    if (!records_.ok() || gap > UINT32_MAX || at + gap > UINT32_MAX) return false;
    group.chunks.push_back(static_cast<std::uint32_t>(at + gap));
    at += gap + 1;
  }
  return true;
}

void write(ByteWriter& writer, const Ping& ping, std::size_t pad_to) {
  head(writer, Kind::Ping);
  writer.u64(ping.stamp);
  writer.u8(ping.full_size ? kFullSize : 0);
  while (writer.ok() && writer.size() < pad_to) writer.u8(0);
}

void write(ByteWriter& writer, const Pong& pong) {
  head(writer, Kind::Pong);
  writer.u64(pong.stamp);
  writer.u8(pong.full_size ? kFullSize : 0);
}

void write(ByteWriter& writer, const OffersHeader& header) {
  head(writer, Kind::Offers);
  writer.u64(header.stamp);
  writer.u64(header.settled_below);
  writer.u64(header.rate_bits);
  writer.u8(header.question ? kQuestion : 0);
}

void write(ByteWriter& writer, const ReportsHeader& header) {
  head(writer, Kind::Reports);
  writer.u64(header.echo);
  writer.u64(header.echo_newest);
  writer.u64(header.echo_held);
  writer.u64(header.completed_below);
  writer.u64(header.packets_landed);
  writer.u64(header.arrival);
  writer.u64(header.marks);
}

bool append(ByteWriter& writer, const Offer& offer) {
  if (writer.room() < kOfferBytes + (offer.code ? kTailCodeBytes : 0)) return false;
  writer.u64(offer.transfer);
  writer.u64(offer.write);
  writer.u64(offer.write_length);
  writer.u64(offer.offset);
  writer.u8(static_cast<std::uint8_t>((offer.all_sent ? kAllSent : 0) | (offer.immediate ? kImmediate : 0) |
                                      (offer.code ? kTailCode : 0)));
  writer.u32(offer.immediate.value_or(0));
  if (offer.code) {
    writer.u32(offer.code->first);
    writer.u32(offer.code->submessages);
    writer.u16(offer.code->parity_each);
  }
  return true;
}

std::optional<std::uint32_t> append(ByteWriter& writer, const Report& report) {
  std::size_t left = writer.room();
  const std::size_t fixed = kReportFixedBytes + (report.complete ? kLossBytes : 0);
  if (left < fixed) return std::nullopt;
  left -= fixed;
  std::size_t ranges = 0;
  for (std::uint32_t at = report.from; ranges < std::min<std::size_t>(report.missing.size(), UINT16_MAX); ++ranges) {
    const ChunkRange& range = report.missing[ranges];
    const std::size_t bytes = ByteWriter::varint_bytes(range.first - at) + ByteWriter::varint_bytes(range.count);
    if (bytes > left) break;
    left -= bytes;
    at = range.first + range.count;
  }
  if (ranges == 0 && !report.missing.empty()) return std::nullopt;
  // What is cut off is not told: the horizon ends with the last range that is.
  const std::uint32_t horizon = ranges < report.missing.size()
                                    ? report.missing[ranges - 1].first + report.missing[ranges - 1].count
                                    : report.horizon;
  std::size_t holes = 0;
  left -= std::min<std::size_t>(left, 2);
  for (std::uint32_t at = report.from; holes < std::min<std::size_t>(report.holes.size(), UINT16_MAX); ++holes) {
    const ChunkHole& hole = report.holes[holes];
    const std::size_t bytes = ByteWriter::varint_bytes(hole.chunk - at) + ByteWriter::varint_bytes(hole.packets);
    if (hole.chunk >= horizon || bytes > left) break;
    left -= bytes;
    at = hole.chunk + 1;
  }
  writer.u64(report.transfer);
  writer.u8(static_cast<std::uint8_t>((report.complete ? kComplete : 0) | (holes > 0 ? kHoles : 0)));
  writer.u32(report.base);
  writer.u32(report.from);
  writer.u32(horizon);
  writer.u16(static_cast<std::uint16_t>(ranges));
  if (report.complete) {
    writer.u32(report.lost);
    writer.u32(report.runs);
  }
  std::uint32_t at = report.from;
  for (std::size_t i = 0; i < ranges; ++i) {
    writer.varint(report.missing[i].first - at);
    writer.varint(report.missing[i].count);
    at = report.missing[i].first + report.missing[i].count;
  }
  if (holes == 0) return horizon;
  writer.u16(static_cast<std::uint16_t>(holes));
  at = report.from;
  for (std::size_t i = 0; i < holes; ++i) {
    writer.varint(report.holes[i].chunk - at);
    writer.varint(report.holes[i].packets);
    at = report.holes[i].chunk + 1;
  }
  return horizon;
}

void write(ByteWriter& writer, const RepairGroupsHeader& header) {
  head(writer, Kind::RepairGroups);
  writer.u64(header.transfer);
  writer.u32(header.block.parity_first);
  writer.u32(header.block.groups);
  writer.u8(header.block.data_each);
  writer.u8(header.block.parity_each);
}

bool append(ByteWriter& writer, std::uint32_t group, std::span<const std::uint32_t> chunks) {
  std::size_t bytes = ByteWriter::varint_bytes(group) + ByteWriter::varint_bytes(chunks.size());
  std::uint32_t at = 0;
  for (const std::uint32_t chunk : chunks) {
    bytes += ByteWriter::varint_bytes(chunk - at);
    at = chunk + 1;
  }
  if (bytes > writer.room()) return false;
  writer.varint(group);
  writer.varint(chunks.size());
  at = 0;
  for (const std::uint32_t chunk : chunks) {
    writer.varint(chunk - at);
    at = chunk + 1;
  }
  return true;
}

std::size_t most_of_a_repair_group(std::size_t datagram_bytes, std::uint32_t chunks) {
  const std::size_t number = ByteWriter::varint_bytes(chunks);
  const std::size_t fixed = kRepairGroupsBytes + number + 2;
  return datagram_bytes <= fixed ? 0 : (datagram_bytes - fixed) / number;
}

}  // namespace sdr::reliability

#include "sdk/control_message.hpp"

namespace sdr::sdk {
namespace {

enum class Kind : std::uint8_t { ClearToSend = 1, GrantsKnown = 2, LandingReport = 3, LandingProbe = 4, Upper = 5 };

void header(ByteWriter& writer, Kind kind) {
  writer.u8(static_cast<std::uint8_t>(kind));
  writer.u8(kControlVersion);
}

}  // namespace

std::optional<ControlMessage> parse_control(std::span<const std::byte> datagram) {
  ByteReader reader(datagram);
  const auto kind = static_cast<Kind>(reader.u8());
  const std::uint8_t version = reader.u8();
  if (!reader.ok() || version != kControlVersion) return std::nullopt;
  std::optional<ControlMessage> message;
  switch (kind) {
    case Kind::ClearToSend: {
      ClearToSend cts;
      cts.posted = reader.u64();
      cts.first = reader.u64();
      if (reader.ok()) cts.announcements = reader.bytes(reader.left());
      message = cts;
      break;
    }
    case Kind::GrantsKnown: {
      GrantsKnown known;
      known.known = reader.u64();
      known.wanted = reader.u8() != 0;
      message = known;
      break;
    }
    case Kind::LandingReport: {
      LandingReport report;
      report.landed = reader.u64();
      report.probe = reader.u64();
      message = report;
      break;
    }
    case Kind::LandingProbe:
      message = LandingProbe{reader.u64()};
      break;
    case Kind::Upper:
      message = UpperDatagram{reader.bytes(reader.left())};
      break;
  }
  return reader.ok() && reader.left() == 0 ? message : std::nullopt;
}

void begin_cts(ByteWriter& writer, std::uint64_t posted, std::uint64_t first) {
  header(writer, Kind::ClearToSend);
  writer.u64(posted);
  writer.u64(first);
}

bool put_announcement(ByteWriter& writer, const Announcement& announcement, std::uint16_t repeat) {
  const std::size_t needed = 2 + 8 + 8 + 1 + std::size_t{announcement.aim.size};
  if (writer.room() < needed) return false;
  writer.u16(repeat);
  writer.u64(announcement.tag);
  writer.u64(announcement.max_length);
  writer.u8(announcement.aim.size);
  writer.bytes(std::span(announcement.aim.bytes).first(announcement.aim.size));
  return true;
}

std::optional<AnnouncementRun> next_announcement(ByteReader& reader) {
  if (reader.left() == 0) return std::nullopt;
  AnnouncementRun run;
  run.repeat = reader.u16();
  run.announcement.tag = reader.u64();
  run.announcement.max_length = reader.u64();
  run.announcement.aim.size = reader.u8();
  if (!reader.ok() || run.announcement.aim.size > transport::Aim::kCapacity) return std::nullopt;
  const auto aim = reader.bytes(run.announcement.aim.size);
  if (!reader.ok()) return std::nullopt;
  for (std::size_t i = 0; i < aim.size(); ++i) run.announcement.aim.bytes[i] = aim[i];
  return run;
}

void write_control(ByteWriter& writer, const GrantsKnown& message) {
  header(writer, Kind::GrantsKnown);
  writer.u64(message.known);
  writer.u8(message.wanted ? 1 : 0);
}

void write_control(ByteWriter& writer, const LandingReport& message) {
  header(writer, Kind::LandingReport);
  writer.u64(message.landed);
  writer.u64(message.probe);
}

void write_control(ByteWriter& writer, const LandingProbe& message) {
  header(writer, Kind::LandingProbe);
  writer.u64(message.sent);
}

void write_upper_header(ByteWriter& writer) {
  header(writer, Kind::Upper);
}

}  // namespace sdr::sdk

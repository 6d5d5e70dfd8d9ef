// The SDK's control messages: parsed once, at the edge, into a typed message.
//
// Every one may be lost, duplicated, reordered or forged; all of them are idempotent statements of what the sender of
// the message knows, never commands. docs/wire-format.md has the bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <variant>

#include "transport/transport.hpp"
#include "units/byte_codec.hpp"

namespace sdr::sdk {

inline constexpr std::uint8_t kControlVersion = 1;

// A receive as the receiver announces it: what the sender may send into it, and how to aim there.
struct Announcement {
  std::uint64_t max_length = 0;
  std::uint64_t tag = 0;
  transport::Aim aim;
};

// Clear to send: receives [0, posted) are posted; announcements of [first, first + n) follow.
struct ClearToSend {
  std::uint64_t posted = 0;
  std::uint64_t first = 0;
  std::span<const std::byte> announcements;  // parsed by next_announcement()
};
// "I know the receives below `known`": answers a repeated CTS, and with `wanted` asks for the ones behind.
struct GrantsKnown {
  std::uint64_t known = 0;
  bool wanted = false;
};
// How many bytes have left the socket at the receiver so far; echoes the probe that asked, if one did.
struct LandingReport {
  std::uint64_t landed = 0;
  std::uint64_t probe = 0;  // LandingProbe::sent, 0 when unasked
};
// "I have sent `sent` bytes so far: how many have landed?"
struct LandingProbe {
  std::uint64_t sent = 0;
};
// A datagram of the layer above.
struct UpperDatagram {
  std::span<const std::byte> body;
};

using ControlMessage = std::variant<ClearToSend, GrantsKnown, LandingReport, LandingProbe, UpperDatagram>;

inline constexpr std::size_t kControlHeader = 2;  // kind, version

// Nothing for a datagram that is too short, of another version or of an unknown kind.
std::optional<ControlMessage> parse_control(std::span<const std::byte> datagram);

// Begin and end of a CTS; announcements go between. False when one more does not fit.
void begin_cts(ByteWriter& writer, std::uint64_t posted, std::uint64_t first);
bool put_announcement(ByteWriter& writer, const Announcement& announcement, std::uint16_t repeat);
// Takes the next run of equal announcements off `cts`; nothing at the end or on malformed bytes.
struct AnnouncementRun {
  Announcement announcement;
  std::uint16_t repeat = 0;
};
std::optional<AnnouncementRun> next_announcement(ByteReader& reader);

void write_control(ByteWriter& writer, const GrantsKnown& message);
void write_control(ByteWriter& writer, const LandingReport& message);
void write_control(ByteWriter& writer, const LandingProbe& message);
void write_upper_header(ByteWriter& writer);

}  // namespace sdr::sdk

// The two control datagrams of a perf run without reliability (scheme "none"): the receiver's report, which messages
// are finished, and the sender's question for one. Both may be lost: the sender asks again.
//
//   report: kind u8 = 1, stamp of the question u64, base u64, finished u64 x 8
//   ask:    kind u8 = 2, stamp u64, messages sent u64
//
// Every message below `base` is finished, and bit i of `finished` says so of message base + i.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "sdr/perf_plan.hpp"
#include "units/byte_codec.hpp"

namespace sdr::cli {

struct PerfReport {
  static constexpr std::size_t kWords = PerfPlan::kMaxInflight / 64;
  static constexpr std::uint8_t kKind = 1;
  std::uint64_t stamp = 0;  // 0: nobody asked
  std::uint64_t base = 0;
  std::array<std::uint64_t, kWords> finished{};
};

struct PerfAsk {
  static constexpr std::uint8_t kKind = 2;
  std::uint64_t stamp = 0;
  std::uint64_t sent = 0;  // messages that have been injected
};

using PerfDatagram = std::array<std::byte, 1 + 8 + 8 + 8 * PerfReport::kWords>;

// Writes it into `into` and returns what was written.
inline std::span<const std::byte> encode(const PerfReport& report, PerfDatagram& into) {
  ByteWriter writer(into);
  writer.u8(PerfReport::kKind);
  writer.u64(report.stamp);
  writer.u64(report.base);
  for (const std::uint64_t word : report.finished) writer.u64(word);
  return writer.written();
}

inline std::span<const std::byte> encode(const PerfAsk& ask, PerfDatagram& into) {
  ByteWriter writer(into);
  writer.u8(PerfAsk::kKind);
  writer.u64(ask.stamp);
  writer.u64(ask.sent);
  return writer.written();
}

// Nothing for a datagram that is not one of these.
inline std::optional<PerfReport> parse_report(std::span<const std::byte> datagram) {
  ByteReader reader(datagram);
  PerfReport report;
  const bool kind = reader.u8() == PerfReport::kKind;
  report.stamp = reader.u64();
  report.base = reader.u64();
  for (std::uint64_t& word : report.finished) word = reader.u64();
  return kind && reader.ok() && reader.left() == 0 ? std::optional(report) : std::nullopt;
}

inline std::optional<PerfAsk> parse_ask(std::span<const std::byte> datagram) {
  ByteReader reader(datagram);
  const bool kind = reader.u8() == PerfAsk::kKind;
  const PerfAsk ask{.stamp = reader.u64(), .sent = reader.u64()};
  return kind && reader.ok() && reader.left() == 0 ? std::optional(ask) : std::nullopt;
}

}  // namespace sdr::cli

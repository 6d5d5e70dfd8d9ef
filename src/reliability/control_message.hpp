// The reliability layer's control messages: parsed once, at the edge. docs/wire-format.md has the bytes.
//
// All are statements of a state, repeated until they have had their effect; each may be lost, duplicated, delayed.
// Offers go from the writing end to the receiving end, Reports back. Both carry several records, so that many small
// Writes in flight do not cost a datagram each.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "sdr/units.hpp"
#include "units/byte_codec.hpp"

namespace sdr::reliability {

inline constexpr std::uint8_t kReliabilityVersion = 5;

// A time on the writing end's clock, in nanoseconds; echoed, never interpreted, by the other.
using Stamp = std::uint64_t;
inline Stamp to_stamp(TimePoint time) {
  return static_cast<Stamp>(time.time_since_epoch().count());
}

// "Are you there?" padded to a full packet when `full_size`; answered by a Pong with the same fields.
struct Ping {
  Stamp stamp = 0;
  bool full_size = false;
};
struct Pong {
  Stamp stamp = 0;
  bool full_size = false;
};

// The code of a transfer's tail, where it has one of its own: its chunks from `first` on are `submessages` interleaved
// submessages with `parity_each` parity chunks each (CodingLayout).
struct TailCode {
  std::uint32_t first = 0;
  std::uint32_t submessages = 0;
  std::uint16_t parity_each = 0;

  friend bool operator==(const TailCode&, const TailCode&) = default;
};

// What a transfer carries. `all_sent`: everything of it (parity too) had been sent once when this was written.
struct Offer {
  std::uint64_t transfer = 0;
  std::uint64_t write = 0;  // counted without refused ones: it is the number of the receive that the Write fills
  std::uint64_t write_length = 0;
  std::uint64_t offset = 0;  // of the transfer in its Write
  std::optional<std::uint32_t> immediate;
  bool all_sent = false;
  std::optional<TailCode> code;
};
struct OffersHeader {
  Stamp stamp = 0;
  std::uint64_t settled_below = 0;  // the writer knows every transfer below to be complete
  std::uint64_t rate_bits = 0;      // its pace in bit/s, 0 when not limited
  bool question = false;            // asks for reports at once, whether there is news of a transfer or not
};

struct ChunkRange {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
};
// Packets of a chunk that are not here, a bit a packet from its first one on; the others are.
struct ChunkHole {
  std::uint32_t chunk = 0;
  std::uint64_t packets = 0;

  friend bool operator==(const ChunkHole&, const ChunkHole&) = default;
};
// The state of one transfer at the receiver. Everything below base is held. Of the chunks in [from, horizon) exactly
// those in `missing` are wanted; of those in [base, from) nothing is said: another datagram spoke of them.
struct Report {
  std::uint64_t transfer = 0;
  bool complete = false;
  std::uint32_t base = 0;
  std::uint32_t from = 0;  // at least base
  std::uint32_t horizon = 0;
  // When complete: data chunks whose first transmission did not arrive in time, and the runs of neighbours they form.
  std::uint32_t lost = 0;
  std::uint32_t runs = 0;
  std::vector<ChunkRange> missing;
  // Of those some of whose packets are here, ascending: which are not. Not all of them need be listed; of the others
  // the whole chunk is wanted.
  std::vector<ChunkHole> holes;
};
struct ReportsHeader {
  Stamp echo = 0;                     // of the newest offers that had been here for the reordering tolerance
  Stamp echo_newest = 0;              // of the newest offers, for the RTT
  std::uint64_t echo_held = 0;        // nanoseconds since those arrived
  std::uint64_t completed_below = 0;  // every transfer below is complete
  std::uint64_t packets_landed = 0;   // at this end, when the newest offers arrived
  Stamp arrival = 0;                  // when they did, on this end's clock
  std::uint64_t marks = 0;            // packets and datagrams that had come in with ECN's mark by then
};

// Where the parity of a block of repairs lies in the parity message, and with which code it was made (repair_code.hpp).
struct RepairBlock {
  // Parity of blocks begins where a word of the chunk bitmap does.
  static constexpr std::uint32_t kAlignment = 64;

  std::uint32_t parity_first = 0;
  std::uint32_t groups = 0;
  std::uint8_t data_each = 0;  // k: the most chunks of a group
  std::uint8_t parity_each = 0;

  [[nodiscard]] std::uint64_t parity_chunks() const { return std::uint64_t{groups} * parity_each; }
  [[nodiscard]] std::uint64_t end() const { return parity_first + parity_chunks(); }

  friend bool operator==(const RepairBlock&, const RepairBlock&) = default;
};
struct RepairGroupsHeader {
  std::uint64_t transfer = 0;
  RepairBlock block;
};
// Which chunks a group of the block has, ascending.
struct RepairGroup {
  std::uint32_t group = 0;
  std::vector<std::uint32_t> chunks;
};

// Readers of a datagram's records: next() yields one after the other until the end or the first malformed one.
class OffersReader {
 public:
  OffersReader(const OffersHeader& h, ByteReader records) : header(h), records_(records) {}
  OffersHeader header;
  [[nodiscard]] std::optional<Offer> next();

 private:
  ByteReader records_;
};
class ReportsReader {
 public:
  ReportsReader(const ReportsHeader& h, ByteReader records) : header(h), records_(records) {}
  ReportsHeader header;
  // False at the end or at the first malformed record. `report` is reused.
  bool next(Report& report);

 private:
  ByteReader records_;
};

class RepairGroupsReader {
 public:
  RepairGroupsReader(const RepairGroupsHeader& h, ByteReader records) : header(h), records_(records) {}
  RepairGroupsHeader header;
  // False at the end or at the first malformed record: one of a group that the block does not have, or with no chunks
  // or more than data_each. `group` is reused.
  bool next(RepairGroup& group);

 private:
  ByteReader records_;
};

using Message = std::variant<Ping, Pong, OffersReader, ReportsReader, RepairGroupsReader>;
// Nothing for a datagram that is too short, of another version or of an unknown kind.
std::optional<Message> parse(std::span<const std::byte> datagram);

void write(ByteWriter& writer, const Ping& ping, std::size_t pad_to);
void write(ByteWriter& writer, const Pong& pong);
void write(ByteWriter& writer, const OffersHeader& header);
void write(ByteWriter& writer, const ReportsHeader& header);
// False, and nothing written, when the record does not fit.
bool append(ByteWriter& writer, const Offer& offer);
// Cuts the report's ranges, and its horizon with them, to what fits, then its holes; the horizon that was written.
// Nothing when not even one range fits.
std::optional<std::uint32_t> append(ByteWriter& writer, const Report& report);
void write(ByteWriter& writer, const RepairGroupsHeader& header);
// False, and nothing written, when the record does not fit.
bool append(ByteWriter& writer, std::uint32_t group, std::span<const std::uint32_t> chunks);
// How many chunks, with numbers below `chunks`, any group may have to fit a datagram of so many bytes.
std::size_t most_of_a_repair_group(std::size_t datagram_bytes, std::uint32_t chunks);

}  // namespace sdr::reliability

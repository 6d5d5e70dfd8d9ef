// The codec of the reliability layer's control messages.
#include "reliability/control_message.hpp"

#include <gtest/gtest.h>

#include <random>

#include "tests/reliability/pair.hpp"

namespace sdr::reliability {
namespace {

class Datagram {
 public:
  explicit Datagram(std::size_t size = 1200) : memory_(size), writer(memory_) {}
  template <typename T>
  T parsed() {
    auto message = parse(writer.written());
    EXPECT_TRUE(message.has_value());
    return std::get<T>(*message);
  }

 private:
  std::vector<std::byte> memory_;

 public:
  ByteWriter writer;
};

void expect_equal(const Report& a, const Report& b) {
  EXPECT_EQ(a.transfer, b.transfer);
  EXPECT_EQ(a.complete, b.complete);
  EXPECT_EQ(a.base, b.base);
  EXPECT_EQ(a.from, b.from);
  EXPECT_EQ(a.horizon, b.horizon);
  EXPECT_EQ(a.lost, b.lost);
  EXPECT_EQ(a.runs, b.runs);
  ASSERT_EQ(a.missing.size(), b.missing.size());
  for (std::size_t i = 0; i < a.missing.size(); ++i) {
    EXPECT_EQ(a.missing[i].first, b.missing[i].first);
    EXPECT_EQ(a.missing[i].count, b.missing[i].count);
  }
  EXPECT_EQ(a.holes, b.holes);
}

Report random_report(std::mt19937_64& random, std::size_t ranges) {
  Report report{.transfer = random(), .complete = random() % 2 == 0};
  if (report.complete) {
    report.lost = static_cast<std::uint32_t>(random());
    report.runs = static_cast<std::uint32_t>(random());
  }
  report.base = static_cast<std::uint32_t>(random() % 1'000'000);
  report.from = report.base + static_cast<std::uint32_t>(random() % 3 == 0 ? random() % 1000 : 0);
  std::uint32_t at = report.from;
  for (std::size_t i = 0; i < ranges; ++i) {
    const ChunkRange range{at + static_cast<std::uint32_t>(random() % 1000),
                           1 + static_cast<std::uint32_t>(random() % 300)};
    report.missing.push_back(range);
    at = range.first + range.count + 1;
  }
  report.horizon = at + static_cast<std::uint32_t>(random() % 1000);
  for (const reliability::ChunkRange& range : report.missing)
    if (random() % 2 == 0) report.holes.push_back({range.first, 1 + random() % 0xFFFF});
  return report;
}

TEST(ControlMessage, PingsAndPongs_ComeBackAsWritten_AndPaddingIsNoMatter) {
  for (const bool full : {false, true}) {
    Datagram ping;
    write(ping.writer, Ping{0x0123456789ABCDEF, full}, full ? 1000 : 0);
    EXPECT_EQ(ping.writer.size(), full ? 1000U : 11U);
    EXPECT_EQ(ping.parsed<Ping>().stamp, 0x0123456789ABCDEFU);
    EXPECT_EQ(ping.parsed<Ping>().full_size, full);
    Datagram pong;
    write(pong.writer, Pong{77, full});
    EXPECT_EQ(pong.parsed<Pong>().stamp, 77U);
    EXPECT_EQ(pong.parsed<Pong>().full_size, full);
  }
}

TEST(ControlMessage, Offers_ComeBackAsWritten) {
  Datagram datagram;
  write(datagram.writer, OffersHeader{5, 6, 7, true});
  const Offer offers[] = {{1, 2, 3, 4, std::nullopt, false},
                          {UINT64_MAX, 1, 0, 9, 0U, true},
                          {3, 3, 3, 3, 0xFFFFFFFFU, false},
                          {4, 4, 4, 4, std::nullopt, true, reliability::TailCode{7, 1098, 254}}};
  for (const Offer& offer : offers) ASSERT_TRUE(append(datagram.writer, offer));
  OffersReader reader = datagram.parsed<OffersReader>();
  EXPECT_EQ(reader.header.stamp, 5U);
  EXPECT_EQ(reader.header.settled_below, 6U);
  EXPECT_EQ(reader.header.rate_bits, 7U);
  EXPECT_TRUE(reader.header.question);
  for (const Offer& offer : offers) {
    const auto read = reader.next();
    ASSERT_TRUE(read);
    EXPECT_EQ(read->transfer, offer.transfer);
    EXPECT_EQ(read->write, offer.write);
    EXPECT_EQ(read->write_length, offer.write_length);
    EXPECT_EQ(read->offset, offer.offset);
    EXPECT_EQ(read->immediate, offer.immediate);
    EXPECT_EQ(read->all_sent, offer.all_sent);
    EXPECT_EQ(read->code, offer.code);
  }
  EXPECT_FALSE(reader.next());
}

TEST(ControlMessage, Reports_ComeBackAsWritten) {
  const std::uint64_t seed = testing::test_seed(3);
  SCOPED_TRACE(testing::seed_trace(seed));
  std::mt19937_64 random(seed);
  for (int i = 0; i < 1000; ++i) {
    Datagram datagram;
    write(datagram.writer, ReportsHeader{1, 2, 3, 4, 5, 6, 7});
    std::vector<Report> reports;
    for (std::size_t n = random() % 4; n > 0; --n) {
      reports.push_back(random_report(random, random() % 20));
      ASSERT_TRUE(append(datagram.writer, reports.back()));
    }
    ReportsReader reader = datagram.parsed<ReportsReader>();
    EXPECT_EQ(reader.header.echo, 1U);
    EXPECT_EQ(reader.header.echo_newest, 2U);
    EXPECT_EQ(reader.header.echo_held, 3U);
    EXPECT_EQ(reader.header.completed_below, 4U);
    EXPECT_EQ(reader.header.packets_landed, 5U);
    EXPECT_EQ(reader.header.arrival, 6U);
    EXPECT_EQ(reader.header.marks, 7U);
    Report read;
    for (const Report& report : reports) {
      ASSERT_TRUE(reader.next(read));
      expect_equal(read, report);
    }
    EXPECT_FALSE(reader.next(read));
  }
}

// A report says the truth about what it covers, however little fits: its horizon ends where its ranges do.
TEST(ControlMessage, HolesThatDoNotFit_AreLeftOut_AndTheRangesStay) {
  Report report{.transfer = 1, .base = 0, .from = 0, .horizon = 1000, .missing = {{5, 3}, {700, 1}}};
  for (std::uint32_t chunk = 5; chunk < 8; ++chunk) report.holes.push_back({chunk, UINT64_MAX});
  for (const std::size_t room : {30UL, 40UL, 45UL, 60UL, 100UL}) {
    std::vector<std::byte> memory(58 + room);
    ByteWriter writer(memory);
    write(writer, ReportsHeader{1, 2, 3, 4, 5});
    ASSERT_EQ(append(writer, report), 1000U) << room;
    auto message = parse(writer.written());
    Report read;
    ASSERT_TRUE(std::get<ReportsReader>(*message).next(read)) << room;
    EXPECT_EQ(read.missing.size(), 2U);
    EXPECT_EQ(read.holes.size(), std::min<std::size_t>(3, (room - 29 - std::min<std::size_t>(room - 29, 2)) / 11))
        << room;
  }
}

TEST(ControlMessage, RepairGroups_ComeBackAsWritten) {
  Datagram datagram;
  const reliability::RepairBlock block{.parity_first = 128, .groups = 300, .data_each = 4, .parity_each = 251};
  write(datagram.writer, reliability::RepairGroupsHeader{UINT64_MAX, block});
  const std::vector<std::vector<std::uint32_t>> groups = {{0}, {5, 6, 7, 1000}, {UINT32_MAX - 1, UINT32_MAX}};
  for (std::uint32_t g = 0; g < groups.size(); ++g) ASSERT_TRUE(append(datagram.writer, 100 * g, groups[g]));
  auto reader = datagram.parsed<reliability::RepairGroupsReader>();
  EXPECT_EQ(reader.header.transfer, UINT64_MAX);
  EXPECT_EQ(reader.header.block, block);
  reliability::RepairGroup read;
  for (std::uint32_t g = 0; g < groups.size(); ++g) {
    ASSERT_TRUE(reader.next(read));
    EXPECT_EQ(read.group, 100 * g);
    EXPECT_EQ(read.chunks, groups[g]);
  }
  EXPECT_FALSE(reader.next(read));
}

TEST(ControlMessage, RepairGroupOfTheMostChunks_FitsTheDatagram) {
  for (const std::size_t bytes : {64UL, 256UL, 1400UL}) {
    const std::size_t most = reliability::most_of_a_repair_group(bytes, 1'000'000);
    std::vector<std::byte> memory(bytes);
    ByteWriter writer(memory);
    write(writer, reliability::RepairGroupsHeader{1, {.groups = 1'000'000, .data_each = 254, .parity_each = 1}});
    std::vector<std::uint32_t> chunks;
    for (std::uint32_t i = 0; i < std::min<std::size_t>(most, 254); ++i) chunks.push_back((i + 1) * (999'999 / 254));
    EXPECT_TRUE(append(writer, 999'999, chunks)) << bytes;
  }
  EXPECT_EQ(reliability::most_of_a_repair_group(20, 100), 0U);
}

TEST(ControlMessage, RepairGroupsThatMakeNoSense_EndTheReading) {
  const reliability::RepairBlock block{.parity_first = 0, .groups = 2, .data_each = 3, .parity_each = 1};
  const std::vector<std::vector<std::uint32_t>> wrong = {{}, {1, 2, 3, 4}};
  for (const auto& chunks : wrong) {
    Datagram datagram;
    write(datagram.writer, reliability::RepairGroupsHeader{1, block});
    ASSERT_TRUE(append(datagram.writer, 0, chunks));
    reliability::RepairGroup read;
    EXPECT_FALSE(datagram.parsed<reliability::RepairGroupsReader>().next(read)) << chunks.size();
  }
  Datagram beyond;
  write(beyond.writer, reliability::RepairGroupsHeader{1, block});
  ASSERT_TRUE(append(beyond.writer, 2, std::vector<std::uint32_t>{1}));
  reliability::RepairGroup read;
  EXPECT_FALSE(beyond.parsed<reliability::RepairGroupsReader>().next(read)) << "there are groups 0 and 1";
}

TEST(ControlMessage, ReportThatDoesNotFit_IsCutTogetherWithItsHorizon) {
  std::mt19937_64 random(4);
  for (std::size_t room = 0; room < 400; ++room) {
    const Report report = random_report(random, 30);
    std::vector<std::byte> memory(room);
    ByteWriter writer(memory);
    write(writer, ReportsHeader{});
    if (!writer.ok()) continue;
    const std::size_t before = writer.size();
    const std::optional<std::uint32_t> horizon = append(writer, report);
    if (!horizon) {
      EXPECT_EQ(writer.size(), before);
      EXPECT_LT(room - before, 40U);
      continue;
    }
    ASSERT_TRUE(writer.ok());
    auto message = parse(writer.written());
    ASSERT_TRUE(message);
    Report read;
    ASSERT_TRUE(std::get<ReportsReader>(*message).next(read));
    Report cut = report;
    ASSERT_GE(read.missing.size(), 1U);
    cut.missing.resize(read.missing.size());
    if (cut.missing.size() < report.missing.size()) cut.horizon = cut.missing.back().first + cut.missing.back().count;
    ASSERT_LE(read.holes.size(), cut.holes.size());
    cut.holes.resize(read.holes.size());
    expect_equal(read, cut);
    EXPECT_EQ(horizon, cut.horizon) << "where the next datagram goes on";
  }
}

TEST(ControlMessage, OfferThatDoesNotFit_IsNotBegun) {
  Datagram datagram(27 + 36);  // an offer is 37 bytes
  write(datagram.writer, OffersHeader{});
  EXPECT_FALSE(append(datagram.writer, Offer{}));
  EXPECT_EQ(datagram.writer.size(), 27U);
}

TEST(ControlMessage, OtherVersionsKindsAndShortOnes_AreNothing) {
  Datagram datagram;
  write(datagram.writer, ReportsHeader{1, 2, 3, 4, 5});
  std::vector<std::byte> bytes(datagram.writer.written().begin(), datagram.writer.written().end());
  for (std::size_t size = 0; size < bytes.size(); ++size) EXPECT_FALSE(parse(std::span(bytes).first(size))) << size;
  EXPECT_TRUE(parse(bytes));
  bytes[1] = std::byte{kReliabilityVersion + 1};
  EXPECT_FALSE(parse(bytes));
  bytes[1] = std::byte{kReliabilityVersion};
  for (const int kind : {0, 6, 255}) {
    bytes[0] = static_cast<std::byte>(kind);
    EXPECT_FALSE(parse(bytes));
  }
}

TEST(ControlMessage, RangesOutOfOrderOrBeyondTheHorizon_EndTheReading) {
  const auto readable = [](std::uint32_t from, std::uint32_t horizon, std::uint64_t gap, std::uint64_t count,
                           std::uint32_t base = 0) {
    Datagram datagram;
    write(datagram.writer, ReportsHeader{});
    datagram.writer.u64(1);
    datagram.writer.u8(0);
    datagram.writer.u32(base);
    datagram.writer.u32(from);
    datagram.writer.u32(horizon);
    datagram.writer.u16(1);
    datagram.writer.varint(gap);
    datagram.writer.varint(count);
    Report report;
    return datagram.parsed<ReportsReader>().next(report);
  };
  EXPECT_TRUE(readable(10, 20, 0, 10));
  EXPECT_FALSE(readable(10, 20, 0, 11));
  EXPECT_FALSE(readable(10, 20, 11, 1));
  EXPECT_FALSE(readable(10, 20, 3, 0));
  EXPECT_FALSE(readable(10, 20, UINT64_MAX, 1));
  EXPECT_FALSE(readable(10, 20, 1, UINT64_MAX));
  EXPECT_FALSE(readable(20, 10, 0, 1));
  EXPECT_TRUE(readable(10, 20, 0, 1, 10));
  EXPECT_FALSE(readable(10, 20, 0, 1, 11)) << "what is held is not spoken of";
}

}  // namespace
}  // namespace sdr::reliability

// Messages from post to complete: sizes, streams, user immediates, refusals.
#include <gtest/gtest.h>

#include <array>
#include <numeric>

#include "tests/core/seed.hpp"
#include "tests/sdk/pair.hpp"

namespace sdr {
namespace {

using namespace testing_support;
using transport::PacketView;
using transport::Site;
using transport::Verdict;

constexpr std::byte kCanary{0xC5};

// Small chunks, so that every size up to a few of them can be tried: 4 packets of 64 bytes.
QueuePairOptions small() {
  return {.mtu = 64_B, .packets_per_chunk = 4, .max_message = 1024_B, .slots = 8};
}
constexpr std::uint32_t kChunk = 256;

core::Immediate decode(const PacketView& view, const core::ImmediateLayout& layout = {}) {
  return layout.decode(view.immediate);
}

void expect_error(const auto& result, ErrorCode code, std::initializer_list<std::string_view> parts = {}) {
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, code) << result.error().message;
  for (const std::string_view part : parts)
    EXPECT_NE(result.error().message.find(part), std::string::npos) << part << " in: " << result.error().message;
}

struct Split {
  std::uint8_t id, offset, user;
};
class EverySize : public testing::TestWithParam<Split> {};
INSTANTIATE_TEST_SUITE_P(Splits, EverySize,
                         testing::Values(Split{10, 18, 4}, Split{8, 22, 2}, Split{8, 16, 8}, Split{10, 21, 1},
                                         Split{12, 20, 0}),
                         [](const auto& test) { return "UserBits" + std::to_string(test.param.user); });

TEST_P(EverySize, ArrivesWithItsUserImmediateAndNothingElseIsTouched) {
  QueuePairOptions options = small();
  options.message_id_bits = GetParam().id;
  options.packet_offset_bits = GetParam().offset;
  options.user_bits = GetParam().user;
  options.channels = 3;
  Pair pair({.qp = options});
  for (std::size_t size = 0; size <= 3 * kChunk + 1; ++size) {
    // The posted buffer is exact, a little larger, or the largest; both ends at odd addresses two times out of three.
    const std::size_t capacity = size % 3 == 0 ? size : size % 3 == 1 ? std::min<std::size_t>(size + 100, 1024) : 1024;
    const std::size_t shift = size % 3;
    std::vector<std::byte> source = pattern(size + shift, size);
    std::vector<std::byte> target(capacity + shift + 16, kCanary);
    const RecvHandle receive = *pair.b().post_receive(std::span(target).subspan(shift, capacity));
    const std::uint32_t user = 0xF00DFACE ^ static_cast<std::uint32_t>(size * 2654435761U);
    const auto given = options.user_bits == 0 ? std::nullopt : std::optional(user);
    const SendHandle send = pair.send(std::span(source).subspan(shift), given);
    pair.run_for(std::chrono::milliseconds(20));

    ASSERT_TRUE(pair.a().sent(send));
    ASSERT_TRUE(pair.b().touched(receive)) << size;
    const ChunkBitmap bitmap = pair.b().chunk_bitmap(receive).value();
    ASSERT_EQ(bitmap.size(), (capacity + 64 * kChunk - 1) / (64 * kChunk));
    const auto chunks = static_cast<std::uint32_t>((size + kChunk - 1) / kChunk);
    ASSERT_EQ(bits_set(bitmap), chunks) << size << " bytes into " << capacity;
    for (std::uint32_t c = 0; c < chunks; ++c) ASSERT_TRUE(bit(bitmap, c));
    ASSERT_TRUE(std::equal(source.begin() + static_cast<std::ptrdiff_t>(shift), source.end(),
                           target.begin() + static_cast<std::ptrdiff_t>(shift)));
    for (std::size_t i = 0; i < target.size(); ++i) {
      const bool outside = i < shift || i >= shift + size;
      ASSERT_TRUE(!outside || target[i] == kCanary) << size << " byte " << i;
    }
    if (given) {
      ASSERT_EQ(pair.b().user_immediate(receive).value(), user) << size;
    } else {
      expect_error(pair.b().user_immediate(receive), ErrorCode::InvalidArgument, {"user bits"});
    }
    ASSERT_TRUE(pair.b().complete(receive).ok());
  }
  const QueuePairCounters counters = pair.b().counters();
  EXPECT_EQ(counters.duplicate_packets + counters.late_packets + counters.out_of_range_packets, 0U);
}

TEST(Message, OfTheLargestSize_ArrivesAndOneByteMoreIsRefused) {
  Pair pair({.qp = small()});
  for (const std::size_t size : {1023U, 1024U, 1025U}) {
    std::vector<std::byte> target(size);
    const auto receive = pair.b().post_receive(target);
    if (size > 1024) {
      expect_error(receive, ErrorCode::InvalidArgument, {"1025", "1024"});
      expect_error(pair.a().post_send(target, std::nullopt), ErrorCode::InvalidArgument, {"1025", "1024"});
      continue;
    }
    const std::vector<std::byte> source = pattern(size, size);
    pair.send(source, 77);
    ASSERT_TRUE(pair.run_until([&] { return pair.chunks(*receive) == 4; }));
    EXPECT_EQ(source, target);
    EXPECT_EQ(pair.b().user_immediate(*receive).value(), 77U);
    ASSERT_TRUE(pair.b().complete(*receive).ok());
  }
}

TEST(Message, AtANullAddress_IsRefusedWithItsLength) {
  Pair pair({.qp = small()});
  const std::span<std::byte> nowhere(static_cast<std::byte*>(nullptr), 100);
  std::vector<std::byte> target(100);
  expect_error(pair.b().post_receive(nowhere), ErrorCode::InvalidArgument, {"100 bytes"});
  (void)*pair.b().post_receive(target);
  ASSERT_TRUE(pair.run_until([&] { return pair.a().next_grant().has_value(); }));
  expect_error(pair.a().post_send(nowhere, std::nullopt), ErrorCode::InvalidArgument, {"100 bytes"});
  const SendHandle stream = *pair.a().start_stream(std::nullopt);
  expect_error(pair.a().continue_stream(stream, 0, nowhere), ErrorCode::InvalidArgument, {"100 bytes"});
  expect_error(pair.a().send_packets(stream, 0, nowhere, true), ErrorCode::InvalidArgument, {"100 bytes"});
}

// As an RDMA device does that can register no more memory.
class ExposesAtFirst final : public ForwardingEndpoint {
 public:
  ExposesAtFirst(std::unique_ptr<transport::Endpoint> inner, int& left)
      : ForwardingEndpoint(std::move(inner)), left_(left) {}
  Result<transport::Aim> expose(core::SlotIndex slot, core::Generation generation,
                                std::span<std::byte> buffer) override {
    if (left_-- <= 0) return Error{ErrorCode::System, "no memory can be registered"};
    return ForwardingEndpoint::expose(slot, generation, buffer);
  }

 private:
  int& left_;
};

TEST(Message, WhoseReceiveCannotBeExposed_IsRefusedAndAllElseGoesOn) {
  int left = 1;
  Pair pair({.qp = small(), .wrap_b = [&left](std::unique_ptr<transport::Endpoint> inner) {
               return std::make_unique<ExposesAtFirst>(std::move(inner), left);
             }});
  std::vector<std::byte> first(1024), second(1024);
  const std::vector<std::byte> source = pattern(1024, 5);
  const RecvHandle receive = *pair.b().post_receive(first);
  expect_error(pair.b().post_receive(second), ErrorCode::System, {"registered"});
  pair.send(source);
  ASSERT_TRUE(pair.run_until([&] { return pair.chunks(receive) == 4; }));
  EXPECT_EQ(first, source);
  left = 10;
  const auto again = pair.b().post_receive(second);
  ASSERT_TRUE(again.ok());
  pair.send(source);
  ASSERT_TRUE(pair.run_until([&] { return pair.chunks(*again) == 4; }));
  EXPECT_EQ(second, source);
}

// What lies behind the last packet offset is the next slot.
TEST(Message, OfNoBytesBehindTheLastPacketOffset_IsRefused_AndTouchesNoOtherMessage) {
  QueuePairOptions options = small();
  options.message_id_bits = 16;
  options.packet_offset_bits = 8;
  options.user_bits = 8;
  options.max_message = 16_KiB;
  Pair pair({.qp = options});
  std::vector<std::byte> first(options.max_message.count);
  std::vector<std::byte> second(options.max_message.count);
  const RecvHandle receive = *pair.b().post_receive(first);
  const RecvHandle next = *pair.b().post_receive(second);
  ASSERT_TRUE(pair.run_until([&] { return pair.a().next_grant().has_value(); }));
  expect_error(pair.a().post_send({}, 7, 64), ErrorCode::InvalidArgument, {"chunk 64"});
  const std::vector<std::byte> source = pattern(1, 1);
  const SendHandle stream = *pair.a().start_stream(7);
  ASSERT_TRUE(pair.a().continue_stream(stream, 64, {}).ok());
  ASSERT_TRUE(pair.a().continue_stream(stream, 63, source).ok());
  ASSERT_TRUE(pair.a().end_stream(stream).ok());
  pair.run_for(std::chrono::milliseconds(100));
  EXPECT_TRUE(pair.b().touched(receive));
  EXPECT_FALSE(pair.b().touched(next));
}

TEST(Message, MaxMessage_IsRoundedDownToWholeChunks) {
  QueuePairOptions options = small();
  options.max_message = 1000_B;
  Pair pair({.qp = options});
  EXPECT_EQ(pair.a().geometry().max_message, 3U * kChunk);
}

TEST(Message, LongerThanThePostedReceive_IsRefusedWithBothValuesAndCanBeSentShorter) {
  Pair pair({.qp = small()});
  std::vector<std::byte> target(300);
  const RecvHandle receive = *pair.b().post_receive(target, 9);
  ASSERT_TRUE(pair.run_until([&] { return pair.a().next_grant().has_value(); }));
  EXPECT_EQ(pair.a().next_grant()->max_length, 300U);
  EXPECT_EQ(pair.a().next_grant()->tag, 9U);
  const std::vector<std::byte> source = pattern(301, 1);
  expect_error(pair.a().post_send(source, std::nullopt), ErrorCode::InvalidArgument, {"301", "300"});
  expect_error(pair.a().post_send(std::span(source).first(45), std::nullopt, 1), ErrorCode::InvalidArgument,
               {"45", "300"});
  pair.send(std::span(source).first(300));
  ASSERT_TRUE(pair.run_until([&] { return pair.chunks(receive) == 2; }));
  EXPECT_TRUE(std::equal(target.begin(), target.end(), source.begin()));
}

TEST(Message, FromALaterChunkOn_LandsThereAndBringsTheWholeUserImmediate) {
  Pair pair({.qp = small()});
  std::vector<std::byte> target(1024, kCanary);
  const RecvHandle receive = *pair.b().post_receive(target);
  const std::vector<std::byte> source = pattern(70, 3);
  ASSERT_TRUE(pair.run_until([&] { return pair.a().next_grant().has_value(); }));
  ASSERT_TRUE(pair.a().post_send(source, 0x12345678, 2).ok());
  pair.run_for(std::chrono::milliseconds(20));
  EXPECT_TRUE(bit(*pair.b().chunk_bitmap(receive), 2));
  EXPECT_EQ(pair.chunks(receive), 1U);
  EXPECT_TRUE(std::equal(source.begin(), source.end(), target.begin() + 512));
  EXPECT_EQ(pair.b().user_immediate(receive).value(), 0x12345678U);
}

TEST(Message, BeforeItsCts_IsRetryAndNothingHappened) {
  Pair pair({.qp = small()});
  const std::vector<std::byte> source = pattern(100, 5);
  for (int i = 0; i < 3; ++i) {
    expect_error(pair.a().post_send(source, 1), ErrorCode::Retry, {"send 0"});
    expect_error(pair.a().start_stream(std::nullopt), ErrorCode::Retry);
    pair.run_for(std::chrono::milliseconds(30));
  }
  EXPECT_EQ(pair.a().counters().packets_sent, 0U);
  EXPECT_EQ(pair.a().backlog(), 0U);
  std::vector<std::byte> target(100);
  const RecvHandle receive = *pair.b().post_receive(target);
  EXPECT_EQ(pair.send(source).number, 0U);
  ASSERT_TRUE(pair.run_until([&] { return pair.chunks(receive) == 1; }));
  EXPECT_EQ(source, target);
}

TEST(Message, WithUserImmediateButNoUserBits_IsRefusedAndNothingHappened) {
  QueuePairOptions options = small();
  options.packet_offset_bits = 22;
  options.user_bits = 0;
  Pair pair({.qp = options});
  std::vector<std::byte> target(100);
  const RecvHandle receive = *pair.b().post_receive(target);
  ASSERT_TRUE(pair.run_until([&] { return pair.a().next_grant().has_value(); }));
  expect_error(pair.a().post_send(target, 1), ErrorCode::InvalidArgument, {"user immediate"});
  expect_error(pair.a().start_stream(1), ErrorCode::InvalidArgument, {"user immediate"});
  EXPECT_EQ(pair.send(target).number, 0U);
  ASSERT_TRUE(pair.run_until([&] { return pair.chunks(receive) == 1; }));
}

TEST(Message, WithNoFreeReceiveSlot_IsRetryUntilTheOldestIsCompleted) {
  Pair pair({.qp = small()});
  std::vector<std::byte> target(64);
  std::vector<RecvHandle> receives;
  for (int i = 0; i < 8; ++i) receives.push_back(*pair.b().post_receive(target));
  expect_error(pair.b().post_receive(target), ErrorCode::Retry, {"8 slots"});
  ASSERT_TRUE(pair.b().complete(receives[3]).ok());
  expect_error(pair.b().post_receive(target), ErrorCode::Retry, {"receive 0"});
  ASSERT_TRUE(pair.b().complete(receives[0]).ok());
  EXPECT_EQ(pair.b().post_receive(target).value().number, 8U);
}

TEST(Message, WithItsSendSlotHeldByAnOpenStream_IsRetryUntilTheStreamEnds) {
  QueuePairOptions options = small();
  options.slots = 2;
  Pair pair({.qp = options});
  std::vector<std::byte> target(64);
  const RecvHandle first = *pair.b().post_receive(target);
  ASSERT_TRUE(pair.b().post_receive(target).ok());
  ASSERT_TRUE(pair.run_until([&] { return pair.a().next_grant().has_value(); }));
  const SendHandle stream = *pair.a().start_stream(std::nullopt);
  pair.send(target);
  ASSERT_TRUE(pair.b().complete(first).ok());
  ASSERT_TRUE(pair.b().post_receive(target).ok());
  pair.run_for(std::chrono::milliseconds(30));
  EXPECT_FALSE(pair.a().next_grant().has_value());
  expect_error(pair.a().post_send(target, std::nullopt), ErrorCode::Retry, {"send 0"});
  ASSERT_TRUE(pair.a().end_stream(stream).ok());
  EXPECT_EQ(pair.a().post_send(target, std::nullopt).value().number, 2U);
}

TEST(Message, OnceCompleted_AnswersWithClosed) {
  Pair pair({.qp = small()});
  std::vector<std::byte> target(64);
  const RecvHandle receive = *pair.b().post_receive(target);
  ASSERT_TRUE(pair.b().complete(receive).ok());
  expect_error(pair.b().complete(receive), ErrorCode::Closed, {"receive 0"});
  expect_error(pair.b().chunk_bitmap(receive), ErrorCode::Closed);
  expect_error(pair.b().chunk_packets(receive, 0), ErrorCode::Closed);
  expect_error(pair.b().user_immediate(receive), ErrorCode::Closed);
  expect_error(pair.b().set_length(receive, 3_B), ErrorCode::Closed);
  EXPECT_FALSE(pair.b().touched(receive));
  expect_error(pair.b().complete({5}), ErrorCode::Closed);
}

TEST(Stream, ChunksInAnyOrderAndRepeated_MakeTheMessage) {
  const std::uint64_t seed = test_seed(31);
  SCOPED_TRACE(seed_trace(seed));
  std::mt19937_64 random(seed);
  Pair pair({.link = link("rtt=10ms,reorder=0.2,dup=0.1"), .qp = small()});
  for (int round = 0; round < 60; ++round) {
    const std::size_t size = 1 + random() % 1024;
    const std::vector<std::byte> source = pattern(size, static_cast<std::uint64_t>(round));
    std::vector<std::byte> target(1024, kCanary);
    const RecvHandle receive = *pair.b().post_receive(target);
    ASSERT_TRUE(pair.run_until([&] { return pair.a().next_grant().has_value(); }));
    const SendHandle stream = *pair.a().start_stream(0xBEEF0000U + static_cast<std::uint32_t>(round));
    const std::size_t chunks = (size + kChunk - 1) / kChunk;
    std::vector<std::size_t> order(chunks);
    std::iota(order.begin(), order.end(), std::size_t{0});
    for (std::size_t extra = random() % 4; extra > 0; --extra) order.push_back(random() % chunks);
    std::shuffle(order.begin(), order.end(), random);
    for (const std::size_t c : order) {
      const auto data = std::span(source).subspan(c * kChunk, std::min<std::size_t>(kChunk, size - c * kChunk));
      ASSERT_TRUE(pair.a().continue_stream(stream, static_cast<std::uint32_t>(c), data).ok());
      if (random() % 2 == 0) pair.run_for(std::chrono::milliseconds(static_cast<int>(random() % 8)));
    }
    ASSERT_TRUE(pair.a().end_stream(stream).ok());
    pair.run_for(std::chrono::milliseconds(30));
    EXPECT_TRUE(pair.a().sent(stream));
    ASSERT_EQ(pair.chunks(receive), chunks);
    ASSERT_TRUE(std::equal(source.begin(), source.end(), target.begin()));
    ASSERT_EQ(pair.b().user_immediate(receive).value(), 0xBEEF0000U + static_cast<std::uint32_t>(round));
    expect_error(pair.a().continue_stream(stream, 0, source), ErrorCode::Closed);
    expect_error(pair.a().end_stream(stream), ErrorCode::Closed);
    ASSERT_TRUE(pair.b().complete(receive).ok());
  }
}

TEST(Stream, ThatLeavesChunksOut_StillBringsTheWholeUserImmediate) {
  QueuePairOptions options = small();
  options.packets_per_chunk = 1;
  Pair pair({.qp = options});
  for (std::uint32_t only = 0; only < 16; ++only) {
    std::vector<std::byte> target(1024, kCanary);
    const RecvHandle receive = *pair.b().post_receive(target);
    ASSERT_TRUE(pair.run_until([&] { return pair.a().next_grant().has_value(); }));
    const SendHandle stream = *pair.a().start_stream(0xCAFED00D);
    ASSERT_TRUE(pair.a().continue_stream(stream, only, std::span(target).first(64)).ok());
    ASSERT_TRUE(pair.a().end_stream(stream).ok());
    pair.run_for(std::chrono::milliseconds(20));
    ASSERT_EQ(pair.b().user_immediate(receive).value(), 0xCAFED00DU) << "only packet " << only;
    ASSERT_EQ(pair.chunks(receive), 1U);
    ASSERT_TRUE(pair.b().complete(receive).ok());
  }
}

TEST(Stream, PastThePostedReceive_IsRefusedWithTheLimit) {
  Pair pair({.qp = small()});
  std::vector<std::byte> target(300);
  ASSERT_TRUE(pair.b().post_receive(target).ok());
  ASSERT_TRUE(pair.run_until([&] { return pair.a().next_grant().has_value(); }));
  const SendHandle stream = *pair.a().start_stream(std::nullopt);
  expect_error(pair.a().continue_stream(stream, 1, std::span(target).first(45)), ErrorCode::InvalidArgument,
               {"45", "300"});
  expect_error(pair.a().continue_stream(stream, ~0U, std::span(target).first(1)), ErrorCode::InvalidArgument, {"300"});
  expect_error(pair.a().send_packets(stream, 4, std::span(target).first(45), false), ErrorCode::InvalidArgument,
               {"300"});
  expect_error(pair.a().send_packets(stream, ~0U, std::span(target).first(1), true), ErrorCode::InvalidArgument,
               {"300"});
  EXPECT_EQ(pair.a().backlog(), 0U);
  EXPECT_TRUE(pair.a().continue_stream(stream, 1, std::span(target).first(44)).ok());
}

TEST(Stream, WithTheQueueFull_IsRetryAndNothingHappened) {
  Pair pair({.qp = small()});
  std::vector<std::byte> target(64);
  std::array<RecvHandle, 2> receives{*pair.b().post_receive(target), *pair.b().post_receive(target)};
  ASSERT_TRUE(pair.run_until([&] { return pair.a().next_grant().has_value(); }));
  const SendHandle stream = *pair.a().start_stream(0xABCDEF01);
  const std::vector<std::byte> source = pattern(64, 1);
  int queued = 0;
  Result<void> pushed;
  while ((pushed = pair.a().continue_stream(stream, 0, source)).ok()) ASSERT_LT(++queued, 10000);
  expect_error(pushed, ErrorCode::Retry);
  const std::uint64_t backlog = pair.a().backlog();
  expect_error(pair.a().post_send(source, 5), ErrorCode::Retry);
  expect_error(pair.a().end_stream(stream), ErrorCode::Retry);
  EXPECT_EQ(pair.a().backlog(), backlog);
  pair.run_for(std::chrono::milliseconds(20));
  ASSERT_TRUE(pair.a().end_stream(stream).ok());
  EXPECT_EQ(pair.a().post_send(source, 5).value().number, 1U);
  pair.run_for(std::chrono::milliseconds(20));
  EXPECT_EQ(pair.b().user_immediate(receives[0]).value(), 0xABCDEF01U);
  EXPECT_EQ(pair.b().user_immediate(receives[1]).value(), 5U);
}

TEST(ChunkPackets, ShowWhichPacketsOfAChunkAreThere) {
  for (const std::uint32_t per_chunk : {1U, 4U, 32U, 64U, 128U, 256U}) {
    QueuePairOptions options = small();
    options.packets_per_chunk = per_chunk;
    options.max_message = Bytes{std::uint64_t{64} * per_chunk * 3};
    Pair pair({.qp = options});
    const std::uint32_t packets = per_chunk * 2 + (per_chunk > 1 ? per_chunk / 2 : 0);
    std::vector<std::byte> target(packets * 64 - 7);
    const std::vector<std::byte> source = pattern(target.size(), per_chunk);
    const auto dropped = [](std::uint32_t packet) { return packet % 5 == 2 || packet % 7 == 1; };
    pair.network().set_filter(Site::A, [&](const PacketView& view) {
      return view.kind == PacketView::Kind::Data && dropped(decode(view).offset.value) ? Verdict::Drop : Verdict::Pass;
    });
    const RecvHandle receive = *pair.b().post_receive(target);
    pair.send(source);
    pair.run_for(std::chrono::milliseconds(20));
    for (std::uint32_t c = 0; c * per_chunk < packets; ++c) {
      for (std::uint32_t from = 0; from < per_chunk; ++from) {
        const std::uint64_t bits = pair.b().chunk_packets(receive, c, from).value();
        for (std::uint32_t i = 0; i < 64; ++i) {
          const std::uint32_t packet = c * per_chunk + from + i;
          const bool in_chunk = from + i < per_chunk;
          ASSERT_EQ((bits >> i & 1) != 0, in_chunk && (packet >= packets || !dropped(packet)))
              << per_chunk << " a chunk, chunk " << c << " from " << from << " bit " << i;
        }
      }
    }
    expect_error(pair.b().chunk_packets(receive, 3), ErrorCode::InvalidArgument, {"chunk 3"});
    expect_error(pair.b().chunk_packets(receive, 0, per_chunk), ErrorCode::InvalidArgument);
  }
}

TEST(SetLength, CompletesTheLastChunkWhoseEndMarkerWasLost) {
  Pair pair({.qp = small()});
  std::vector<std::byte> target(1024);
  pair.network().set_filter(Site::A, [](const PacketView& view) {
    return view.kind == PacketView::Kind::Data && view.length == 0 ? Verdict::Drop : Verdict::Pass;
  });
  const RecvHandle receive = *pair.b().post_receive(target);
  const std::vector<std::byte> source = pattern(kChunk + 64, 1);
  pair.send(source);
  pair.run_for(std::chrono::milliseconds(20));
  EXPECT_EQ(pair.chunks(receive), 1U);
  expect_error(pair.b().set_length(receive, 1025_B), ErrorCode::InvalidArgument, {"1025", "1024"});
  ASSERT_TRUE(pair.b().set_length(receive, Bytes{source.size()}).ok());
  EXPECT_EQ(pair.chunks(receive), 2U);
}

TEST(Matching, NthSendFillsNthReceive_HoweverPacketsOvertakeOneAnother) {
  QueuePairOptions options = small();
  options.channels = 4;
  Pair pair({.link = link("rtt=10ms,reorder=0.4,dup=0.1,jitter=2ms"), .qp = options});
  for (int round = 0; round < 40; ++round) {
    std::vector<std::vector<std::byte>> sources;
    std::vector<std::vector<std::byte>> targets;
    std::vector<RecvHandle> receives;
    for (std::uint64_t i = 0; i < 8; ++i)
      sources.push_back(pattern((i * 131 + static_cast<std::uint64_t>(round) * 17) % 1025, i));
    for (const auto& source : sources) targets.emplace_back(source.size());
    for (std::size_t i = 0; i < 8; ++i) receives.push_back(*pair.b().post_receive(targets[i], i));
    for (std::size_t i = 0; i < 8; ++i) {
      ASSERT_TRUE(pair.run_until([&] { return pair.a().next_grant().has_value(); }));
      ASSERT_EQ(pair.a().next_grant()->tag, i);
      ASSERT_EQ(pair.send(sources[i]).number, static_cast<std::uint64_t>(round) * 8 + i);
    }
    pair.run_for(std::chrono::milliseconds(30));
    for (std::size_t i = 0; i < 8; ++i) {
      ASSERT_EQ(pair.chunks(receives[i]), (sources[i].size() + kChunk - 1) / kChunk);
      ASSERT_EQ(sources[i], targets[i]);
      ASSERT_TRUE(pair.b().complete(receives[i]).ok());
    }
  }
}

TEST(Channels, ManyOfThem_ShareAMessageEvenly) {
  QueuePairOptions options = small();
  options.channels = 32;
  Pair pair({.qp = options});
  std::array<int, 32> used{};
  pair.network().set_filter(Site::A, [&](const PacketView& view) {
    if (view.kind == PacketView::Kind::Data) ++used[view.channel.value];
    return Verdict::Pass;
  });
  for (std::uint64_t i = 0; i < 20; ++i) {
    std::vector<std::byte> target(1024);
    const RecvHandle receive = *pair.b().post_receive(target);
    const std::vector<std::byte> source = pattern(1024, i);
    pair.send(source);
    ASSERT_TRUE(pair.run_until([&] { return pair.chunks(receive) == 4; }));
    ASSERT_EQ(source, target);
    ASSERT_TRUE(pair.b().complete(receive).ok());
  }
  for (const int packets : used) EXPECT_EQ(packets, 10);
}

TEST(Geometry, WithDefaultOptions_StateIsAtMost64KiB) {
  Pair pair;
  EXPECT_LE(pair.a().geometry().state_bytes, 64U * 1024);
  EXPECT_GT(pair.a().geometry().state_bytes, 4U * 1024);
  EXPECT_EQ(pair.a().geometry().mtu, 1456U);
}

}  // namespace
}  // namespace sdr

// CTS over a path that loses, delays and repeats it: only time is lost, and little of it.
#include "sdk/clear_to_send.hpp"

#include <gtest/gtest.h>

#include "tests/sdk/pair.hpp"

namespace sdr {
namespace {

using namespace testing_support;
using std::chrono::milliseconds;
using transport::PacketView;
using transport::Site;
using transport::Verdict;

constexpr Duration kRtt = milliseconds(20);

PairOptions options() {
  return {.link = link("rtt=20ms"),
          .qp = {.mtu = 64_B, .packets_per_chunk = 1, .max_message = 1024_B, .slots = 8, .initial_rtt = kRtt}};
}

bool control(const PacketView& view) {
  return view.kind == PacketView::Kind::Control;
}

// Sends `source` into the one receive that is posted, and checks that it arrives; the time from now until its CTS came.
Duration time_to_grant(Pair& pair) {
  const TimePoint start = pair.now();
  EXPECT_EQ(pair.a().start_stream(std::nullopt).error().code, ErrorCode::Retry);
  EXPECT_TRUE(pair.run_until([&] { return pair.a().next_grant().has_value(); }));
  return pair.now() - start;
}

TEST(ClearToSend, FirstNCtsLost_CostARoundTripEach) {
  for (int lost = 0; lost <= 6; ++lost) {
    Pair pair(options());
    int left = lost;
    pair.network().set_filter(
        Site::B, [&](const PacketView& view) { return control(view) && left-- > 0 ? Verdict::Drop : Verdict::Pass; });
    std::vector<std::byte> target(64);
    const RecvHandle receive = *pair.b().post_receive(target);
    EXPECT_LE(time_to_grant(pair), kRtt / 2 + lost * (kRtt + kRtt / 4) + milliseconds(1)) << lost << " lost";
    const std::vector<std::byte> source = pattern(64, 1);
    pair.send(source);
    ASSERT_TRUE(pair.run_until([&] { return pair.chunks(receive) == 1; }));
    EXPECT_EQ(source, target);
  }
}

TEST(ClearToSend, EverythingLostForAWhile_HealsWithinAboutTwoRoundTrips) {
  for (const int outage_ms : {5, 50, 300, 3000, 60000}) {
    Pair pair(options());
    const TimePoint healed = pair.now() + milliseconds(outage_ms);
    const auto outage = [&](const PacketView& view) { return view.now < healed ? Verdict::Drop : Verdict::Pass; };
    pair.network().set_filter(Site::A, outage);
    pair.network().set_filter(Site::B, outage);
    std::vector<std::byte> target(64);
    ASSERT_TRUE(pair.b().post_receive(target).ok());
    time_to_grant(pair);
    // The next request comes within 5/4 RTT, its answer a round trip later.
    EXPECT_LE(pair.now() - healed, kRtt * 9 / 4 + milliseconds(1)) << outage_ms << " ms of outage";
  }
}

TEST(ClearToSend, RequestsLost_AreNotNeededWhileTheReceiverRepeats) {
  Pair pair(options());
  int cts_lost = 2;
  pair.network().set_filter(Site::A,
                            [](const PacketView& view) { return control(view) ? Verdict::Drop : Verdict::Pass; });
  pair.network().set_filter(Site::B, [&](const PacketView&) { return cts_lost-- > 0 ? Verdict::Drop : Verdict::Pass; });
  std::vector<std::byte> target(64);
  ASSERT_TRUE(pair.b().post_receive(target).ok());
  EXPECT_LE(time_to_grant(pair), 5 * kRtt);
}

TEST(ClearToSend, DuplicatedAndDelayedCts_ChangeNothing) {
  Pair pair(options());
  std::vector<std::vector<std::byte>> late;
  int seen = 0;
  pair.network().set_filter(Site::B, [&](const PacketView& view) {
    if (!control(view)) return Verdict::Pass;
    late.emplace_back(view.bytes.begin(), view.bytes.end());
    return ++seen % 2 == 0 ? Verdict::Hold : Verdict::Pass;
  });
  for (std::uint64_t i = 0; i < 40; ++i) {
    std::vector<std::byte> target(64 + i);
    const RecvHandle receive = *pair.b().post_receive(target, i);
    ASSERT_TRUE(pair.run_until([&] {
      pair.a().want_grant();
      return pair.a().next_grant().has_value();
    }));
    // All that were ever said, again and out of order.
    for (std::size_t k = late.size(); k-- > 0;)
      pair.endpoint_a().inject_control(late[k], pair.endpoint_a().token(), pair.now());
    while (pair.network().held(Site::B) > 1) pair.network().release(Site::B, 1, pair.now() + milliseconds(3));
    pair.run_for(milliseconds(5));
    ASSERT_EQ(pair.a().next_grant()->max_length, 64 + i);
    ASSERT_EQ(pair.a().next_grant()->tag, i);
    const std::vector<std::byte> source = pattern(64 + i, i);
    ASSERT_EQ(pair.send(source).number, i);
    ASSERT_TRUE(pair.run_until([&] { return pair.chunks(receive) == 2 - (i == 0 ? 1 : 0); }));
    ASSERT_EQ(source, target);
    ASSERT_TRUE(pair.b().complete(receive).ok());
  }
}

TEST(ClearToSend, WithoutAnythingToSay_IsSilent) {
  Pair pair(options());
  std::vector<std::byte> target(64);
  ASSERT_TRUE(pair.b().post_receive(target).ok());
  pair.run_for(milliseconds(500));
  std::uint64_t controls = 0;
  const auto count = [&](const PacketView&) {
    ++controls;
    return Verdict::Pass;
  };
  pair.network().set_filter(Site::A, count);
  pair.network().set_filter(Site::B, count);
  pair.run_for(std::chrono::hours(1));
  EXPECT_EQ(controls, 0U) << "the sender knows, and the receiver knows that it does";
}

TEST(ClearToSend, GrantWantedWhileOneIsHere_IsNotAskedFor) {
  Pair pair(options());
  std::vector<std::byte> target(64);
  ASSERT_TRUE(pair.b().post_receive(target).ok());
  pair.run_for(milliseconds(500));
  pair.a().want_grant();
  std::uint64_t controls = 0;
  pair.network().set_filter(Site::A, [&](const PacketView&) {
    ++controls;
    return Verdict::Pass;
  });
  pair.run_for(std::chrono::minutes(1));
  EXPECT_EQ(controls, 0U);
}

// Receives posted ahead: the newest is never the one in use, and yet statements must not grow with the connection's
// age.
TEST(ClearToSend, LongConnection_SaysNoMoreThanAYoungOne) {
  Pair pair(options());
  std::size_t longest = 0;
  std::uint64_t controls = 0;
  pair.network().set_filter(Site::B, [&](const PacketView& view) {
    if (control(view)) {
      longest = std::max(longest, view.bytes.size());
      ++controls;
    }
    return Verdict::Pass;
  });
  std::vector<std::byte> target(1024);
  std::vector<RecvHandle> posted;
  constexpr int kMessages = 2000;
  for (std::uint64_t i = 0; i < kMessages; ++i) {
    // Different lengths, so that no two announcements are alike.
    while (posted.size() < 4)
      posted.push_back(*pair.b().post_receive(std::span(target).first(64 + (i + posted.size()) % 900)));
    pair.send(std::span(target).first(64));
    ASSERT_TRUE(pair.run_until([&] { return pair.chunks(posted.front()) == 1; }));
    ASSERT_TRUE(pair.b().complete(posted.front()).ok());
    posted.erase(posted.begin());
  }
  EXPECT_LE(longest, 300U);
  EXPECT_LE(controls, 3U * kMessages);
}

// The receiver gives receives up and posts new ones while nothing of it reaches the sender.
TEST(ClearToSend, ReceivesCompletedUnheard_AreGrantedAndTheirMessagesAreLate) {
  Pair pair(options());
  bool cut = true;
  pair.network().set_filter(Site::B, [&](const PacketView&) { return cut ? Verdict::Drop : Verdict::Pass; });
  std::vector<std::byte> target(1024);
  constexpr std::uint64_t kGivenUp = 60;  // fewer than slots * generations
  for (std::uint64_t i = 0; i < kGivenUp; ++i) {
    const RecvHandle receive = *pair.b().post_receive(std::span(target).first(i % 2 == 0 ? 64 : 1024));
    pair.run_for(milliseconds(7));
    ASSERT_TRUE(pair.b().complete(receive).ok());
  }
  const RecvHandle last = *pair.b().post_receive(target);
  cut = false;
  for (std::uint64_t i = 0; i < kGivenUp; ++i) {
    const std::vector<std::byte> source = pattern(1000, i);
    const SendHandle sent = pair.send(i + 8 < kGivenUp ? std::span(source) : std::span(source).first(64));
    ASSERT_EQ(sent.number, i);
    ASSERT_TRUE(pair.run_until([&] { return pair.a().sent(sent); }));
  }
  const std::vector<std::byte> source = pattern(1024, 7);
  ASSERT_EQ(pair.send(source).number, kGivenUp);
  ASSERT_TRUE(pair.run_until([&] { return pair.chunks(last) == 16; }));
  EXPECT_EQ(source, target);
  EXPECT_GT(pair.b().counters().late_packets, 0U);
}

TEST(ClearToSend, LengthSetBeforeAnyData_DoesNotPassForArrival) {
  PairOptions unaligned = options();
  unaligned.qp.packets_per_chunk = 4;
  Pair pair(unaligned);
  std::vector<std::byte> target(600);
  const RecvHandle receive = *pair.b().post_receive(target);
  ASSERT_TRUE(pair.b().set_length(receive, 100_B).ok());
  EXPECT_FALSE(pair.b().touched(receive));
  const std::vector<std::byte> source = pattern(100, 1);
  pair.send(source);  // waits for the CTS, which must still be announced
  ASSERT_TRUE(pair.run_until([&] { return pair.chunks(receive) == 1; }));
  EXPECT_TRUE(std::equal(source.begin(), source.end(), target.begin()));
}

TEST(ClearToSend, ManyDifferentReceives_FitSmallDatagramsInSeveralParts) {
  constexpr std::uint32_t kReceives = 500;
  sdk::CtsAnnouncer announcer(512, 1 << 20);
  sdk::GrantBook book(512);
  for (std::uint32_t i = 0; i < kReceives; ++i) announcer.announce({.max_length = 1000 + i, .tag = i});
  std::vector<std::byte> datagram(200);
  int parts = 0;
  for (;; ++parts) {
    ByteWriter writer(datagram);
    if (!announcer.poll(writer, TimePoint{}, kRtt)) break;
    ASSERT_TRUE(writer.ok());
    book.handle(std::get<sdk::ClearToSend>(sdk::parse_control(writer.written()).value()));
  }
  EXPECT_GT(parts, 10);
  ASSERT_EQ(book.known(), kReceives);
  for (std::uint32_t i = 0; i < kReceives; ++i) {
    ASSERT_EQ(book.find(i)->max_length, 1000 + i);
    ASSERT_EQ(book.find(i)->tag, i);
  }
  EXPECT_EQ(book.find(kReceives), nullptr);
}

// What an announcer says, taken by a book.
struct Heard {
  int datagrams = 0;
  std::uint64_t known = 0;
};

Heard listen(sdk::CtsAnnouncer& announcer, sdk::GrantBook& book, TimePoint now) {
  std::vector<std::byte> datagram(1400);
  Heard heard;
  for (;; ++heard.datagrams) {
    ByteWriter writer(datagram);
    if (!announcer.poll(writer, now, kRtt)) break;
    book.handle(std::get<sdk::ClearToSend>(sdk::parse_control(writer.written()).value()));
  }
  heard.known = book.known();
  return heard;
}

TEST(ClearToSend, GatheredWhileTheSenderHasPlenty_IsSaidOnceForSeveralReceives) {
  constexpr Duration kHold = milliseconds(2);
  sdk::CtsAnnouncer announcer(64, 1 << 20);
  sdk::GrantBook book(64);
  announcer.gather(kHold);
  for (int i = 0; i < 16; ++i) announcer.announce({.max_length = 1000});
  TimePoint now{};
  ASSERT_EQ(listen(announcer, book, now).known, 16U) << "who has none is told at once";
  announcer.seen_in_use(0);
  for (int i = 0; i < 3; ++i) {
    now += kHold / 4;
    announcer.announce({.max_length = 1000});
    EXPECT_EQ(listen(announcer, book, now).datagrams, 0);
  }
  EXPECT_LE(announcer.next_timeout(), TimePoint{} + kHold / 4 + kHold) << "the first one waits no longer than that";
  const Heard heard = listen(announcer, book, announcer.next_timeout());
  EXPECT_EQ(heard.datagrams, 1);
  EXPECT_EQ(heard.known, 19U);
}

// A receiver that gathers, whose 16 receives the sender knows of, and which has posted one more.
struct Gathering {
  sdk::CtsAnnouncer announcer{64, 1 << 20};
  sdk::GrantBook book{64};
  TimePoint now{};

  void hold_one_back() {
    announcer.gather(milliseconds(2));
    for (int i = 0; i < 16; ++i) announcer.announce({.max_length = 1000});
    ASSERT_EQ(listen(announcer, book, now).known, 16U);
    now += milliseconds(1);
    announcer.announce({.max_length = 1000});
    ASSERT_EQ(listen(announcer, book, now).datagrams, 0);
  }
};

TEST(ClearToSend, GatheredUntilTheSenderHasFewLeft_IsSaidAtOnce) {
  Gathering gathering;
  ASSERT_NO_FATAL_FAILURE(gathering.hold_one_back());
  gathering.announcer.seen_in_use(13);
  EXPECT_EQ(listen(gathering.announcer, gathering.book, gathering.now).known, 17U);
}

TEST(ClearToSend, GatheredButAskedFor_IsSaidAtOnce) {
  Gathering gathering;
  ASSERT_NO_FATAL_FAILURE(gathering.hold_one_back());
  // All 16 are under way, and nothing of them has arrived.
  gathering.announcer.handle(sdk::GrantsKnown{.known = 16, .wanted = true});
  EXPECT_EQ(listen(gathering.announcer, gathering.book, gathering.now).known, 17U);
}

}  // namespace
}  // namespace sdr

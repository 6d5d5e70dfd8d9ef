// Control datagrams are statements that are repeated: the loss of any of them only costs time, a late copy changes
// nothing.
#include <gtest/gtest.h>

#include "reliability/control_message.hpp"
#include "sdk/control_message.hpp"
#include "tests/reliability/traffic.hpp"

namespace sdr::testing {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

enum class Kind { Cts, GrantsKnown, Ping, Pong, Offers, Reports, FinalReport, All };
constexpr Kind kKinds[] = {Kind::Cts,    Kind::GrantsKnown, Kind::Ping,        Kind::Pong,
                           Kind::Offers, Kind::Reports,     Kind::FinalReport, Kind::All};
constexpr const char* kNames[] = {"Cts", "GrantsKnown", "Ping", "Pong", "Offers", "Reports", "FinalReport", "All"};

bool is(Kind kind, const PacketView& view) {
  if (view.kind != PacketView::Kind::Control) return false;
  if (kind == Kind::All) return true;
  const auto message = sdk::parse_control(view.bytes);
  if (!message) return false;
  if (kind == Kind::Cts) return std::holds_alternative<sdk::ClearToSend>(*message);
  if (kind == Kind::GrantsKnown) return std::holds_alternative<sdk::GrantsKnown>(*message);
  const auto* upper = std::get_if<sdk::UpperDatagram>(&*message);
  if (upper == nullptr) return false;
  auto parsed = reliability::parse(upper->body);
  if (!parsed) return false;
  switch (kind) {
    case Kind::Ping:
      return std::holds_alternative<reliability::Ping>(*parsed);
    case Kind::Pong:
      return std::holds_alternative<reliability::Pong>(*parsed);
    case Kind::Offers:
      return std::holds_alternative<reliability::OffersReader>(*parsed);
    case Kind::Reports:
      return std::holds_alternative<reliability::ReportsReader>(*parsed);
    case Kind::FinalReport: {
      auto* reports = std::get_if<reliability::ReportsReader>(&*parsed);
      if (reports == nullptr) return false;
      reliability::Report report;
      bool complete = !reports->next(report);
      for (bool more = !complete; more; more = reports->next(report)) complete = complete || report.complete;
      return complete;
    }
    default:
      return false;
  }
}

ConnectionOptions options_for(Scheme scheme) {
  ConnectionOptions options;
  options.scheme = scheme;
  options.data_chunks = 8;
  options.parity_chunks = 2;
  options.queue_pair.mtu = {1024};
  options.queue_pair.slots = 8;
  options.queue_pair.max_message = 32_KiB;
  options.queue_pair.rate = {1e9};
  options.peer_timeout = seconds(200);
  return options;
}

transport::SimulatedOptions path(const char* text) {
  transport::SimulatedOptions network;
  network.link = simulation::LinkSpec::parse(text).value();
  return network;
}

std::vector<Message> messages(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<Message> out;
  for (int i = 0; i < 25; ++i) {
    const std::uint64_t capacity = random() % 100'000;
    out.push_back({.size = random() % (capacity + 1),
                   .capacity = capacity,
                   .immediate = static_cast<std::uint32_t>(i),
                   .source = random() % 64,
                   .shift = random() % 64});
  }
  return out;
}

class ControlLoss : public ::testing::TestWithParam<std::tuple<Scheme, Kind>> {
 protected:
  // Drops what `drop` says of the control datagrams of the kind, both ways; Writes go both ways, too.
  void carry(const std::function<bool(std::uint64_t count, TimePoint now)>& drop, Duration limit) {
    const auto [scheme, kind] = GetParam();
    ConnectionPair pair(path("rtt=4ms,rate=1Gbit,loss=0.01,queue=50ms"), options_for(scheme));
    pair.set_step(microseconds(20));
    std::array<std::uint64_t, 2> seen{};
    for (const Site from : {Site::A, Site::B})
      pair.network().set_filter(from, [&, kind = kind, from](const PacketView& view) {
        if (!is(kind, view)) return Verdict::Pass;
        return drop(seen[static_cast<std::size_t>(from)]++, view.now) ? Verdict::Drop : Verdict::Pass;
      });
    Traffic there(pair, Site::A, messages(1));
    Traffic back(pair, Site::B, messages(2));
    const bool done = pair.run_until(
        [&] {
          const bool there_done = there.step();
          return back.step() && there_done;
        },
        limit);
    EXPECT_EQ(there.problem() + back.problem(), "");
    EXPECT_TRUE(done) << there.progress() << "; " << back.progress();
  }
};

TEST_P(ControlLoss, OfTheFirstOnes_OnlyCostsTime) {
  for (const std::uint64_t n : {1U, 3U, 8U}) {
    SCOPED_TRACE(n);
    carry([n](std::uint64_t count, TimePoint) { return count < n; }, seconds(12));
  }
}

TEST_P(ControlLoss, OfEveryKth_OnlyCostsTime) {
  for (const std::uint64_t k : {2U, 3U, 7U})
    for (std::uint64_t phase = 0; phase < k; ++phase) {
      SCOPED_TRACE(std::to_string(k) + " " + std::to_string(phase));
      carry([=](std::uint64_t count, TimePoint) { return count % k == phase; }, seconds(20));
    }
}

TEST_P(ControlLoss, OfMostOfThem_OnlyCostsTime) {
  // Four of five, by chance: a fixed pattern might meet the pattern of what is sent.
  carry([](std::uint64_t count, TimePoint) { return std::mt19937_64(count)() % 5 != 0; }, seconds(400));
}

TEST_P(ControlLoss, OfAllForAWhile_OnlyCostsTime) {
  const TimePoint begin(seconds(1));  // where virtual time starts
  for (const auto at : {milliseconds(0), milliseconds(9), milliseconds(31)}) {
    SCOPED_TRACE(at.count());
    carry([&](std::uint64_t, TimePoint now) { return now >= begin + at && now < begin + at + milliseconds(700); },
          seconds(12));
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, ControlLoss,
                         ::testing::Combine(::testing::ValuesIn(kAllSchemes), ::testing::ValuesIn(kKinds)),
                         [](const auto& test) {
                           return identifier(std::get<0>(test.param)) + "_" +
                                  kNames[static_cast<std::size_t>(std::get<1>(test.param))];
                         });

class LateControl : public ::testing::TestWithParam<Scheme> {};

// Every datagram ever sent arrives a second time, long after, in the midst of other Writes.
TEST_P(LateControl, ReplayOfEverythingSaid_ChangesNothing) {
  ConnectionPair pair(path("rtt=4ms,rate=1Gbit,loss=0.02,queue=50ms"), options_for(GetParam()));
  pair.set_step(microseconds(20));
  std::array<std::vector<std::vector<std::byte>>, 2> said;
  for (const Site from : {Site::A, Site::B})
    pair.network().set_filter(from, [&, from](const PacketView& view) {
      if (view.kind == PacketView::Kind::Control)
        said[static_cast<std::size_t>(from)].emplace_back(view.bytes.begin(), view.bytes.end());
      return Verdict::Pass;
    });
  for (int round = 0; round < 4; ++round) {
    // What is replayed is said again, and must not be replayed in this round.
    const auto heard = said;  // NOLINT(performance-unnecessary-copy-initialization)
    TimePoint at = pair.now() + milliseconds(1);
    for (std::size_t i = 0; i < std::max(heard[0].size(), heard[1].size()); ++i, at += microseconds(20))
      for (const Site from : {Site::A, Site::B})
        if (i < heard[static_cast<std::size_t>(from)].size())
          pair.network()
              .endpoint(other(from))
              ->inject_control(heard[static_cast<std::size_t>(from)][i], ConnectionPair::token(other(from)), at);
    Traffic there(pair, Site::A, messages(10 + static_cast<std::uint64_t>(round)));
    Traffic back(pair, Site::B, messages(20 + static_cast<std::uint64_t>(round)));
    const bool done = pair.run_until(
        [&] {
          const bool there_done = there.step();
          return back.step() && there_done;
        },
        seconds(20));
    EXPECT_EQ(there.problem() + back.problem(), "");
    EXPECT_TRUE(done) << there.progress() << "; " << back.progress();
    pair.run_for(milliseconds(300));
  }
  EXPECT_FALSE(pair.a().poll_write() || pair.a().poll_receive() || pair.b().poll_write() || pair.b().poll_receive());
  EXPECT_LT(pair.a().statistics().rtt_smoothed, milliseconds(12));
  EXPECT_LT(pair.b().statistics().rtt_smoothed, milliseconds(12));
}

// The last words, too: nobody waits for ever to hear that the other has heard.
TEST_P(LateControl, BothEndsSettle_WhateverIsLost) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(seed);
    transport::SimulatedOptions network = path("rtt=4ms,rate=1Gbit,loss=0.2,queue=50ms");
    network.link.seed = seed;
    ConnectionPair pair(network, options_for(GetParam()));
    Traffic traffic(pair, Site::A, {{.size = 5000, .capacity = 5000}, {.size = 100, .capacity = 99'000}});
    const Connection& a = pair.a();
    const Connection& b = pair.b();
    ASSERT_TRUE(pair.run_until([&] { return traffic.step() && a.settled() && b.settled(); }, seconds(10)))
        << traffic.progress() << " " << a.settled() << b.settled();
    EXPECT_EQ(traffic.problem(), "");
  }
}

INSTANTIATE_TEST_SUITE_P(Schemes, LateControl, ::testing::ValuesIn(kAllSchemes),
                         [](const auto& test) { return identifier(test.param); });

// Packets that the path keeps back until their receive is complete and its buffer posted again.
TEST_P(LateControl, LatePackets_AfterCompletion_TouchNothing) {
  ConnectionPair pair(path("rtt=4ms,rate=1Gbit,queue=50ms"), options_for(GetParam()));
  ASSERT_TRUE(pair.get_ready());
  const auto first = random_bytes(60'000, 1);
  const auto second = random_bytes(60'000, 2);
  std::vector<std::byte> buffer(first.size());
  // The first copy of every fifth packet is kept back; its repetition passes.
  std::uint64_t count = 0;
  pair.network().set_filter(Site::A, [&](const PacketView& view) {
    return view.kind == PacketView::Kind::Data && count++ % 5 == 0 ? Verdict::Hold : Verdict::Pass;
  });
  ASSERT_TRUE(pair.b().post_receive(buffer));
  ASSERT_TRUE(pair.a().post_write(first));
  ASSERT_TRUE(pair.run_until([&] { return pair.b().poll_receive().has_value(); }, seconds(5)));
  pair.run_for(milliseconds(100));
  ASSERT_EQ(buffer, first);
  ASSERT_GT(pair.network().held(Site::A), 5U);
  pair.network().set_filter(Site::A, nullptr);

  // Completed and not posted again. Parity that was not needed may have come late already.
  const std::uint64_t late_before = pair.b().statistics().late_packets;
  std::fill(buffer.begin(), buffer.end(), std::byte{0x33});
  const std::size_t half = pair.network().held(Site::A) / 2;
  for (std::size_t i = 0; i < half; ++i) pair.network().release(Site::A, 0, pair.now());
  pair.run_for(milliseconds(5));
  EXPECT_TRUE(std::all_of(buffer.begin(), buffer.end(), [](std::byte b) { return b == std::byte{0x33}; }));
  EXPECT_EQ(pair.b().statistics().late_packets - late_before, half);

  // Posted again, and another Write on its way into it.
  ASSERT_TRUE(pair.b().post_receive(buffer));
  pair.network().release_all(Site::A, pair.now());
  pair.run_for(milliseconds(5));
  EXPECT_TRUE(std::all_of(buffer.begin(), buffer.end(), [](std::byte b) { return b == std::byte{0x33}; }));
  EXPECT_FALSE(pair.b().poll_receive());
  ASSERT_TRUE(pair.a().post_write(second));
  ASSERT_TRUE(pair.run_until([&] { return pair.b().poll_receive().has_value(); }, seconds(5)));
  EXPECT_EQ(buffer, second);
}

}  // namespace
}  // namespace sdr::testing

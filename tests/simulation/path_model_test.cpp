// PathModel in virtual time, and the texts that it is built from.
#include "simulation/path_model.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace sdr::simulation {
namespace {

using namespace std::chrono_literals;

constexpr TimePoint kStart{1s};

PathSpec path(std::string_view link, std::string_view queue = "drop-tail",
              const std::vector<std::string>& changes = {}) {
  PathSpec spec;
  const Result<LinkSpec> parsed = LinkSpec::parse(link);
  EXPECT_TRUE(parsed.ok()) << (parsed.ok() ? "" : parsed.error().message);
  spec.link = *parsed;
  const Result<QueueSpec> queued = QueueSpec::parse(queue, spec.link);
  EXPECT_TRUE(queued.ok()) << (queued.ok() ? "" : queued.error().message);
  spec.queue = *queued;
  for (const std::string& change : changes) {
    const Result<void> added = spec.add_change(change);
    EXPECT_TRUE(added.ok()) << (added.ok() ? "" : added.error().message);
  }
  return spec;
}

std::vector<PathModel::Arrival> arrivals(PathModel& model, TimePoint until) {
  std::vector<PathModel::Arrival> all;
  while (const PathModel::Arrival* arrival = model.due(until)) {
    all.push_back(*arrival);
    model.pop();
  }
  return all;
}

TEST(PathModel, APacket_ArrivesAfterItsTimeOnTheWireAndHalfTheRtt) {
  for (const Direction direction : {Direction::Forward, Direction::Backward}) {
    PathModel model(path("rtt=50ms,rate=1Gbit"), direction, kStart);
    ASSERT_TRUE(model.offer(7, 1250, false, kStart));
    EXPECT_EQ(model.next(), kStart + 25ms + 10us);
    EXPECT_TRUE(arrivals(model, kStart + 25ms + 10us - 1ns).empty());
    const auto arrived = arrivals(model, kStart + 25ms + 10us);
    ASSERT_EQ(arrived.size(), 1U);
    EXPECT_EQ(arrived[0].handle, 7U);
    EXPECT_TRUE(arrived[0].last);
    EXPECT_EQ(model.next(), kNever);
  }
}

TEST(PathModel, BeingAskedLate_ChangesNothing) {
  const PathSpec spec = path("rtt=20ms,rate=100Mbit,loss=0.05,reorder=0.01,dup=0.01,jitter=2ms", "codel,limit=1MiB",
                             {"50ms:rate=50Mbit", "100ms:rtt=60ms"});
  const auto run = [&](Duration step) {
    PathModel model(spec, Direction::Forward, kStart);
    std::vector<std::pair<std::uint32_t, TimePoint>> all;
    TimePoint asked = kStart;
    for (std::uint32_t i = 0; i < 3000; ++i) {
      const TimePoint now = kStart + i * 100us;
      model.offer(i, 1400, false, now);
      if (now < asked) continue;
      asked = now + step;
      for (const auto& arrival : arrivals(model, now)) all.emplace_back(arrival.handle, arrival.at);
    }
    for (const auto& arrival : arrivals(model, kStart + 10s)) all.emplace_back(arrival.handle, arrival.at);
    std::sort(all.begin(), all.end());
    return all;
  };
  EXPECT_EQ(run(0ms), run(17ms));
}

TEST(PathModel, Throughput_IsTheRate_AndWhatDoesNotFitTheQueueIsDropped) {
  PathModel model(path("rtt=10ms,rate=1Gbit", "drop-tail,limit=1bdp"), Direction::Forward, kStart);
  // Two packets of 1250 bytes each 10 us, for a second: twice the rate.
  std::uint64_t accepted = 0;
  for (int i = 0; i < 200'000; ++i) accepted += model.offer(0, 1250, false, kStart + i * 5us);
  const auto arrived = arrivals(model, kStart + 10s);
  EXPECT_EQ(arrived.size(), accepted);
  // A second of the rate, and the 1.25 MB that the queue still held.
  EXPECT_NEAR(static_cast<double>(accepted), 100'000 + 1000, 2);
  const PathCounts counts = model.counts();
  EXPECT_EQ(counts.queue.most_bytes, 1'250'000U);
  EXPECT_EQ(counts.queue.tail_drops, 200'000U - accepted);
  EXPECT_EQ(counts.delivered_bytes, accepted * 1250);
  EXPECT_NEAR(static_cast<double>(counts.queue.longest_wait.count()), 10e6, 20e3);
  // Full from 10 ms on: 1.25 MB for nearly all of the second.
  EXPECT_NEAR(counts.queued_byte_seconds / 1.25e6, 1.0, 0.02);
}

TEST(PathModel, LossesAndTheirRuns_AreThoseOfTheLink) {
  PathModel model(path("rtt=10ms,rate=1Gbit,loss=0.01,burst=10,seed=5"), Direction::Forward, kStart);
  constexpr std::uint32_t kPackets = 400'000;
  for (std::uint32_t i = 0; i < kPackets; ++i) ASSERT_TRUE(model.offer(i, 1500, false, kStart + i * 12us));
  arrivals(model, kStart + 60s);
  std::uint64_t runs = 0;
  std::uint32_t before = kPackets;
  for (const std::uint32_t handle : model.dropped()) {
    runs += handle != before + 1;
    before = handle;
  }
  EXPECT_EQ(model.dropped().size(), model.counts().lost);
  EXPECT_NEAR(static_cast<double>(model.counts().lost) / kPackets, 0.01, 0.0035);
  EXPECT_NEAR(static_cast<double>(model.counts().lost) / static_cast<double>(runs), 10, 2.5);
  model.clear_dropped();
  EXPECT_TRUE(model.dropped().empty());
}

TEST(PathModel, EveryHandle_ComesBackExactlyOnce) {
  PathModel model(path("rtt=10ms,rate=200Mbit,loss=0.05,dup=0.1,reorder=0.1,jitter=1ms", "codel,limit=64KiB"),
                  Direction::Forward, kStart);
  std::vector<int> back(20'000, 0);
  for (std::uint32_t i = 0; i < back.size(); ++i) {
    if (!model.offer(i, 1000, false, kStart + i * 30us)) ++back[i];
  }
  std::uint64_t copies = 0;
  for (const auto& arrival : arrivals(model, kStart + 60s)) {
    copies += !arrival.last;
    back[arrival.handle] += arrival.last;
  }
  for (const std::uint32_t handle : model.dropped()) ++back[handle];
  EXPECT_EQ(std::count(back.begin(), back.end(), 1), static_cast<std::ptrdiff_t>(back.size()));
  EXPECT_EQ(copies, model.counts().duplicated);
  EXPECT_GT(copies, 500U);
}

TEST(PathModel, AnOutage_IsCountedFromTheStart) {
  PathModel model(path("rtt=10ms,rate=1Gbit,outage=100ms+50ms"), Direction::Forward, kStart);
  for (std::uint32_t i = 0; i < 300; ++i) ASSERT_TRUE(model.offer(i, 125, false, kStart + 50ms + i * 1ms));
  arrivals(model, kStart + 60s);
  const auto dropped = model.dropped();
  ASSERT_EQ(dropped.size(), 50U);
  EXPECT_EQ(dropped.front(), 50U);
  EXPECT_EQ(dropped.back(), 99U);
  EXPECT_EQ(model.counts().lost_in_outage, 50U);
  EXPECT_EQ(model.counts().lost, 0U);
}

// --- changes ---

TEST(PathModel, ARateThatFallsTenfold_HoldsFromItsTimeOn) {
  PathModel model(path("rtt=10ms,rate=100Mbit", "drop-tail,limit=64MiB", {"1s:rate=10Mbit"}), Direction::Forward,
                  kStart);
  for (int i = 0; i < 20'000; ++i) ASSERT_TRUE(model.offer(0, 1250, false, kStart + i * 100us));
  EXPECT_EQ(arrivals(model, kStart + 1s + 5ms).size(), 10'000U);
  EXPECT_NEAR(static_cast<double>(arrivals(model, kStart + 2s + 5ms).size()), 1000, 1);
}

TEST(PathModel, ALongerRtt_DelaysWhatIsSentFromThenOn_AndAShorterOneOvertakes) {
  PathModel model(path("rtt=30ms,rate=1Gbit", "drop-tail", {"100ms:rtt=90ms", "200ms:rtt=30ms"}), Direction::Forward,
                  kStart);
  for (std::uint32_t i = 0; i < 300; ++i) ASSERT_TRUE(model.offer(i, 125, false, kStart + i * 1ms));
  const auto all = arrivals(model, kStart + 60s);
  ASSERT_EQ(all.size(), 300U);
  bool overtaken = false;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::uint32_t n = all[i].handle;
    const Duration delay = n >= 100 && n < 200 ? 45ms : 15ms;
    EXPECT_EQ(all[i].at, kStart + n * 1ms + 1us + delay) << n;
    overtaken = overtaken || (i > 0 && n < all[i - 1].handle);
  }
  EXPECT_TRUE(overtaken);
}

TEST(PathModel, ALossThatJumps_TakesItsShareFromThenOn) {
  PathModel model(path("rtt=10ms,rate=1Gbit,loss=1e-3,seed=2", "drop-tail", {"1s:loss=0.1"}), Direction::Forward,
                  kStart);
  for (std::uint32_t i = 0; i < 200'000; ++i) ASSERT_TRUE(model.offer(i, 1250, false, kStart + i * 10us));
  arrivals(model, kStart + 60s);
  std::uint64_t before = 0;
  for (const std::uint32_t handle : model.dropped()) before += handle < 100'000;
  EXPECT_NEAR(static_cast<double>(before), 100, 50);
  EXPECT_NEAR(static_cast<double>(model.dropped().size() - before), 10'000, 500);
  EXPECT_EQ(model.counts().lost, model.dropped().size());
}

// --- texts ---

TEST(QueueSpec, Limits_AreSizesTimesOrBandwidthDelayProducts) {
  const LinkSpec link = *LinkSpec::parse("rtt=50ms,rate=1Gbit,queue=4ms");
  const auto limit = [&](std::string_view text) { return QueueSpec::parse(text, link)->limit.count; };
  EXPECT_EQ(limit("drop-tail,limit=512KiB"), 512U << 10);
  EXPECT_EQ(limit("drop-tail,limit=20ms"), 2'500'000U);
  EXPECT_EQ(limit("drop-tail,limit=1bdp"), 6'250'000U);
  EXPECT_EQ(limit("policer,burst=0.5bdp"), 3'125'000U);
  EXPECT_EQ(limit("drop-tail"), 500'000U) << "the link's queue";
  EXPECT_EQ(limit("policer"), 500'000U);
  EXPECT_EQ(limit("codel"), 25'000'000U) << "twice the interval";
  const QueueSpec codel = *QueueSpec::parse("codel,target=1ms,interval=20ms,ecn,limit=1MiB", link);
  EXPECT_EQ(codel.target, 1ms);
  EXPECT_EQ(codel.interval, 20ms);
  EXPECT_TRUE(codel.ecn);
  for (const char* text : {"drop-tail,limit=1bdp", "codel,ecn,target=1ms", "policer,burst=64KiB"}) {
    const QueueSpec spec = *QueueSpec::parse(text, link);
    EXPECT_EQ(*QueueSpec::parse(to_string(spec), link), spec) << to_string(spec);
  }
}

TEST(QueueSpec, WrongTexts_AreRefusedWithWhatIsExpected) {
  const LinkSpec link = *LinkSpec::parse("rtt=50ms,rate=1Gbit");
  for (const char* text :
       {"", "red", "drop-tail,limit", "drop-tail,limit=-1bdp", "drop-tail,limit=nanbdp", "drop-tail,burst=1KiB",
        "drop-tail,ecn", "policer,limit=1MiB", "policer,burst=100", "codel,target=0s", "codel,target=5",
        "codel,target=200ms", "codel,", "drop-tail,limit=2TiB", "drop-tail,limit=1e999bdp"}) {
    const Result<QueueSpec> refused = QueueSpec::parse(text, link);
    ASSERT_FALSE(refused.ok()) << text;
    EXPECT_EQ(refused.error().code, ErrorCode::InvalidArgument);
    EXPECT_TRUE(refused.error().message.starts_with("queue: ")) << refused.error().message;
  }
  EXPECT_FALSE(QueueSpec::parse("drop-tail,limit=1bdp", *LinkSpec::parse("rtt=50ms")).ok()) << "there is no rate";
}

TEST(PathSpec, AChange_KeepsWhatItDoesNotName) {
  const PathSpec spec = path("rtt=50ms,rate=1Gbit,loss=1e-3,burst=4,outage=1s+1s", "drop-tail",
                             {"5s:rate=100Mbit", "10s:rtt=150ms,loss=0.01"});
  ASSERT_EQ(spec.changes.size(), 2U);
  EXPECT_EQ(spec.changes[0].link.rate.bits_per_second, 1e8);
  EXPECT_EQ(spec.changes[0].link.rtt, 50ms);
  EXPECT_EQ(spec.changes[1].at, 10s);
  EXPECT_EQ(spec.changes[1].link.rate.bits_per_second, 1e8);
  EXPECT_EQ(spec.changes[1].link.rtt, 150ms);
  EXPECT_EQ(spec.changes[1].link.loss, 0.01);
  EXPECT_EQ(spec.changes[1].link.burst, 4);
  EXPECT_EQ(spec.changes[1].link.outages, spec.link.outages);
}

TEST(PathSpec, WrongChanges_AreRefused) {
  PathSpec spec = path("rtt=50ms,rate=1Gbit", "drop-tail", {"5s:rate=100Mbit"});
  for (const char* text : {"", "rate=1Gbit", "5:rate=1Gbit", "-1s:rate=1Gbit", "4s:rate=1Gbit", "6s:", "6s:speed=1",
                           "6s:rate=fast", "6s:seed=4", "6s:mtu=9000", "6s:queue=1ms", "6s:outage=1s+1s",
                           "6s:trace=1:1", "6s:rate=1Gbit,rate=2Gbit", "25h:rate=1Gbit"}) {
    const Result<void> refused = spec.add_change(text);
    ASSERT_FALSE(refused.ok()) << text;
    EXPECT_EQ(refused.error().code, ErrorCode::InvalidArgument);
  }
  EXPECT_EQ(spec.changes.size(), 1U);
}

}  // namespace
}  // namespace sdr::simulation

#include "reliability/arrival_tracker.hpp"

#include <gtest/gtest.h>

#include <set>

#include "tests/reliability/pair.hpp"

namespace sdr::reliability {
namespace {

struct Bitmap {
  explicit Bitmap(std::uint32_t chunks) : words((chunks + 63) / 64 + 1) {}
  void set(std::uint32_t chunk) { words[chunk / 64].fetch_or(std::uint64_t{1} << (chunk % 64)); }
  [[nodiscard]] ChunkBitmap view() const { return {words.data(), words.size() - 1}; }
  std::vector<std::atomic<std::uint64_t>> words;
};

TEST(ArrivalTracker, AgreesWithANaiveModel) {
  const std::uint64_t seed = testing::test_seed(9);
  SCOPED_TRACE(testing::seed_trace(seed));
  std::mt19937_64 random(seed);
  ArrivalTracker tracker;
  for (int round = 0; round < 300; ++round) {
    const auto chunks = static_cast<std::uint32_t>(random() % 400);
    Bitmap bitmap(chunks);
    std::set<std::uint32_t> here;
    tracker.begin(chunks);
    for (int look = 0; look < 30; ++look) {
      std::set<std::uint32_t> fresh;
      for (std::uint64_t n = chunks == 0 ? 0 : random() % (chunks / 8 + 2); n > 0; --n) {
        const auto chunk = static_cast<std::uint32_t>(random() % 3 == 0 ? random() % chunks : here.size() % chunks);
        bitmap.set(chunk);
        if (here.insert(chunk).second) fresh.insert(chunk);
      }
      std::set<std::uint32_t> reported;
      const bool news = tracker.poll(bitmap.view(), [&](std::uint32_t c) { EXPECT_TRUE(reported.insert(c).second); });
      EXPECT_EQ(reported, fresh);
      EXPECT_EQ(news, !fresh.empty());
      std::uint32_t cumulative = 0;
      while (here.count(cumulative) != 0) ++cumulative;
      EXPECT_EQ(tracker.cumulative(), cumulative);
      EXPECT_EQ(tracker.highest(), here.empty() ? 0 : *here.rbegin() + 1);
      EXPECT_EQ(tracker.arrived(), here.size());
      EXPECT_EQ(tracker.complete(), here.size() == chunks);
      const auto from = static_cast<std::uint32_t>(random() % (chunks + 1));
      const auto to = from + static_cast<std::uint32_t>(random() % (chunks - from + 1));
      std::set<std::uint32_t> missing;
      std::uint32_t last = 0;
      tracker.each_missing(from, to, [&](std::uint32_t first, std::uint32_t count) {
        EXPECT_GT(count, 0U);
        EXPECT_TRUE(missing.empty() || first > last) << "ranges touch";
        last = first + count;
        for (std::uint32_t c = first; c < first + count; ++c) missing.insert(c);
      });
      for (std::uint32_t c = from; c < to; ++c) EXPECT_EQ(missing.count(c), 1 - here.count(c)) << c;
      EXPECT_TRUE(missing.empty() || (*missing.begin() >= from && *missing.rbegin() < to));
    }
  }
}

// The posted receive may be longer than the Write: phantom bits beyond the transfer are none of its chunks.
TEST(ArrivalTracker, BitsBeyondTheEnd_AreNotSeen) {
  Bitmap bitmap(128);
  for (std::uint32_t chunk = 0; chunk < 128; ++chunk) bitmap.set(chunk);
  ArrivalTracker tracker;
  tracker.begin(70);
  tracker.poll(bitmap.view(), [](std::uint32_t chunk) { EXPECT_LT(chunk, 70U); });
  EXPECT_EQ(tracker.arrived(), 70U);
  EXPECT_TRUE(tracker.complete());
  EXPECT_EQ(tracker.cumulative(), 70U);
}

}  // namespace
}  // namespace sdr::reliability

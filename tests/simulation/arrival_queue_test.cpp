#include "simulation/arrival_queue.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <random>

#include "simulation/buffer_pool.hpp"

namespace sdr::simulation {
namespace {

using namespace std::chrono_literals;

constexpr TimePoint at(int ns) {
  return TimePoint(Duration(ns));
}

std::vector<int> drained(ArrivalQueue<int>& queue, TimePoint now) {
  std::vector<int> items;
  while (const int* item = queue.due(now)) {
    items.push_back(*item);
    queue.pop();
  }
  return items;
}

TEST(ArrivalQueue, Items_ComeOutByTimeAndNotBefore) {
  ArrivalQueue<int> queue;
  EXPECT_EQ(queue.next(), kNever);
  queue.push(at(10), 1);
  queue.push_late(at(25), 2);
  queue.push(at(20), 3);
  queue.push(at(30), 4);
  EXPECT_EQ(queue.next(), at(10));
  EXPECT_THAT(drained(queue, at(9)), testing::ElementsAre());
  EXPECT_THAT(drained(queue, at(25)), testing::ElementsAre(1, 3, 2));
  EXPECT_EQ(queue.next(), at(30));
  EXPECT_EQ(queue.size(), 1U);
  EXPECT_THAT(drained(queue, at(30)), testing::ElementsAre(4));
  EXPECT_TRUE(queue.empty());
}

TEST(ArrivalQueue, EqualTimes_ComeOutAsTheyWentIn_TheStreamBeforeTheLate) {
  ArrivalQueue<int> queue;
  for (int i = 0; i < 5; ++i) queue.push_late(at(10), 10 + i);
  for (int i = 0; i < 5; ++i) queue.push(at(10), i);
  EXPECT_THAT(drained(queue, at(10)), testing::ElementsAre(0, 1, 2, 3, 4, 10, 11, 12, 13, 14));
}

TEST(ArrivalQueue, PushBeforeItsPredecessor_IsSortedIn) {
  ArrivalQueue<int> queue;
  queue.push(at(20), 1);
  queue.push(at(10), 2);
  queue.push(at(30), 3);
  EXPECT_THAT(drained(queue, at(30)), testing::ElementsAre(2, 1, 3));
}

TEST(ArrivalQueue, RandomPushesAndPops_MatchASortedMap) {
  const char* given = std::getenv("SDR_TEST_SEED");
  const auto seed =
      given != nullptr ? static_cast<std::uint32_t>(std::strtoul(given, nullptr, 0)) : std::random_device{}();
  SCOPED_TRACE(testing::Message() << "SDR_TEST_SEED=" << seed);
  std::mt19937 random(seed);
  ArrivalQueue<int> queue;
  std::multimap<TimePoint, int> model;
  TimePoint now{};
  TimePoint stream{};
  for (int i = 0; i < 100'000; ++i) {
    const int kind = static_cast<int>(random() % 8);
    if (kind < 5) {
      stream = std::max(stream, now) + Duration(1 + random() % 10);
      queue.push(stream, i);
      model.emplace(stream, i);
    } else if (kind == 5) {
      const TimePoint late = now + Duration(random() % 1000);
      queue.push_late(late, i);
      model.emplace(late, i);
    } else {
      now += Duration(random() % 40);
      while (const int* item = queue.due(now)) {
        const auto first = model.begin()->first;
        bool found = false;
        for (auto it = model.lower_bound(first); it != model.end() && it->first == first; ++it) {
          if (it->second != *item) continue;
          model.erase(it);
          found = true;
          break;
        }
        ASSERT_TRUE(found) << *item << " is not among the first";
        queue.pop();
      }
      ASSERT_TRUE(model.empty() || model.begin()->first > now);
    }
    ASSERT_EQ(queue.size(), model.size());
  }
}

TEST(BufferPool, Buffers_AreDistinctAndReused) {
  BufferPool pool(100);
  std::vector<BufferPool::Handle> handles;
  std::map<std::byte*, BufferPool::Handle> places;
  for (int i = 0; i < 200; ++i) {
    handles.push_back(pool.take());
    places[pool.data(handles.back())] = handles.back();
  }
  EXPECT_EQ(places.size(), 200U);
  EXPECT_EQ(pool.bytes_in_use(), 200U * 100);
  for (auto it = places.begin(); std::next(it) != places.end(); ++it) {
    const auto gap = std::less<>{}(it->first, std::next(it)->first) ? std::next(it)->first - it->first : 0;
    EXPECT_GE(gap, 100);
  }
  for (const auto handle : handles) pool.give_back(handle);
  pool.give_back(BufferPool::kNone);
  EXPECT_EQ(pool.bytes_in_use(), 0U);
  for (int i = 0; i < 200; ++i) EXPECT_TRUE(places.contains(pool.data(pool.take()))) << "new memory was taken";
}

}  // namespace
}  // namespace sdr::simulation

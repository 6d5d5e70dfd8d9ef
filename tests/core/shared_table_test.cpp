// Several workers share one table while a reader polls the chunk bitmap. Runs under -fsanitize=thread like any other
// test; PublishOrder shows that the sanitizer would see a weaker order.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/core/seed.hpp"
#include "tests/core/table.hpp"

namespace sdr::core {
namespace {

using testing_support::seed_trace;
using testing_support::test_seed;

// The payload of packet p in round r: plain memory, written before the completion, read after the chunk bit.
constexpr std::uint32_t payload_of(std::uint32_t packet, std::uint32_t round) {
  return packet * 7919 + round + 1;
}

class SharedTable : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(ChunkSizes, SharedTable, testing::Values(0, 2, 4, 6, 7, 8),
                         [](const auto& test) { return std::to_string(1 << test.param) + "Packets"; });

TEST_P(SharedTable, ChunkBit_IsThereExactlyWhenEveryByteOfTheChunkIs) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(seed_trace(seed));
  std::mt19937_64 random(seed);
  constexpr std::uint32_t kWorkers = 4;
  constexpr std::uint32_t kPackets = 2048 - 5;
  const auto log = static_cast<std::uint8_t>(GetParam());
  TestTable t(TestTable::geometry(kPackets, log, 2));
  const std::uint32_t chunks = (kPackets + (1U << log) - 1) >> log;

  for (std::uint32_t round = 0; round < 6; ++round) {
    const auto generation = static_cast<std::uint8_t>(round % 8);
    t.table.post(SlotIndex(1), Generation(generation), kPackets);
    std::vector<std::uint32_t> payload(kPackets, 0);
    std::vector<std::uint32_t> order(kPackets);
    for (std::uint32_t p = 0; p < kPackets; ++p) order[p] = p;
    // Nearly in order for half of the rounds: neighbours then race for the same word and chunk.
    if (round % 2 == 0) std::shuffle(order.begin(), order.end(), random);
    std::vector<std::vector<std::uint32_t>> shares(kWorkers);
    for (const std::uint32_t p : order) shares[random() % kWorkers].push_back(p);

    std::atomic<std::uint32_t> wrong{0};
    std::atomic<bool> go{false};
    std::vector<std::unique_ptr<ReceiveWorker>> workers;
    std::vector<std::thread> threads;
    for (std::uint32_t w = 0; w < kWorkers; ++w) {
      workers.push_back(std::make_unique<ReceiveWorker>(t.table, kTestMtu));
      threads.emplace_back([&, w, step = 1 + random() % 24] {
        while (!go.load(std::memory_order_acquire)) std::this_thread::yield();
        std::vector<Completion> batch;
        for (const std::uint32_t p : shares[w]) {
          payload[p] = payload_of(p, round);
          batch.push_back(t.packet(1, p, kTestMtu, generation));
          if (batch.size() < step) continue;
          workers[w]->process(batch);
          batch.clear();
        }
        workers[w]->process(batch);
      });
    }
    std::thread reader([&] {
      std::vector<bool> checked(chunks, false);
      for (std::uint32_t left = chunks; left > 0; std::this_thread::yield()) {
        for (std::uint32_t c = 0; c < chunks; ++c) {
          if (checked[c]) continue;
          const BitmapWord& word = t.table.chunk_bits(SlotIndex(1))[c / 64];
          if ((word.load(std::memory_order_acquire) >> (c % 64) & 1) == 0) continue;
          for (std::uint32_t p = c << log; p < std::min(kPackets, (c + 1) << log); ++p)
            if (payload[p] != payload_of(p, round)) wrong.fetch_add(1);
          checked[c] = true;
          --left;
        }
      }
    });
    go.store(true, std::memory_order_release);
    for (std::thread& thread : threads) thread.join();
    reader.join();  // it ends only when every chunk has been published
    EXPECT_EQ(wrong.load(), 0U) << "round " << round;
    std::uint64_t counted = 0;
    for (const auto& worker : workers) counted += worker->counters().packets.get();
    EXPECT_EQ(counted, kPackets);
    t.close_and_clean(1);
    ASSERT_TRUE(t.all_zero());
  }
}

// A separate program, because the finding must not fail the program that looks for it. Compiled here, with the system's
// compiler: the suite itself need not be built with the sanitizer.
class PublishOrder : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    const char* compiler = std::getenv("CXX");
    program_ = testing::TempDir() + "/sdr_publish_order_" + std::to_string(::getpid());
    const std::string source = SDR_SOURCE_DIR;
    built_ = run(std::string(compiler == nullptr ? "c++" : compiler) +
                 " -std=c++20 -O1 -g -fsanitize=thread -pthread -I" + source + "/src -I" + source + " -I" + source +
                 "/include " + source + "/tests/core/publish_order.cpp -o " + program_) == 0;
  }
  static void TearDownTestSuite() { std::filesystem::remove(program_); }
  void SetUp() override {
    if (!built_) GTEST_SKIP() << "no compiler with -fsanitize=thread";
    if (run("TSAN_OPTIONS=exitcode=66 " + program_ + " nothing") != 0)
      GTEST_SKIP() << "the sanitizer does not run here";
  }
  static int order(const std::string& which) { return run("TSAN_OPTIONS=exitcode=66 " + program_ + " " + which); }

 private:
  static int run(const std::string& command) {
    const int status = std::system((command + " >/dev/null 2>&1").c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  static inline std::string program_;
  static inline bool built_ = false;
};

// One test, so that the program is compiled once.
TEST_F(PublishOrder, OfTheWorker_HasNoRaceAndEachWeakerOneIsCaught) {
  EXPECT_EQ(order("worker"), 0);
  EXPECT_EQ(order("copy"), 0);
  EXPECT_EQ(order("weak-chunk-bit"), 66);
  EXPECT_EQ(order("weak-packet-bits"), 66);
}

}  // namespace
}  // namespace sdr::core

// Ranks of a sweep as threads that pass texts in memory: the same results as one alone, whoever falls silent.
#include "sdr/sweep_ranks.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "sdr/driver.hpp"
#include "sdr/sweep_cell.hpp"
#include "sdr/sweep_coordinator.hpp"
#include "sdr/sweep_message.hpp"
#include "tests/tools/temporary_directory.hpp"

namespace sdr::cli {
namespace {

// The mail of all ranks. Any thread.
struct Office {
  explicit Office(int ranks) : boxes(static_cast<std::size_t>(ranks)) {}
  std::mutex mutex;
  std::vector<std::deque<RankMessage>> boxes;  // guarded by mutex
  std::atomic<int> deaf{-1};                   // a rank whose texts are lost, in both directions
};

class RanksInMemory final : public SweepRanks {
 public:
  RanksInMemory(Office& office, int rank) : office_(office), rank_(rank) {}
  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return static_cast<int>(office_.boxes.size()); }
  void send(int to, const std::string& text) override {
    if (office_.deaf == to || office_.deaf == rank_) return;
    const std::lock_guard lock(office_.mutex);
    office_.boxes[static_cast<std::size_t>(to)].push_back({.from = rank_, .text = text});
  }
  std::optional<RankMessage> receive() override {
    const std::lock_guard lock(office_.mutex);
    auto& box = office_.boxes[static_cast<std::size_t>(rank_)];
    if (box.empty()) return std::nullopt;
    RankMessage message = box.front();
    box.pop_front();
    return message;
  }
  [[noreturn]] void leave(int /*code*/, bool /*all_well*/) override { throw std::logic_error("no process to end"); }

 private:
  Office& office_;
  int rank_;
};

class Sweep : public ::testing::Test {
 protected:
  [[nodiscard]] SweepJournal journal() const {
    return SweepJournal::open((place_ / "partial").string(), identity_).value();
  }
  static TimePoint now() { return Driver::now(); }
  [[nodiscard]] SweepCoordinator::Options options() {
    return {.patience = patience_, .now = now, .say = [this](const std::string& note) { notes_ += note + "\n"; }};
  }
  [[nodiscard]] CellWorker::Compute computing() const {
    return [this](std::uint64_t cell) { return compute(spec_, cell, 1).value(); };
  }
  void expect_whole(const SweepJournal& journal) const {
    for (std::uint64_t cell = 0; cell < spec_.cells(); ++cell) {
      ASSERT_EQ(journal.state(cell), SweepJournal::State::Done) << cell;
      EXPECT_EQ(journal.line(cell).value(), compute(spec_, cell, 1)->dump());
    }
  }

  sdr::testing::TemporaryDirectory place_;
  SweepSpec spec_ = SweepSpec::parse(R"({"version":1,"schemes":["sr-nack","ec-rs"],"sizes":["64KiB","256KiB"],
                                         "rtts":["5ms"],"rates":["10Gbit"],"losses":[1e-3,1e-2],"runs":3})")
                        .value();
  SweepIdentity identity_{.digest = spec_.digest(), .program = "sdr test", .cells = spec_.cells()};
  // Far longer than a cell takes, even here; where a test waits for it to pass, it is shorter.
  Duration patience_ = std::chrono::seconds(60);
  std::string notes_;
};

TEST_F(Sweep, Alone_ComputesEveryCell) {
  SweepJournal journal = this->journal();
  CellWorker worker(computing());
  SweepCoordinator coordinator(spec_, identity_, journal, worker, nullptr, options());
  ASSERT_TRUE(coordinator.run().ok());
  EXPECT_EQ(coordinator.computed(), spec_.cells());
  expect_whole(journal);
}

TEST_F(Sweep, OfThreeRanks_HasTheSameResults) {
  Office office(3);
  std::vector<std::thread> others;
  std::atomic<int> served{0};
  for (const int rank : {1, 2}) {
    others.emplace_back([&, rank] {
      RanksInMemory ranks(office, rank);
      CellWorker worker(computing());
      const Result<bool> result = serve(ranks, identity_, worker, patience_, now);
      if (result && *result) ++served;
    });
  }
  SweepJournal journal = this->journal();
  CellWorker worker(computing());
  RanksInMemory ranks(office, 0);
  SweepCoordinator coordinator(spec_, identity_, journal, worker, &ranks, options());
  EXPECT_TRUE(coordinator.run().ok());
  for (std::thread& other : others) other.join();
  EXPECT_EQ(served, 2);
  EXPECT_TRUE(coordinator.all_well()) << notes_;
  expect_whole(journal);
}

TEST_F(Sweep, ARankThatTakesACellAndFallsSilent_CostsOnlyThat) {
  patience_ = std::chrono::milliseconds(300);
  Office office(2);
  RanksInMemory silent(office, 1);
  const Json hello = {{"program", identity_.program}, {"spec_sha256", identity_.digest}, {"host", "far"}, {"pid", 7}};
  silent.send(0, SweepMessage{.kind = SweepMessage::Kind::Hello, .cell = 0, .content = hello}.text());
  SweepJournal journal = this->journal();
  CellWorker worker(computing());
  RanksInMemory ranks(office, 0);
  SweepCoordinator coordinator(spec_, identity_, journal, worker, &ranks, options());
  ASSERT_TRUE(coordinator.run().ok());
  EXPECT_FALSE(coordinator.all_well());
  ASSERT_EQ(coordinator.lost().size(), 1U);
  EXPECT_NE(coordinator.lost()[0].find("rank 1 (far, pid 7), silent for"), std::string::npos) << coordinator.lost()[0];
  expect_whole(journal);
}

TEST_F(Sweep, ARankOfAnotherSpec_EndsItByName) {
  Office office(2);
  RanksInMemory other(office, 1);
  Json hello = {{"program", identity_.program}, {"spec_sha256", "another"}, {"host", "far"}, {"pid", 7}};
  other.send(0, SweepMessage{.kind = SweepMessage::Kind::Hello, .cell = 0, .content = hello}.text());
  SweepJournal journal = this->journal();
  CellWorker worker(computing());
  RanksInMemory ranks(office, 0);
  const Result<void> result = SweepCoordinator(spec_, identity_, journal, worker, &ranks, options()).run();
  ASSERT_FALSE(result.ok());
  EXPECT_NE(result.error().message.find("rank 1 (far, pid 7) has the spec_sha256 another"), std::string::npos)
      << result.error().message;
  const Result<bool> refused = serve(other, identity_, worker, patience_, now);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().message, result.error().message) << "both say it";
}

TEST_F(Sweep, ARankThatHearsNothingOfRank0_GivesUp) {
  Office office(2);
  RanksInMemory ranks(office, 1);
  CellWorker worker(computing());
  const Result<bool> served = serve(ranks, identity_, worker, std::chrono::milliseconds(50), now);
  ASSERT_FALSE(served.ok());
  EXPECT_NE(served.error().message.find("nothing heard from rank 0 for 50.0 ms"), std::string::npos)
      << served.error().message;
}

TEST(SweepMessage, ThatIsNone_IsRefused) {
  for (const char* text : {"", "7", "{}", R"({"kind":9,"cell":0,"content":null})", R"({"kind":"beat","cell":0})",
                           R"({"kind":1,"cell":-1,"content":null})"}) {
    EXPECT_FALSE(SweepMessage::parse(text).has_value()) << text;
  }
}

}  // namespace
}  // namespace sdr::cli

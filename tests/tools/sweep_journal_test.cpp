// What of a sweep is on the disk when it ends before its time, and what the next one makes of it.
#include "sdr/sweep_journal.hpp"

#include <gtest/gtest.h>

#include <string>

#include "sdr/sweep_output.hpp"
#include "tests/tools/temporary_directory.hpp"

namespace sdr::cli {
namespace {

using sdr::testing::read_file;
using sdr::testing::TemporaryDirectory;
using sdr::testing::write_file;
using State = SweepJournal::State;

const SweepIdentity kIdentity{.digest = "abc", .program = "sdr 1", .cells = 3};

Json entry(std::uint64_t cell) {
  return {{"cell", cell}, {"value", cell * 10}};
}

class Journal : public ::testing::Test {
 protected:
  [[nodiscard]] std::string path() const { return (place_ / "out.partial").string(); }
  [[nodiscard]] Result<SweepJournal> open(const SweepIdentity& identity = kIdentity) const {
    return SweepJournal::open(path(), identity);
  }
  // Of cells 0 and 1, the second failed.
  void fill() const {
    Result<SweepJournal> journal = open();
    ASSERT_TRUE(journal.ok()) << journal.error().message;
    ASSERT_TRUE(journal->append(entry(0), TimePoint{}).ok());
    ASSERT_TRUE(journal->append({{"cell", 1}, {"error", "no memory"}}, TimePoint{}).ok());
  }

  TemporaryDirectory place_;
};

TEST_F(Journal, OpenedAgain_KnowsWhatIsDone) {
  fill();
  Result<SweepJournal> journal = open();
  ASSERT_TRUE(journal.ok()) << journal.error().message;
  EXPECT_EQ(journal->state(0), State::Done);
  EXPECT_EQ(journal->state(1), State::Failed);
  EXPECT_EQ(journal->state(2), State::Open);
  EXPECT_EQ(journal->line(0).value(), entry(0).dump());
  EXPECT_EQ(journal->dropped(), 0U);
  ASSERT_TRUE(journal->append(entry(1), TimePoint{}).ok());
  EXPECT_EQ(journal->state(1), State::Done) << "the later entry counts";
  EXPECT_EQ(journal->line(1).value(), entry(1).dump());
}

TEST_F(Journal, BrokenOffAnywhere_LosesOnlyWhatIsNotWhole) {
  fill();
  const std::string whole = read_file(path());
  const std::size_t header = whole.find('\n') + 1;
  const std::size_t first = whole.find('\n', header) + 1;
  for (std::size_t length = 0; length < whole.size(); ++length) {
    write_file(path(), whole.substr(0, length));
    Result<SweepJournal> journal = open();
    ASSERT_TRUE(journal.ok()) << length << ": " << journal.error().message;
    EXPECT_EQ(journal->state(0), length >= first ? State::Done : State::Open) << length;
    EXPECT_EQ(journal->state(1), State::Open) << length;
    ASSERT_TRUE(journal->append(entry(2), TimePoint{}).ok());
    EXPECT_TRUE(read_file(path()).ends_with("}\n" + entry(2).dump() + "\n")) << length;
  }
}

TEST_F(Journal, GarbageInTheMiddle_IsDroppedWithWhatFollows) {
  fill();
  std::string text = read_file(path());
  const std::size_t header = text.find('\n') + 1;
  text.insert(header, std::string(20, '\0') + "\n");
  write_file(path(), text);
  Result<SweepJournal> journal = open();
  ASSERT_TRUE(journal.ok()) << journal.error().message;
  EXPECT_EQ(journal->count(State::Open), 3U);
  EXPECT_EQ(journal->dropped(), text.size() - header);
}

TEST_F(Journal, OfAnotherSweepOrNoJournal_IsRefusedAndLeftAlone) {
  fill();
  const std::string before = read_file(path());
  for (const SweepIdentity& other : {SweepIdentity{.digest = "abd", .program = "sdr 1", .cells = 3},
                                     SweepIdentity{.digest = "abc", .program = "sdr 2", .cells = 3}}) {
    const Result<SweepJournal> journal = open(other);
    ASSERT_FALSE(journal.ok());
    EXPECT_NE(journal.error().message.find(path()), std::string::npos) << journal.error().message;
    EXPECT_NE(journal.error().message.find("another sweep"), std::string::npos) << journal.error().message;
  }
  EXPECT_EQ(read_file(path()), before);
  for (const char* text : {"hello", "hello\nworld\n", "[]\n"}) {
    write_file(path(), text);
    const Result<SweepJournal> journal = open();
    ASSERT_FALSE(journal.ok()) << text;
    EXPECT_NE(journal.error().message.find("no journal"), std::string::npos) << journal.error().message;
    EXPECT_EQ(read_file(path()), text);
  }
}

TEST_F(Journal, InUse_IsRefused) {
  const Result<SweepJournal> first = open();
  ASSERT_TRUE(first.ok());
  const Result<SweepJournal> second = open();
  ASSERT_FALSE(second.ok());
  EXPECT_NE(second.error().message.find("in use"), std::string::npos) << second.error().message;
}

TEST_F(Journal, OfAWholeSweep_BecomesTheOutputAndATable) {
  const SweepSpec spec =
      SweepSpec::parse(R"({"version":1,"kind":"theory","schemes":["sr-rto","sr-nack","ec-rs"],"sizes":[1],
                           "rtts":["1ms"],"rates":["1Gbit"],"losses":[0.1]})")
          .value();
  const std::string out = (place_ / "out").string();
  const std::string csv = (place_ / "csv").string();
  EXPECT_EQ(output_at(out, kIdentity).value(), OutputState::Absent);
  fill();
  SweepJournal journal = open().value();
  ASSERT_TRUE(journal.append({{"cell", 2}, {"scheme", "say \"x\""}, {"loss", 0.5}}, TimePoint{}).ok());
  ASSERT_TRUE(write_output(out, spec, kIdentity, journal).ok());
  EXPECT_EQ(output_at(out, kIdentity).value(), OutputState::WithFailures);
  ASSERT_TRUE(journal.append(entry(1), TimePoint{}).ok());
  ASSERT_TRUE(write_output(out, spec, kIdentity, journal).ok());
  EXPECT_EQ(output_at(out, kIdentity).value(), OutputState::Whole);
  const Json json = Json::parse(read_file(out));
  EXPECT_EQ(json["cells"].size(), 3U);
  EXPECT_EQ(json["cells"][1], entry(1));
  ASSERT_TRUE(write_csv(csv, out).ok());
  EXPECT_NE(read_file(csv).find("\n2,\"say \"\"x\"\"\",,,,0.5,"), std::string::npos) << read_file(csv);
  for (const std::string& text : {std::string("mine"), read_file(out).substr(0, read_file(out).size() - 1)}) {
    write_file(out, text);
    const Result<OutputState> state = output_at(out, kIdentity);
    ASSERT_FALSE(state.ok());
    EXPECT_NE(state.error().message.find(out), std::string::npos) << state.error().message;
  }
}

}  // namespace
}  // namespace sdr::cli

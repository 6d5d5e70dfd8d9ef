// sdr sweep as its users run it: alone and under mpirun, killed and run again, refused with what is wrong.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include "tests/e2e/sdr_command.hpp"

namespace sdr::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr const char* kSpec = R"({"version": 1, "schemes": ["sr-nack", "ec-rs"], "sizes": ["256KiB", "1MiB"],
  "rtts": ["5ms"], "rates": ["10Gbit"], "losses": [1e-3, 1e-2], "runs": 5})";
// Long enough to be killed in the middle of it.
constexpr const char* kLongSpec = R"({"version": 1, "schemes": ["sr-nack", "ec-rs"], "sizes": ["1MiB", "4MiB"],
  "rtts": ["5ms"], "rates": ["10Gbit"], "losses": [1e-4, 1e-3, 1e-2], "runs": 200})";

class Sweep : public ::testing::Test {
 protected:
  std::string file(const std::string& name) const { return (place_ / name).string(); }
  std::string spec(const char* text) const {
    write_file(place_ / "spec.json", text);
    return file("spec.json");
  }
  // The output of one process.
  std::string alone(const char* text) const {
    SdrCommand command({"sweep", spec(text), "--out", file("alone.json"), "--jobs", "2"});
    EXPECT_EQ(command.wait(), 0) << command.err();
    return read_file(place_ / "alone.json");
  }
  std::size_t lines(const std::string& name) const {
    const std::string text = read_file(place_ / name);
    return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
  }

  TemporaryDirectory place_;
};

TEST_F(Sweep, TheSameSpec_GivesTheSameBytesWhateverTheJobs) {
  const std::string two = alone(kSpec);
  EXPECT_THAT(two, HasSubstr("\"cells_total\":8,\"cells_failed\":0"));
  SdrCommand one({"sweep", spec(kSpec), "--csv", file("table.csv")});
  ASSERT_EQ(one.wait(), 0) << one.err();
  EXPECT_EQ(read_file(place_ / "spec.results.json"), two) << "the output's usual name";
  EXPECT_EQ(lines("table.csv"), 9U);
  EXPECT_FALSE(std::filesystem::exists(place_ / "spec.results.json.partial"));
  SdrCommand again({"sweep", spec(kSpec)});
  ASSERT_EQ(again.wait(), 0) << again.err();
  EXPECT_THAT(again.out(), HasSubstr("the results are there already"));
}

TEST_F(Sweep, KilledAndRunAgain_ComputesWhatIsMissing) {
  const std::string whole = alone(kLongSpec);
  SdrCommand killed({"sweep", spec(kLongSpec), "--out", file("out")});
  EXPECT_TRUE(eventually([&] { return lines("out.partial") >= 4 || killed.ended(); }));
  killed.signal(SIGKILL);
  killed.wait();
  SdrCommand again({"sweep", spec(kLongSpec), "--out", file("out")});
  ASSERT_EQ(again.wait(), 0) << again.err();
  EXPECT_THAT(again.out(), Not(HasSubstr("12 now")));
  EXPECT_EQ(read_file(place_ / "out"), whole);
}

TEST_F(Sweep, BadInput_IsRefusedWithFieldValueAndRange) {
  const auto refused = [&](const char* text) {
    SdrCommand command({"sweep", spec(text), "--out", file("out")});
    EXPECT_EQ(command.wait(), 2) << text;
    EXPECT_FALSE(std::filesystem::exists(place_ / "out.partial"));
    return command.err();
  };
  EXPECT_THAT(refused(R"({"version": 1, "colour": 3})"),
              AllOf(HasSubstr("sdr sweep: spec "), HasSubstr("unknown field colour")));
  EXPECT_THAT(refused(R"({"version": 1, "schemes": ["sr-rto"], "sizes": ["1MiB"], "rtts": ["5ms"], "rates": ["1Gbit"],
                          "losses": [1.5], "runs": 1})"),
              HasSubstr("field losses[0] 1.5 is not a share from 0 to 1"));
  EXPECT_THAT(refused("{\"version\": 1, \"sche"), HasSubstr("breaks off"));
  SdrCommand patience({"sweep", spec(kSpec), "--rank-timeout", "1ms"});
  EXPECT_EQ(patience.wait(), 2);
  EXPECT_THAT(patience.err(), HasSubstr("\"1ms\" is not from 1s to 24h"));
  SdrCommand nowhere({"sweep", spec(kSpec), "--out", file("no/such/place")});
  EXPECT_EQ(nowhere.wait(), 1);
  EXPECT_THAT(nowhere.err(), HasSubstr("no/such/place.partial cannot be opened"));
}

TEST_F(Sweep, AnOutputOfAnotherSpec_IsRefusedAndLeftAlone) {
  const std::string first = alone(kSpec);
  SdrCommand other({"sweep", spec(kLongSpec), "--out", file("alone.json")});
  EXPECT_EQ(other.wait(), 2);
  EXPECT_THAT(other.err(), AllOf(HasSubstr("alone.json is of another sweep"), HasSubstr("spec_sha256")));
  EXPECT_EQ(read_file(place_ / "alone.json"), first);
}

TEST_F(Sweep, ACellThatCannotBeComputed_IsNamedAndTheOthersGoOn) {
  // No memory has so many addresses, in a process that may have 4 GiB.
  const char* text = R"({"version": 1, "schemes": ["sr-nack"], "sizes": ["64KiB", "16GiB"], "rtts": ["1ms"],
                         "rates": ["400Gbit"], "losses": [0], "runs": 1})";
  const auto limit = [] {
    const rlimit bound{std::uint64_t{4} << 30, std::uint64_t{4} << 30};
    setrlimit(RLIMIT_AS, &bound);
  };
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the sanitizers reserve more addresses than that";
#endif
  SdrCommand command({"sweep", spec(text), "--out", file("out")}, limit);
  EXPECT_EQ(command.wait(), 1);
  EXPECT_THAT(command.err(), AllOf(HasSubstr("1 of 2 cells failed"), HasSubstr("cell 1 (sr-nack, 16 GiB")));
  EXPECT_THAT(read_file(place_ / "out"), AllOf(HasSubstr("\"cells_failed\":1"), HasSubstr("\"error\":")));
  EXPECT_TRUE(std::filesystem::exists(place_ / "out.partial")) << "for the next try";
}

#if defined(SDR_MPIRUN)

// sdr under mpirun, on this machine alone.
class Ranks : public Sweep {
 protected:
  static std::vector<std::string> command(std::vector<std::string> mpirun, std::vector<std::string> sweep) {
    std::vector<std::string> all = {SDR_MPIRUN};
    all.insert(all.end(), mpirun.begin(), mpirun.end());
    for (const char* word : {"--oversubscribe", "--mca", "btl", "self,vader", "--mca", "oob_tcp_if_include", "lo", "-n",
                             "3", SDR_BINARY_DIR "/sdr", "sweep"}) {
      all.emplace_back(word);
    }
    all.insert(all.end(), sweep.begin(), sweep.end());
    return all;
  }
  // In the place of sdr, in the child.
  static std::function<void()> become(std::vector<std::string> words) {
    return [words]() mutable {
      setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
      setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
      std::vector<char*> argv;
      for (std::string& word : words) argv.push_back(word.data());
      argv.push_back(nullptr);
      execv(argv[0], argv.data());
      _exit(127);
    };
  }
  // Of the sweep with this output, by its environment. 0 when there is none.
  static pid_t process_of_rank(const std::string& out, int rank) {
    const std::string mark = "OMPI_COMM_WORLD_RANK=" + std::to_string(rank);
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
      const std::string pid = entry.path().filename();
      if (pid.find_first_not_of("0123456789") != std::string::npos) continue;
      const std::string environment = read_file(entry.path() / "environ");
      if (read_file(entry.path() / "cmdline").find(out) == std::string::npos) continue;
      if (("\0" + environment).find(mark + std::string(1, '\0')) != std::string::npos) return std::stoi(pid);
    }
    return 0;
  }
  // Kills a rank once some cells are done; false when the sweep was over before.
  bool kill_rank(SdrCommand& sweep, const std::string& out, int rank, int signal) const {
    pid_t pid = 0;
    eventually([&] {
      pid = process_of_rank(file(out), rank);
      return (lines(out + ".partial") >= 3 && pid != 0) || sweep.ended();
    });
    return pid != 0 && !sweep.ended() && ::kill(pid, signal) == 0;
  }
};

TEST_F(Ranks, Three_GiveTheBytesOfOne) {
  const std::string whole = alone(kSpec);
  SdrCommand ranks({}, become(command({}, {spec(kSpec), "--out", file("out")})));
  ASSERT_EQ(ranks.wait(), 0) << ranks.err();
  EXPECT_THAT(ranks.out(), HasSubstr("3, 0 lost"));
  EXPECT_EQ(read_file(place_ / "out"), whole);
}

TEST_F(Ranks, WhenOneIsKilled_ARerunCompletes) {
  const std::string whole = alone(kLongSpec);
  for (const int rank : {2, 0}) {
    const std::string out = "out" + std::to_string(rank);
    SdrCommand ranks({}, become(command({}, {spec(kLongSpec), "--out", file(out)})));
    EXPECT_TRUE(kill_rank(ranks, out, rank, SIGKILL)) << ranks.err();
    EXPECT_NE(ranks.wait(), -1000);
    SdrCommand again({"sweep", spec(kLongSpec), "--out", file(out)});
    ASSERT_EQ(again.wait(), 0) << again.err();
    EXPECT_EQ(read_file(place_ / out), whole) << "rank " << rank;
  }
}

TEST_F(Ranks, WithRecovery_AKilledOneCostsOnlyItsCell) {
  const std::string whole = alone(kLongSpec);
  SdrCommand ranks(
      {}, become(command({"--enable-recovery"}, {spec(kLongSpec), "--out", file("out"), "--rank-timeout", "2s"})));
  EXPECT_TRUE(kill_rank(ranks, "out", 1, SIGKILL)) << ranks.err();
  ASSERT_EQ(ranks.wait(), 0) << ranks.err();
  EXPECT_EQ(read_file(place_ / "out"), whole);
}

TEST_F(Ranks, AStoppedOne_IsLostByName) {
  const std::string whole = alone(kLongSpec);
  SdrCommand ranks({}, become(command({}, {spec(kLongSpec), "--out", file("out"), "--rank-timeout", "2s"})));
  EXPECT_TRUE(kill_rank(ranks, "out", 1, SIGSTOP)) << ranks.err();
  EXPECT_NE(ranks.wait(), -1000) << ranks.err();
  EXPECT_EQ(read_file(place_ / "out"), whole) << ranks.err();
}

#endif

}  // namespace
}  // namespace sdr::testing
